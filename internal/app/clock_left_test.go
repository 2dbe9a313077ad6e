package app

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// After an advance, and after what is due was done without one, no job finds anything to do:
// none needs to be run to find out.
func TestAdvance_LeavesNothing(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		for _, l := range leftOver(t, url, nil) {
			t.Error(l)
		}
	})
}

// A job that does not name what waits for it is found by what it finds when it is run.
func TestAdvance_LeavesNothing_PlantedFault(t *testing.T) {
	never := func(*store.Tx, context.Context, time.Time) (time.Time, error) { return time.Time{}, nil }
	for _, name := range []string{"batteries", "credits", "settlement", "books", "rates"} {
		left := leftOver(t, storetest.SQLite(t), func(h *App) {
			for i := range h.jobs {
				if h.jobs[i].Name == name {
					h.jobs[i].next, h.jobs[i].hasUndatedWork = never, nil
				}
			}
		})
		if !slices.Contains(left, name) {
			t.Errorf("job %s names nothing, and only %v were found", name, left)
		}
	}
}

// leftOver plays histories and returns the jobs that find something to do where all was done.
func leftOver(t *testing.T, url string, plant func(*App)) (names []string) {
	t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer receiver.Close()

	s := openClocked(t, url, time.Date(2026, time.March, 27, 9, 10, 0, 0, time.UTC), receiver.URL)
	defer storetest.Close(t, s.app.DB)
	defer s.app.Push.Close()
	if plant != nil {
		plant(s.app)
	}

	s.after = func() {
		if err := s.app.RunDue(t.Context(), s.Org); err != nil {
			t.Fatal(err)
		}

		for _, j := range s.app.jobs {
			if j.run == nil {
				continue
			}

			r, err := j.run(t.Context(), s.Org)
			if err != nil {
				t.Fatal(err)
			}
			if r.Count > 0 && !slices.Contains(names, j.Name) {
				names = append(names, j.Name)
			}
		}
	}

	s.play(2, 8, AdvanceMax)
	if n := s.Count(`SELECT count(*) FROM flex_event`); plant == nil && n == 0 {
		t.Error("no flex event was found")
	}

	return names
}

// What the jobs ask for together, by one statement, is what each of them finds that asks by itself.
func TestAdvance_AsksAlike(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openClocked(t, url, time.Date(2026, time.March, 27, 9, 10, 0, 0, time.UTC), "")
		defer storetest.Close(t, s.app.DB)
		defer s.app.Push.Close()

		due := 0
		s.after = func() {
			for _, thorough := range []bool{false, true} {
				adv := advance{App: s.app, org: s.Org, thorough: thorough}
				together, err := adv.look(t.Context())
				if err != nil {
					t.Fatal(err)
				}

				alone := agenda{now: together.now, at: make([]time.Time, len(s.app.jobs))}
				err = s.app.DB.Read(t.Context(), s.Org, func(tx *store.Tx) error {
					return adv.ask(t.Context(), tx, &alone, time.Time{}, func(int) bool { return true })
				})
				if err != nil {
					t.Fatal(err)
				}

				for i, j := range s.app.jobs {
					if !together.at[i].Equal(alone.at[i]) {
						t.Errorf("%s at %v: %v together, %v alone", j.Name, alone.now, together.at[i], alone.at[i])
					}
					if alone.due(i) {
						due++
					}
				}
			}
		}

		s.play(2, 2, AdvanceMax)
		if due == 0 {
			t.Error("nothing was ever due")
		}
	})
}

// dueColumns are where the instants stand that jobs are due at, by job.
var dueColumns = map[string][]string{
	"credits":    {`look_at FROM reckoning`},
	"rates":      {`rate_look_at FROM session`},
	"settlement": {`detect_at FROM reckoning`, `CASE WHEN NOT detected THEN to_at END FROM pause`, `detect_at FROM dispatch_asset`, `look_at FROM flex_event`},
}

// When jobs are due is read from their columns, whatever the instant of the question and whether
// they are asked together or one by one. Nothing is due for an organisation by the
// records of another.
func TestAdvance_AsksForAll(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openClocked(t, url, time.Date(2026, time.March, 27, 9, 10, 0, 0, time.UTC), "")
		defer storetest.Close(t, s.app.DB)
		defer s.app.Push.Close()

		s.play(2, 8, AdvanceMax)
		s.spread()
		other, err := s.app.DB.AddOrg(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}

		for _, j := range s.app.jobs {
			if dueColumns[j.Name] == nil {
				continue
			}

			instants := s.instants(dueColumns[j.Name])
			if len(slices.Compact(instants)) < 3 {
				t.Errorf("%s is due at %v alone", j.Name, instants)
			}

			for _, after := range append([]time.Time{{}}, instants...) {
				s.asksFor(s.Org, j, after, firstAfter(instants, after))
				s.asksFor(other.ID, j, after, time.Time{})
			}
		}
	})
}

// spread puts what is due at instants about the middle of the history, in the reverse order of
// what is over.
func (s *clocked) spread() {
	twice := 2 * s.at.Add(-4*24*time.Hour).UnixMicro()
	for _, set := range []string{
		`reckoning SET look_at = CAST($2 AS BIGINT) - to_at, detect_at = CAST($2 AS BIGINT) - from_at`,
		`session SET rate_look_at = CAST($2 AS BIGINT) - plugged_in_at`,
		`pause SET detected = FALSE`,
		`flex_event SET look_at = CAST($2 AS BIGINT) - from_at`,
	} {
		s.Exec(`UPDATE `+set+` WHERE org_id = $1 AND CAST($2 AS BIGINT) > 0`, s.Org.Bytes(), twice)
	}
}

// instants are those that stand in columns of the organisation, in their order.
func (s *clocked) instants(columns []string) []time.Time {
	s.Helper()
	var all []time.Time
	for _, c := range columns {
		for _, text := range s.Strings(`SELECT COALESCE(CAST(v AS TEXT), '') FROM (SELECT `+strings.Replace(c, " FROM", " AS v FROM", 1)+` WHERE org_id = $1) AS x`, s.Org.Bytes()) {
			if text == "" {
				continue
			}

			micros, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				s.Fatal(err)
			}
			all = append(all, time.UnixMicro(micros).UTC())
		}
	}

	slices.SortFunc(all, time.Time.Compare)

	return all
}

// firstAfter is the first of instants in their order after one, zero for none.
func firstAfter(instants []time.Time, after time.Time) time.Time {
	for _, at := range instants {
		if at.After(after) {
			return at
		}
	}
	return time.Time{}
}

// asksFor asks a job by itself, together with the others, and with all that waits.
func (s *clocked) asksFor(org flex.OrgID, j job, after, want time.Time) {
	s.Helper()
	for _, how := range []string{"by itself", "together", "with all that waits"} {
		err := s.app.DB.Read(s.T.Context(), org, func(tx *store.Tx) error {
			if how != "by itself" {
				if _, err := tx.AskDue(s.T.Context(), after, how != "together"); err != nil {
					return err
				}
			}

			got, err := j.next(tx, s.T.Context(), after)
			if !got.Equal(want) {
				s.Errorf("%s after %v, asked %s: %v, want %v", j.Name, after, how, got, want)
			}
			return err
		})
		if err != nil {
			s.Fatal(err)
		}
	}
}
