package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// moved is all that goes of an organisation to another cell.
func moved(t *testing.T, db *store.DB, org flex.OrgID) string {
	t.Helper()
	var out bytes.Buffer
	err := db.ReadAll(t.Context(), func(all *store.All) error {
		return store.ExportMoved(t.Context(), all, org, &out)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// filledWhole makes an organisation with rows in every table that goes to another cell.
func filledWhole(t *testing.T, db *store.DB, name string, rows ...int) flex.OrgID {
	t.Helper()
	org, err := db.AddOrg(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	err = db.WriteAll(t.Context(), func(all *store.All) error {
		return store.FillMoved(t.Context(), all, org.ID, rows)
	})
	if err != nil {
		t.Fatal(err)
	}
	return org.ID
}

// errUndone has a transaction be rolled back that could have been committed.
var errUndone = errors.New("it could be committed")

// attempt says what comes of a statement for an organisation, and undoes it.
func attempt(ctx context.Context, db *store.DB, statement string, org flex.OrgID) error {
	return db.WriteAll(ctx, func(all *store.All) error {
		if err := store.Exec(ctx, all, statement, org.Bytes()); err != nil {
			return err
		}
		return errUndone
	})
}

// attempts counts the tables whose rows can be written, and those where the fence refuses it.
func attempts(t *testing.T, db *store.DB, org flex.OrgID) (written, refused int) {
	t.Helper()
	for table, of := range store.Moved() {
		switch err := attempt(t.Context(), db, store.SameValue(table, of), org); {
		case errors.Is(err, errUndone):
			written++
		case flex.OnlyMoves(err):
			refused++
		}
	}
	return written, refused
}

// An organisation with rows in every table goes to another cell: in between nothing of it can be
// written in either, by whatever statement, and everything of another can; afterwards it is the
// same there, and nothing of it is left.
func TestCell_EveryTable(t *testing.T) {
	t.Cleanup(store.WithoutLaws())
	for _, e := range portableEngines {
		t.Run(e.name, func(t *testing.T) {
			ctx := t.Context()
			from, to := unlawful(t, e.from(t), 1), unlawful(t, e.to(t), 2)
			org := filledWhole(t, from, "first", 1, 2)

			other := filledWhole(t, from, "second", 11)
			before, theirs := moved(t, from, org), moved(t, from, other)
			tables := len(store.Moved())
			free, _ := attempts(t, from, org) // triggers keep what is booked from every change
			if free < tables-10 {
				t.Fatalf("rows of %d tables of %d can be written at all", free, tables)
			}

			fenced := func(db *store.DB, step string) {
				t.Helper()
				if written, refused := attempts(t, db, org); written > 0 || refused < free {
					t.Errorf("%s: rows of %d tables can be written, of %d refused; want 0 and at least %d of %d", step, written, refused, free, tables)
				}
			}
			number, err := from.Leave(ctx, org, "new")
			if err != nil {
				t.Fatal(err)
			}

			fenced(from, "leaving")
			if written, _ := attempts(t, from, other); written != free {
				t.Errorf("of another organisation rows of %d tables can be written, of %d before", written, free)
			}
			mark := store.CellMove{Org: org, Other: "old", Number: number}
			went, err := to.Arrive(ctx, mark, from)
			if err != nil {
				t.Fatal(err)
			}
			fenced(from, "leaving still")
			fenced(to, "arriving")

			if err := from.Go(ctx, mark, went); err != nil {
				t.Fatal(err)
			}
			fenced(from, "gone")
			fenced(to, "arriving still")
			if err := to.Arrived(ctx, org); err != nil {
				t.Fatal(err)
			}

			if written, _ := attempts(t, to, org); written != free {
				t.Errorf("in the new cell rows of %d tables can be written, of %d before", written, free)
			}
			if err := from.Forget(ctx, org); err != nil {
				t.Fatal(err)
			}

			if got := moved(t, to, org); got != before {
				t.Errorf("what came is another:\n%s\n%s", got, before)
			}
			if moved(t, from, other) != theirs {
				t.Error("the other organisation was changed")
			}

			for table, of := range store.Moved() {
				var n int
				err := from.ReadAll(ctx, func(all *store.All) error {
					return store.ReadValue(ctx, all, &n, `SELECT count(*) FROM `+table+` WHERE `+of, org.Bytes())
				})
				if err != nil || n > 0 {
					t.Errorf("the old cell has %d rows of %s: %v", n, table, err)
				}
			}
		})
	}
}

// A row that was changed past the fence is noticed before the decision, which is not made; and a
// mover whose move another has taken up decides nothing.
func TestCell_Planted(t *testing.T) {
	t.Cleanup(store.WithoutLaws())
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		from, to := unlawful(t, url, 1), unlawful(t, storetest.SQLite(t), 2)
		org := filledWhole(t, from, "first", 1)
		number, err := from.Leave(ctx, org, "new")
		if err != nil {
			t.Fatal(err)
		}

		mark := store.CellMove{Org: org, Other: "old", Number: number}
		went, err := to.Arrive(ctx, mark, from)
		if err != nil {
			t.Fatal(err)
		}

		trigger := fmt.Sprintf("cell_%s_update", hexOf(org))
		drop := "DROP TRIGGER " + trigger + "_site"
		if from.Engine() == "postgres" {
			drop = "DROP TRIGGER " + trigger + " ON site"
		}

		for _, statement := range []string{drop, `UPDATE site SET postcode = 'AB1 2CD'`} {
			if err := storetest.Exec(t, url, statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := from.Go(ctx, mark, went); flex.KindOf(err) != flex.Conflict {
			t.Errorf("with a changed row: %v", err)
		}

		if _, err := from.Leave(ctx, org, "new"); err != nil {
			t.Fatal(err)
		}
		if err := to.Discard(ctx, org, number); err != nil {
			t.Fatal(err)
		}

		again, err := to.Arrive(ctx, mark, from)
		if err != nil {
			t.Fatal(err)
		}
		if err := from.Go(ctx, mark, again); flex.KindOf(err) != flex.Conflict {
			t.Errorf("by the number of an earlier attempt: %v", err)
		}
	})
}

// While an organisation moves, prices come in for all others, a process begins, and other
// parties' servers are asked; what could not be marked of its own events is marked when it
// stays.
func TestCell_OthersGoOn(t *testing.T) {
	t.Cleanup(store.WithoutLaws())
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		db := unlawful(t, url, 1)
		org := filledWhole(t, db, "first", 1, 2)
		first := flex.PeriodAt(db.Now())
		at := storetest.At(t, db, url)

		at.Exec(`UPDATE flex_event SET from_at = $1, to_at = $2, version = 1, look_at = NULL`, first.Start().UnixMicro(), first.End().UnixMicro())
		at.Exec(`UPDATE outbox SET holder = 5, turn_at = 1`)
		at.Exec(`UPDATE idempotency SET status = 0, committed = 0`)
		number, err := db.Leave(ctx, org, "new")
		if err != nil {
			t.Fatal(err)
		}

		err = db.WriteAll(ctx, func(all *store.All) error {
			p := store.Publication{Source: "test", PublishedAt: all.Now(), Span: flex.Span{From: first.Start(), To: first.End()}}
			_, err := all.AddPublication(ctx, p, []flex.PricedPeriod{{Period: first, Price: 5, Known: true}})
			return err
		})
		if err != nil {
			t.Errorf("prices do not come in: %v", err)
		}
		if err := db.WriteAll(ctx, func(all *store.All) error { return all.DropLeases(ctx) }); err != nil {
			t.Errorf("a process cannot begin: %v", err)
		}

		if err := db.FreeKeysInFlight(ctx); err != nil {
			t.Errorf("a process cannot begin: %v", err)
		}
		err = db.WriteAll(ctx, func(all *store.All) error {
			_, err := all.TakeADRUpstreams(ctx)
			return err
		})
		if err != nil {
			t.Errorf("no server is asked: %v", err)
		}

		if err := db.Stay(ctx, org, number+1); flex.KindOf(err) != flex.Conflict {
			t.Errorf("by another's number: %v", err)
		}
		if err := db.Stay(ctx, org, number); err != nil {
			t.Fatal(err)
		}
		if n := at.Count(`SELECT count(*) FROM flex_event WHERE look_at IS NULL`); n > 0 {
			t.Errorf("%d settled events are not looked at again for the prices that came in meanwhile", n)
		}
	})
}

// What is listed of an organisation's metering points goes with it where the new cell does not
// know them: by it a site's GSP group is found.
func TestCell_Meters(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx, fromURL := t.Context(), storetest.SQLite(t)
		from := storetest.Open(t, fromURL, store.Options{Environment: flex.Sandbox})
		to := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})

		list := func(db *store.DB, gsp string, mpans ...string) {
			t.Helper()
			err := db.WriteAll(ctx, func(all *store.All) error {
				var ms []flex.Meter
				for _, m := range mpans {
					ms = append(ms, flex.Meter{MPAN: m, Import: true, GSPGroup: gsp})
				}
				return all.PutMeters(ctx, ms)
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		mpans := []string{"1012345678901", "1012345678912"}
		list(from, "_A", mpans...)
		list(to, "_B", mpans[1])
		seed := storetest.NewSeed(t, from, fromURL)
		for _, m := range mpans {
			site := seed.Site()
			seed.Exec(`UPDATE site SET mpan = $1 WHERE id = $2`, seed.Kept("site", "mpan", m), site.Bytes())
		}

		number, err := from.Leave(ctx, seed.Org, "new")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Arrive(ctx, store.CellMove{Org: seed.Org, Other: "old", Number: number}, from); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"_A", "_B"} {
			if m, err := to.MeterByMPAN(ctx, mpans[i]); err != nil || m.GSPGroup != want {
				t.Errorf("%s is in the GSP group %q, want %q: %v", mpans[i], m.GSPGroup, want, err)
			}
		}
	})
}

// A cell takes over the publications of home as they are, each once.
func TestCopyPublications(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx, homeURL := t.Context(), storetest.SQLite(t)
		home := storetest.Open(t, homeURL, store.Options{})
		away := storetest.Open(t, url, store.Options{})

		add := func(db *store.DB, source string, price flex.Price) {
			t.Helper()
			first := flex.PeriodAt(db.Now())
			prices := []flex.PricedPeriod{{Period: first, Price: price, Known: true, Derived: true}, {Period: first.Add(1)}}
			err := db.WriteAll(ctx, func(all *store.All) error {
				span := flex.Span{From: first.Start(), To: first.Add(1).End()}
				_, err := all.AddPublication(ctx, store.Publication{Source: source, PublishedAt: db.Now(), Span: span, Preliminary: true}, prices)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		rows := func(db *store.DB, url, source string) []string {
			return storetest.At(t, db, url).Strings(`SELECT CAST(p.published_at AS text) || ' ' || CAST(p.fetched_at AS text) || ' ' || CAST(q.start_at AS text) || ' ' || COALESCE(CAST(q.price AS text), '')
				FROM publication p JOIN price q ON q.publication_id = p.id JOIN price_source s ON s.name = p.source
				WHERE p.source = '` + source + `' AND p.preliminary ORDER BY p.id, q.start_at`)
		}

		add(away, "own", 7)
		for i := range 3 {
			add(home, "home", flex.Price(i))
			if n, err := away.CopyPublications(ctx, home); n != 1 || err != nil {
				t.Errorf("%d publications, %v", n, err)
			}
		}

		if n, err := away.CopyPublications(ctx, home); n != 0 || err != nil {
			t.Errorf("a second time: %d publications, %v", n, err)
		}
		if got, want := rows(away, url, "home"), rows(home, homeURL, "home"); !slices.Equal(got, want) || len(got) != 6 {
			t.Errorf("the cell has %v, and home %v", got, want)
		}
		if got := rows(away, url, "own"); len(got) != 2 {
			t.Errorf("its own are %v", got)
		}
	})
}
