package store_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestCalls_Numbered has instructions call assets of sites in any order, and again, and
// dispatches name them: how often a site was called is how many instructions called it.
func TestCalls_Numbered(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		s := storetest.NewSeed(t, db, url)
		var called []store.Called

		for i := range 6 {
			var site flex.SiteID
			if i%2 == 0 {
				site = s.Site(flex.FullScheduleMethod)
			} else {
				site = called[i-1].SiteID
			}
			steps := []flex.Step{{Span: flex.Span{From: now, To: now.Add(time.Hour)}}}
			called = append(called, store.Called{AssetID: s.Asset(site, flex.Charger, 7400), SiteID: site, Baseline: steps, Expected: steps})
		}

		var ids []flex.InstructionID
		add := func(id flex.InstructionID, all []store.Called) {
			t.Helper()
			if err := db.Write(t.Context(), s.Org, func(tx *store.Tx) error { return tx.AddCalled(t.Context(), id, all) }); err != nil {
				t.Fatal(err)
			}
		}

		for i := range 8 {
			from := now.Add(time.Duration(i) * time.Hour)
			in := flex.Instruction{Span: flex.Span{From: from, To: from.Add(time.Hour)}, Change: -1000, Service: "dno"}
			if err := db.Write(t.Context(), s.Org, func(tx *store.Tx) error { return tx.AddInstruction(t.Context(), &in) }); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, in.ID)
		}

		r := rand.New(rand.NewPCG(1, 2))
		for range 60 {
			some := []store.Called{called[r.IntN(6)], called[r.IntN(6)]}
			if some[0].AssetID == some[1].AssetID {
				some = some[:1]
			}
			n := r.IntN(8)
			for i := range some {
				some[i].Dispatched = n < 2
			}
			add(ids[n], some)

			for _, c := range called {
				kept := s.Count(`SELECT COALESCE(max(number), 0) FROM called_asset WHERE site_id = $1`, c.SiteID.Bytes())
				if want := s.Count(`SELECT count(DISTINCT instruction_id) FROM called_asset WHERE site_id = $1 AND NOT dispatched`, c.SiteID.Bytes()); kept != want {
					t.Fatalf("site %v was called %d times, not %d", c.SiteID, want, kept)
				}
			}
		}
		if n := s.Count(`SELECT count(*) FROM (SELECT instruction_id FROM called_asset WHERE NOT dispatched GROUP BY instruction_id, site_id HAVING min(number) < max(number)) x`); n != 0 {
			t.Errorf("%d calls have two numbers", n)
		}
	})
}

// TestCalls_Upgraded numbers the calls of a database of before.
func TestCalls_Upgraded(t *testing.T) {
	url := storetest.Postgres(t)
	err := store.Earlier(t.Context(), url, 540, func(to *sql.DB) error {
		id := func(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }
		statements := []string{"SET session_replication_role = replica"} // no organisation, no site: only calls
		for in := range 4 {
			for asset := range 4 {
				if in == 1 && asset > 1 {
					continue // that one called the first site alone
				}
				statements = append(statements, fmt.Sprintf(`INSERT INTO called_asset (instruction_id, asset_id, site_id, org_id, called_at, power_w, cost, from_at, baseline, expected, dispatched)
					VALUES ('%s', '%s', '%s', '%s', 0, 0, 0, 0, '', '', %t)`, id(in), id(asset), id(asset/2), id(9), in == 2))
			}
		}

		for _, s := range statements {
			if _, err := to.ExecContext(t.Context(), s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	s := storetest.NewSeed(t, storetest.Open(t, url, store.Options{}), url)
	got := strings.Join(s.Strings(`SELECT number::text FROM called_asset ORDER BY instruction_id, asset_id`), " ")
	if want := "1 1 1 1 2 2 0 0 0 0 3 3 2 2"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	s.Exec(`DELETE FROM called_asset`)
}
