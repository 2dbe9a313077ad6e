package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/flex"
	"flexd/internal/worker"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)

		var runs, left atomic.Int64
		w := &worker.Worker{Name: "test", Every: time.Minute, Wake: wake, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Job: func(context.Context) (worker.Report, error) {
				n := runs.Add(1)
				switch {
				case n == 2:
					panic("planted")
				case n == 3:
					return worker.Report{}, errors.New("planted")
				case left.Load() > 0:
					return worker.Report{More: left.Add(-1) > 0}, nil
				}

				return worker.Report{}, nil
			}}

		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		want := func(n int64, when string) {
			t.Helper()
			synctest.Wait()
			if got := runs.Load(); got != n {
				t.Errorf("%s: %d runs, want %d", when, got, n)
			}
		}

		want(1, "at the start")
		time.Sleep(time.Minute)
		want(2, "after a period")
		if w.Last().Err == nil {
			t.Error("a panic is not the round's error")
		}

		wake <- struct{}{}
		want(3, "after a wake-up")
		left.Store(3)
		time.Sleep(time.Minute)
		want(6, "with work left")
		if l := w.Last(); l.Runs != 6 || l.Failures != 2 || !l.SucceededAt.Equal(time.Now()) || !l.FailedSince.IsZero() {
			t.Errorf("after two failures of six: %+v", l)
		}
		cancel()
		synctest.Wait()
	})
}

// A run that does not end is named once it lasts for longer than half an hour and three
// periods, and no more once it has ended.
func TestRun_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		hanging := func(every time.Duration) *worker.Worker {
			w := &worker.Worker{Name: "test", Every: every, Job: func(ctx context.Context) (worker.Report, error) {
				select {
				case <-ctx.Done():
				case <-end:
				}
				return worker.Report{}, nil
			}}
			go w.Run(t.Context())
			return w
		}

		start := time.Now()
		often, hourly := hanging(time.Second), hanging(time.Hour)
		want := func(when string, oftenHangs, hourlyHangs bool) {
			t.Helper()
			synctest.Wait()
			for _, c := range []struct {
				w     *worker.Worker
				hangs bool
			}{{often, oftenHangs}, {hourly, hourlyHangs}} {
				since := c.w.HangsSince()
				if !since.IsZero() != c.hangs || c.hangs && !since.Equal(start) {
					t.Errorf("%s: of a period of %v: since %v", when, c.w.Every, since)
				}
			}
		}

		time.Sleep(worker.HangAfter)
		want("after half an hour", false, false)
		time.Sleep(time.Second)
		want("after longer", true, false)
		time.Sleep(3 * time.Hour)
		want("after three hours", true, true)

		close(end)
		want("in the end", false, false)
	})
}

// A job that goes over all organisations by one statement waits for one that moves to another
// database: no run of it has failed.
func TestRun_Moving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var moving atomic.Bool
		moving.Store(true)
		w := &worker.Worker{Name: "test", Every: time.Minute, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Job: func(context.Context) (worker.Report, error) {
				if moving.Load() {
					return worker.Report{More: true}, fmt.Errorf("delete: %w", &flex.Moving{Cause: errors.New("the fence")})
				}
				return worker.Report{Count: 3}, nil
			}}

		go w.Run(t.Context())
		synctest.Wait()
		if l := w.Last(); l.Runs != 1 || l.Failures != 0 || l.Err != nil || l.Report.Waiting != 1 || l.Report.Note == "" {
			t.Errorf("while it moves: %+v", l)
		}
		moving.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if l := w.Last(); l.Runs != 2 || l.Failures != 0 || l.Report.Count != 3 || l.Report.Waiting != 0 {
			t.Errorf("afterwards: %+v", l)
		}
	})
}

// However often it is woken, a worker rests between runs; one that has rested runs at once,
// and what woke it while it rested is one run.
func TestRun_Rests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rest, takes = time.Second, 3 * time.Second
		wake := make(chan struct{}, 1)
		var starts []time.Duration
		began := time.Now()
		w := &worker.Worker{Name: "test", Every: time.Hour, Wake: wake, Rest: rest, Job: func(context.Context) (worker.Report, error) {
			starts = append(starts, time.Since(began))
			time.Sleep(takes)
			return worker.Report{}, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)

		for until := began.Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			select {
			case wake <- struct{}{}:
			default:
			}
		}

		time.Sleep(time.Minute)
		wake <- struct{}{}
		synctest.Wait()
		cancel()
		time.Sleep(takes)
		// The storm ends while the third run is under way; it has the fourth follow.
		if want := []time.Duration{0, 4 * time.Second, 8 * time.Second, 12 * time.Second, 70 * time.Second}; !slices.Equal(starts, want) {
			t.Errorf("runs at %v, want %v", starts, want)
		}
	})
}

// What fails for one organisation holds up no other, and the run says of which it was.
func TestEachOrg(t *testing.T) {
	orgs := make([]flex.OrgID, 9)
	for i := range orgs {
		orgs[i] = flex.OrgID{15: byte(i + 1)}
	}

	unreachable := flex.Fail(flex.Unavailable, "the database does not answer")
	for name, tt := range map[string]struct {
		job   func(n, run int) (worker.Report, error) // of the organisation number n from 1, its runs counted from 1
		runs  []int                                   // of each organisation
		did   int
		wants []string // what the error says
		down  bool     // the database answers no more after the first organisation
	}{
		"all": {func(int, int) (worker.Report, error) { return worker.Report{Count: 1}, nil }, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 9, nil, false},

		"more is left, twice": {func(n, run int) (worker.Report, error) {
			return worker.Report{Count: 2, More: n == 2 && run < 3}, nil
		}, []int{1, 3, 1, 1, 1, 1, 1, 1, 1}, 22, nil, false},
		"more is left, but none of it can be done": {func(int, int) (worker.Report, error) {
			return worker.Report{More: true}, nil
		}, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, nil, false},
		"one fails, one panics": {func(n, _ int) (worker.Report, error) {
			switch n {

			case 1:
				return worker.Report{}, errors.New("planted")
			case 3:
				panic("planted panic")
			}

			return worker.Report{Count: 1}, nil
		}, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 7, []string{orgs[0].String() + ": planted", orgs[2].String() + ": panic", "planted panic"}, false},
		"many fail": {func(int, int) (worker.Report, error) { return worker.Report{}, errors.New("planted") },
			[]int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, []string{orgs[4].String(), "and 4 more organisations"}, false},
		"no database": {func(n, _ int) (worker.Report, error) {
			if n == 2 {
				return worker.Report{}, unreachable
			}

			return worker.Report{Count: 1}, nil
		}, []int{1, 1, 0, 0, 0, 0, 0, 0, 0}, 1, []string{"does not answer"}, true},
		"two move to another database, and one of the others fails": {func(n, _ int) (worker.Report, error) {
			switch n {
			case 2:
				return worker.Report{}, fmt.Errorf("write: %w", &flex.Moving{Cause: errors.New("the fence")})
			case 3:
				return worker.Report{}, errors.Join(&flex.Moving{Cause: errors.New("the fence")}, &flex.Moving{Cause: errors.New("the fence")})
			case 4:
				return worker.Report{}, errors.Join(&flex.Moving{Cause: errors.New("the fence")}, errors.New("planted"))
			}

			return worker.Report{Count: 1}, nil
		}, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 6, []string{orgs[3].String() + ": "}, false},
		"all move": {func(int, int) (worker.Report, error) {
			return worker.Report{}, &flex.Moving{Cause: errors.New("the fence")}
		},
			[]int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, nil, false},
		"one is unavailable alone": {func(n, _ int) (worker.Report, error) {
			if n == 2 {
				return worker.Report{}, unreachable
			}

			return worker.Report{Count: 1}, nil
		}, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 8, []string{orgs[1].String() + ": "}, false},
	} {
		t.Run(name, func(t *testing.T) {
			runs := make([]int, len(orgs))
			list := func(context.Context) ([]flex.OrgID, error) {
				if tt.down && runs[0] > 0 {
					return nil, unreachable
				}
				return orgs, nil
			}

			r, err := worker.EachOrg(t.Context(), list,
				func(_ context.Context, org flex.OrgID) (worker.Report, error) {
					n := int(org[15])
					runs[n-1]++
					return tt.job(n, runs[n-1])
				})

			if !slices.Equal(runs, tt.runs) || r.Count != tt.did || r.More {
				t.Errorf("runs %v, %+v; want %v and %d done", runs, r, tt.runs, tt.did)
			}
			if (err == nil) != (len(tt.wants) == 0) {
				t.Errorf("error %v", err)
			}
			if want := map[string]int{"two move to another database, and one of the others fails": 2, "all move": 9}[name]; r.Waiting != want {
				t.Errorf("%d wait, want %d", r.Waiting, want)
			}
			if r.Waiting > 0 && strings.Contains(fmt.Sprint(err), orgs[1].String()) {
				t.Errorf("one that moves is counted as failed: %v", err)
			}

			for _, want := range tt.wants {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

// The notes of single organisations come with the run's report: of each its latest, and of
// many the first.
func TestEachOrg_Notes(t *testing.T) {
	for name, tt := range map[string]struct {
		notes [][]string // of each organisation's runs
		want  string     // an organisation's number in place of its id
	}{
		"none":                         {[][]string{{""}, {""}}, ""},
		"of one":                       {[][]string{{""}, {"too many"}, {""}}, "organisation 2: too many"},
		"of two":                       {[][]string{{"one"}, {"two"}}, "organisation 1: one; organisation 2: two"},
		"of each run":                  {[][]string{{"first", "last"}}, "organisation 1: last"},
		"kept if a later run has none": {[][]string{{"first", ""}}, "organisation 1: first"},
		"of six": {[][]string{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}},
			"organisation 1: a; organisation 2: b; organisation 3: c; organisation 4: d; organisation 5: e; and 1 more organisations"},
	} {
		t.Run(name, func(t *testing.T) {
			var orgs []flex.OrgID
			for i := range tt.notes {
				orgs = append(orgs, flex.OrgID{15: byte(i + 1)})
			}

			left := slices.Clone(tt.notes)
			r, err := worker.EachOrg(t.Context(), func(context.Context) ([]flex.OrgID, error) { return orgs, nil },
				func(_ context.Context, org flex.OrgID) (worker.Report, error) {
					of := &left[org[15]-1]
					note := (*of)[0]
					*of = (*of)[1:]
					return worker.Report{Count: 1, More: len(*of) > 0, Note: note}, nil
				})

			got := r.Note
			for i, org := range orgs {
				got = strings.ReplaceAll(got, org.String(), fmt.Sprint(i+1))
			}
			if err != nil || got != tt.want {
				t.Errorf("%q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

// An organisation that has much to do does not hold up the others: each has its turn before it
// goes on.
func TestEachOrg_Turns(t *testing.T) {
	first, second := flex.OrgID{15: 1}, flex.OrgID{15: 2}
	var turns []byte
	_, err := worker.EachOrg(t.Context(), func(context.Context) ([]flex.OrgID, error) { return []flex.OrgID{first, second}, nil },
		func(_ context.Context, org flex.OrgID) (worker.Report, error) {
			turns = append(turns, org[15])
			return worker.Report{Count: 1, More: len(turns) < 5}, nil
		})

	if want := []byte{1, 2, 1, 2, 1, 2}; err != nil || !slices.Equal(turns, want) {
		t.Errorf("turns %v, want %v: %v", turns, want, err)
	}
}
