package app

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// After a turn, and after what is due was done without one, no job finds anything to do: none needs to be run
// to find out.
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
					h.jobs[i].next, h.jobs[i].waits = never, nil
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
			if r.Did > 0 && !slices.Contains(names, j.Name) {
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
				turn := turning{App: s.app, org: s.Org, thorough: thorough}
				together, err := turn.look(t.Context())
				if err != nil {
					t.Fatal(err)
				}

				alone := agenda{now: together.now, at: make([]time.Time, len(s.app.jobs))}
				err = s.app.DB.Read(t.Context(), s.Org, func(tx *store.Tx) error {
					return turn.ask(t.Context(), tx, &alone, time.Time{}, func(int) bool { return true })
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
