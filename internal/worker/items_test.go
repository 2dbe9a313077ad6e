package worker_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/worker"
)

// shelf is what is due, in its order, and how each item behaves.
type shelf struct {
	due     []int
	broken  map[int]bool
	panics  map[int]bool
	down    map[int]bool // the database does not answer for it
	gone    map[int]bool // it was done elsewhere when it is to be put off
	putOff  []int
	done    []int
	lists   int
	tried   int   // how many were to be put off
	unnoted error // why nothing can be put off
}

func (s *shelf) items(batch, most int) *worker.Items[int] {
	return &worker.Items[int]{
		Kind: "test", Batch: batch, Most: most,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		List: func(_ context.Context, limit int) ([]int, bool, error) {
			s.lists++
			return slices.Clone(s.due[:min(limit, len(s.due))]), len(s.putOff) > 0, nil
		},

		Do: func(_ context.Context, ids []int) (int, error) {
			for _, id := range ids {
				switch {
				case s.panics[id]:
					panic("planted panic")
				case s.broken[id]:
					return 1, errors.New("planted")
				case s.down[id]:
					return 0, flex.Fail(flex.Unavailable, "the database does not answer")
				}
			}

			s.done = append(s.done, ids...)
			s.drop(ids)

			return len(ids), nil
		},

		PutOff: func(_ context.Context, id int, cause error) (bool, error) {
			s.tried++
			if s.unnoted != nil {
				return false, s.unnoted
			}

			s.drop([]int{id})
			if s.gone[id] {
				return false, nil
			}
			s.putOff = append(s.putOff, id)

			return true, nil
		},

		Left: func(context.Context) error {
			if len(s.putOff) == 0 {
				return nil
			}
			return &worker.PutOff{Items: []string{"planted"}, Total: len(s.putOff)}
		},
	}
}

func (s *shelf) drop(ids []int) {
	s.due = slices.DeleteFunc(s.due, func(id int) bool { return slices.Contains(ids, id) })
}

func upTo(n int) (ids []int) {
	for i := range n {
		ids = append(ids, i)
	}

	return ids
}

func these(ids ...int) map[int]bool {
	m := map[int]bool{}
	for _, id := range ids {
		m[id] = true
	}

	return m
}

// What fails, or panics, is put off wherever it is in the list, and everything else is done.
func TestItems(t *testing.T) {
	for name, broken := range map[string][]int{"first": {0}, "in the middle": {5}, "last": {9}, "three": {0, 4, 9}, "none": nil} {
		for _, panics := range []bool{false, true} {
			s := &shelf{due: upTo(10)}
			if panics {
				s.panics = these(broken...)
			} else {
				s.broken = these(broken...)
			}

			r, err := s.items(4, 100).Run(t.Context())
			if r.Count != 10-len(broken) || len(s.done) != r.Count || !slices.Equal(s.putOff, broken) || r.More {
				t.Errorf("%s: %+v, put off %v", name, r, s.putOff)
			}
			if flex.Only[*worker.PutOff](err) != (len(broken) > 0) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// However many cannot be done, those behind them are done in the same run; and no more of them than a run takes.
func TestItems_Pages(t *testing.T) {
	s := &shelf{due: upTo(45), broken: these(upTo(25)...)}
	r, err := s.items(4, 10).Run(t.Context())
	if r.Count != 15 || len(s.putOff) != 25 || !r.More || s.lists != 4 {
		t.Errorf("%+v, %d put off, %d lists: %v", r, len(s.putOff), s.lists, err)
	}

	r, err = s.items(4, 10).Run(t.Context())
	if r.Count != 5 || r.More || !flex.Only[*worker.PutOff](err) {
		t.Errorf("then %+v: %v", r, err)
	}

	s.putOff = nil
	if _, err := s.items(4, 10).Run(t.Context()); err != nil {
		t.Errorf("once nothing is put off: %v", err)
	}
}

// While the database does not answer nothing is put off, and the run ends. One that cannot be put off, or was done elsewhere, is the
// run's failure and delays no other.
func TestItems_NotPutOff(t *testing.T) {
	s := &shelf{due: upTo(10), down: these(5)}
	r, err := s.items(1, 100).Run(t.Context())
	if r.Count != 5 || len(s.putOff) > 0 || flex.KindOf(err) != flex.Unavailable {
		t.Errorf("while the database does not answer: %+v, %v", r, err)
	}

	s = &shelf{due: upTo(10), broken: these(5), gone: these(5)}
	r, err = s.items(4, 10).Run(t.Context())
	if r.Count != 9 || err == nil || flex.Only[*worker.PutOff](err) {
		t.Errorf("with one that was done elsewhere: %+v, %v", r, err)
	}

	s = &shelf{due: upTo(10), broken: these(upTo(10)...), unnoted: errors.New("no room")}
	r, err = s.items(4, 10).Run(t.Context())
	if s.lists != 2 || err == nil || !strings.Contains(err.Error(), "no room") || !strings.Contains(err.Error(), "and 5 more failed") {
		t.Errorf("where none can be put off: %+v, %d lists, %v", r, s.lists, err)
	}
}

// Items that fail and cannot be put off stay listed first, more of them than one list has: those behind them are done in the same run
// all the same, and each that fails is tried once in a run.
func TestItems_StuckFirst(t *testing.T) {
	for _, n := range []int{9, 10, 11, 20, 35} {
		s := &shelf{due: upTo(n + 7), broken: these(upTo(n)...), unnoted: errors.New("no room")}
		for range 2 {
			r, err := s.items(4, 10).Run(t.Context())
			if r.More || err == nil || len(s.done) != 7 {
				t.Errorf("behind %d: %+v, done %v: %v", n, r, s.done, err)
			}
		}

		if s.tried != 2*n {
			t.Errorf("%d that fail are tried %d times in two runs", n, s.tried)
		}
	}
}

// An item that fails again and again is tried less and less often, and once a day at least.
func TestPutOffAfter(t *testing.T) {
	want := map[time.Duration][]time.Duration{
		time.Hour:        {1, 1, 1, 1, 2, 4, 8, 16, 24, 24},
		15 * time.Minute: {1, 1, 1, 1, 2, 4, 8, 16, 32, 64, 96, 96},
	}
	for first, each := range want {
		for before, times := range each {
			if got := worker.PutOffAfter(first, before); got != times*first {
				t.Errorf("after %d times it is put off for %s, not %s", before, got, times*first)
			}
		}
		if got := worker.PutOffAfter(first, 1e9); got != 24*time.Hour {
			t.Errorf("in the end it is put off for %s", got)
		}
	}
}

// An organisation that has put something off goes on with the rest of its work in the same run, and its failure is said once.
func TestEachOrg_PutOff(t *testing.T) {
	runs := 0
	orgs := []flex.OrgID{{15: 1}, {15: 2}}
	r, err := worker.EachOrg(
		t.Context(),
		func(context.Context) ([]flex.OrgID, error) { return orgs, nil },
		func(_ context.Context, org flex.OrgID) (worker.Report, error) {
			if org == orgs[1] {
				return worker.Report{Count: 1}, nil
			}

			runs++
			return worker.Report{Count: 1, More: runs < 3}, &worker.PutOff{Items: []string{"planted"}, Total: 7}
		},
	)
	if runs != 3 || r.Count != 4 || strings.Count(err.Error(), "planted") != 1 || !strings.Contains(err.Error(), "and 6 more are put off") {
		t.Errorf("%d runs, %+v: %v", runs, r, err)
	}
}
