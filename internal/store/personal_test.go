package store_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Every table is known to hold something of a site or not to: a new one without a word on
// it fails here, and would be missing from exports and erasures.
func TestPersonal_EveryTableIsPlaced(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		err := db.ReadAll(t.Context(), func(all *store.All) error {
			names, err := all.TablesNotListed(t.Context())
			if len(names) > 0 {
				t.Errorf("tables that nobody has placed: %v", names)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// What is kept of a site is found without reading what is stored of all, but in tables that
// hold little.
func TestPersonal_FoundByIndexes(t *testing.T) {
	small := []string{"balance_link", "cap_change", "idempotency", "job", "mail", "refused_reading"}
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, store.Options{})
	raw, err := sql.Open("sqlite", strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()

	var statements map[string][]string
	err = db.ReadAll(t.Context(), func(all *store.All) error {
		var err error
		statements, err = store.FoundBy(t.Context(), all)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	for table, of := range statements {
		for _, statement := range of {
			for _, step := range stepsOf(t, raw, statement) {
				if strings.HasPrefix(step, "SCAN "+table) && !slices.Contains(small, table) {
					t.Errorf("%s: %s", statement, step)
				}
			}
		}
	}
}

// stepsOf are all steps by which SQLite runs a statement on one id.
func stepsOf(t *testing.T, db *sql.DB, statement string) []string {
	t.Helper()
	found, err := db.Query("EXPLAIN QUERY PLAN "+statement, make([]byte, 16))
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	defer found.Close()

	var steps []string
	for found.Next() {
		var id, parent, unused int
		var step string
		if err := found.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}

	return steps
}

// An erasure in several transactions takes all readings of a site's assets: of half-hours, of
// registers and powers, and provisional energies of any time, at the edges of its steps too.
// Those of others stay.
func TestErase_Readings(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site, other := seed.Site(), seed.Site()
		assets := []flex.AssetID{seed.Asset(site, flex.Charger, 7400), seed.Asset(site, flex.Battery, 5000), seed.Asset(other, flex.Charger, 7400)}
		first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

		for _, a := range assets {
			for _, day := range []int{0, 9, 10, 25} {
				at := first.AddDate(0, 0, day)
				for label, from := range map[int]time.Time{
					1:  at,
					2:  at.Add(7*time.Minute + 13*time.Second),
					12: at.Add(11 * time.Hour),
					15: at.Add(24*time.Hour - time.Minute),
				} {
					seed.Exec(`INSERT INTO reading VALUES ($1, $2, $3, 1800, 5, 1)`, from.UnixMicro(), a.Bytes(), label)
				}
			}
		}

		exported := func() int {
			t.Helper()
			var n int
			err := db.ReadAll(ctx, func(all *store.All) error {
				held, err := all.Export(ctx, site)
				n = len(held["reading"])
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}

		if _, err := db.Erase(ctx, site); flex.KindOf(err) != flex.Conflict {
			t.Errorf("a registered site was erased: %v", err)
		}
		if n := exported(); n != 32 {
			t.Errorf("the export has %d readings, want 32", n)
		}

		seed.Exec(`INSERT INTO former_asset (id, org_id, site_id, cop11, gone_at) SELECT id, org_id, site_id, FALSE, 0 FROM asset WHERE site_id = $1`, site.Bytes())
		seed.Exec(`DELETE FROM asset WHERE site_id = $1`, site.Bytes())
		seed.Exec(`DELETE FROM site WHERE id = $1`, site.Bytes())

		for _, want := range []int64{34, 0} { // with the two former assets; and once more
			if n, err := db.Erase(ctx, site); err != nil || n != want {
				t.Errorf("%d rows are erased, want %d: %v", n, want, err)
			}
		}
		if n := exported() + seed.Count(`SELECT count(*) FROM reading`); n != 16 {
			t.Errorf("%d readings are left, want the other site's 16", n)
		}
	})
}

// From its first step on, an erasure leaves nothing of a site to be credited, or taken back,
// on what is left of its readings: it may be cut short, and its time be settled again. That
// holds where an organisation needs no consents, too.
func TestErase_SettlesNoMore(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site()
		asset := seed.Asset(site, flex.Charger, 7400)
		session := flex.SessionID{7}

		seed.Exec(`INSERT INTO consent_span (site_id, org_id, from_at, known_at) VALUES ($1, $2, 1, 1)`, site.Bytes(), seed.Org.Bytes())
		seed.Exec(`INSERT INTO reckoning (session_id, org_id, asset_id, site_id, from_at, to_at) VALUES ($1, $2, $3, $4, 1000000, 2000000)`,
			session.Bytes(), seed.Org.Bytes(), asset.Bytes(), site.Bytes())
		seed.Exec(`INSERT INTO former_asset (id, org_id, site_id, cop11, gone_at) SELECT id, org_id, site_id, FALSE, 0 FROM asset`)
		seed.Exec(`DELETE FROM asset`)
		seed.Exec(`DELETE FROM site`)

		settles := func(want bool) {
			t.Helper()

			for _, exempt := range []bool{false, true} {
				seed.Exec(`UPDATE org SET consent_exempt = $1`, exempt)
				var r store.SessionSettlement
				err := db.Read(ctx, seed.Org, func(tx *store.Tx) error {
					var err error
					r, err = tx.SessionSettlement(ctx, session)
					return err
				})
				if err != nil || r.Consented != want {
					t.Errorf("with no need of a consent %v: settled %v, want %v: %v", exempt, r.Consented, want, err)
				}
			}
		}

		settles(true)
		if err := db.WriteAll(ctx, func(all *store.All) error { return store.BeginErasure(ctx, all, site) }); err != nil {
			t.Fatal(err)
		}
		settles(false)
	})
}

// What an erased car was counted for under caps takes nothing from others any more, though
// nobody has counted since it was offboarded.
func TestErase_CapSums(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site()
		asset := seed.Asset(site, flex.Charger, 7400)
		ahead := db.Now().Unix()/60/240 + 1 // the number of a block of 240 minutes that has not begun

		seed.Exec(`INSERT INTO caps (org_id, fleet_w, fleet_starts, traded, version, summed_at) VALUES ($1, 22000, 0, '[]', 0, 1)`, seed.Org.Bytes())
		seed.Exec(`INSERT INTO cap_part (asset_id, org_id, group_name, steps, power_w, running) VALUES ($1, $2, '', '', 7400, TRUE)`,
			asset.Bytes(), seed.Org.Bytes())
		seed.Exec(`INSERT INTO cap_sum (org_id, group_name, block, load, starts) VALUES ($1, '', $2, '240x7400', '240x0')`, seed.Org.Bytes(), ahead)
		seed.Exec(`INSERT INTO cap_change (org_id, id, asset_id) VALUES ($1, $2, $3)`, seed.Org.Bytes(), asset.Bytes(), asset.Bytes())

		seed.Exec(`INSERT INTO former_asset (id, org_id, site_id, cop11, gone_at) SELECT id, org_id, site_id, FALSE, 0 FROM asset`)
		seed.Exec(`DELETE FROM asset`)
		seed.Exec(`DELETE FROM site`)

		if _, err := db.Erase(ctx, site); err != nil {
			t.Fatal(err)
		}
		if n := seed.Count(`SELECT count(*) FROM caps WHERE summed_at IS NOT NULL`); n != 0 {
			t.Error("the sums still count the erased car")
		}
		if findings, err := db.Verify(ctx); err != nil || len(findings) > 0 {
			t.Errorf("after the erasure: %v, %v", findings, err)
		}
	})
}

// A half-hour that was settled by an asset's own meter counts against no capacity of the site,
// nor does it once the asset is erased.
func TestErase_OwnMeter(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site()
		asset := seed.Asset(site, flex.Charger, 7400)
		day := flex.DayAt(db.Now())
		at := day.Period(20).Start().UnixMicro()

		seed.Events(day, 20, 20)
		seed.Exec(`INSERT INTO deviation (site_id, meter_id, at, org_id, metered_wh, baseline_wh, apart_wh, deviation_wh, unassigned_wh, import_wh, export_wh)
			VALUES ($1, $2, $3, $4, 1000, 1000, 0, 0, 0, 3700, 0)`, site.Bytes(), asset.Bytes(), at, seed.Org.Bytes())
		seed.Exec(`INSERT INTO supply (site_id, org_id, import_w, export_w, known_at, from_at) VALUES ($1, $2, 10000, 0, $3, $4)`,
			site.Bytes(), seed.Org.Bytes(), at+1, at+1)
		seed.Exec(`INSERT INTO former_asset (id, org_id, site_id, cop11, gone_at) SELECT id, org_id, site_id, TRUE, 0 FROM asset`)
		seed.Exec(`DELETE FROM asset`)
		seed.Exec(`DELETE FROM site`)

		if findings, err := db.Verify(ctx); err != nil || len(findings) > 0 {
			t.Fatalf("before the erasure: %v, %v", findings, err)
		}
		if _, err := db.Erase(ctx, site); err != nil {
			t.Fatal(err)
		}
		if findings, err := db.Verify(ctx); err != nil || len(findings) > 0 {
			t.Errorf("after the erasure: %v, %v", findings, err)
		}
	})
}

// With a site's assets the dispatches go that had no other asset, and an export has when they
// were. One of others' assets too stays theirs.
func TestErase_Dispatches(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site, other := seed.Site(), seed.Site()
		battery, others := seed.Asset(site, flex.Battery, 5000), seed.Asset(other, flex.Battery, 5000)
		own, shared := flex.EventID{1}, flex.EventID{2}

		for _, d := range []struct {
			id     flex.EventID
			assets []flex.AssetID
		}{{own, []flex.AssetID{battery}}, {shared, []flex.AssetID{battery, others}}} {
			seed.Exec(`INSERT INTO dispatch (event_id, org_id, market, issued_at, from_at, to_at, batch) VALUES ($1, $2, 'm', 1, 2, 3, $3)`,
				d.id.Bytes(), seed.Org.Bytes(), len(d.assets) > 1)
			for _, a := range d.assets {
				seed.Exec(`INSERT INTO dispatch_asset (event_id, asset_id, org_id, power_w) VALUES ($1, $2, $3, 100)`, d.id.Bytes(), a.Bytes(), seed.Org.Bytes())
			}
		}

		err := db.ReadAll(ctx, func(all *store.All) error {
			exported, err := all.Export(ctx, site)
			if n := len(exported["dispatch"]); n != 2 {
				t.Errorf("the export has %d dispatches, want 2", n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		seed.Exec(`INSERT INTO former_asset (id, org_id, site_id, cop11, gone_at) SELECT id, org_id, site_id, FALSE, 0 FROM asset WHERE site_id = $1`, site.Bytes())
		seed.Exec(`DELETE FROM asset WHERE site_id = $1`, site.Bytes())
		seed.Exec(`DELETE FROM site WHERE id = $1`, site.Bytes())
		if _, err := db.Erase(ctx, site); err != nil {
			t.Fatal(err)
		}

		if n := seed.Count(`SELECT count(*) FROM dispatch`); n != 1 {
			t.Errorf("%d dispatches are left, want the one of the other site's battery", n)
		}
		if findings, err := db.Verify(ctx); err != nil || len(findings) > 0 {
			t.Errorf("after the erasure: %v, %v", findings, err)
		}
	})
}

// After an erasure the canary is in no byte of the store's files, and an export beforehand
// had it.
func TestErase_LeavesNoByte(t *testing.T) {
	const canary = "CANARY-7f3a"
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site(flex.FullScheduleMethod)
		asset := seed.Asset(site, flex.Charger, 7400)

		seed.Exec(`UPDATE site SET address = $1, email = $1, postcode = $1 WHERE id = $2`, canary, site.Bytes())
		seed.Exec(`UPDATE asset SET serial_number = $1 WHERE id = $2`, canary, asset.Bytes())
		key := [32]byte{1}
		_, claim, err := db.ClaimKey(ctx, seed.Org, "k", key)
		if err != nil {
			t.Fatal(err)
		}

		if err := db.StoreAnswer(ctx, claim, flex.StoredAnswer{Status: 200, Answer: []byte(canary), About: []flex.SiteID{flex.SiteID(asset)}}); err != nil {
			t.Fatal(err)
		}
		all := func(fn func(*store.All) error) {
			t.Helper()
			if err := db.WriteAll(ctx, fn); err != nil {
				t.Fatal(err)
			}
		}

		all(func(all *store.All) error {
			if _, err := all.Erase(ctx, site); flex.KindOf(err) != flex.Conflict {
				t.Errorf("a registered site was erased: %v", err)
			}
			held, err := all.Export(ctx, site)
			if err != nil {
				return err
			}

			if len(held["idempotency"]) != 1 {
				t.Errorf("the export names %d answers that are kept", len(held["idempotency"]))
			}
			b, err := json.Marshal(held)
			if n := strings.Count(string(b), canary); n != 4 {
				t.Errorf("the export has the canary %d times, want 4: %s", n, b)
			}
			return err
		})

		seed.Exec(`DELETE FROM asset WHERE site_id = $1`, site.Bytes())
		seed.Exec(`DELETE FROM dispatch_method WHERE site_id = $1`, site.Bytes())
		seed.Exec(`DELETE FROM site WHERE id = $1`, site.Bytes())
		all(func(all *store.All) error {
			_, err := all.Erase(ctx, site)
			return err
		})
		if err := db.Scrub(ctx); err != nil {
			t.Fatal(err)
		}

		if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
			for _, file := range []string{path, path + "-wal"} {
				b, err := os.ReadFile(file)
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				if bytes.Contains(b, []byte(canary)) {
					t.Errorf("%s still has the canary", file)
				}
			}
		}
	})
}

// That the log beside the file still has what was erased, as somebody else reads the database
// meanwhile, is an error.
func TestScrub_ReadMeanwhile(t *testing.T) {
	ctx := t.Context()
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, store.Options{})
	seed := storetest.NewSeed(t, db, url)
	raw, err := sql.Open("sqlite", strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()

	reader, err := raw.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	var n int
	if err := reader.QueryRowContext(ctx, `SELECT count(*) FROM site`).Scan(&n); err != nil {
		t.Fatal(err)
	}

	seed.Site()
	if err := store.ScrubAtOnce(ctx, db); flex.KindOf(err) != flex.Unavailable {
		t.Errorf("beside a reader: %v", err)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := store.ScrubAtOnce(ctx, db); err != nil {
		t.Errorf("with no reader: %v", err)
	}
}

// The metering points that a site had are kept past its erasure where it had events: what is
// metered at one is credited once.
func TestErase_MeteringPoints(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		for events, kept := range []int{0, 1} {
			site := seed.Site(flex.FullScheduleMethod)
			seed.Exec(`INSERT INTO site_point (site_id, org_id, mpan, from_at, to_at) VALUES ($1, $2, '1234567890126', 1, 2)`,
				site.Bytes(), seed.Org.Bytes())
			if events > 0 {
				seed.Asset(site, flex.Charger, 7400)
				seed.Events(flex.DayAt(db.Now()), 20, 20)
			}

			for _, table := range []string{"dispatch_method", "asset", "site"} {
				seed.Exec(`DELETE FROM ` + table)
			}
			err := db.WriteAll(t.Context(), func(all *store.All) error {
				_, err := all.Erase(t.Context(), site)
				return err
			})
			if n := seed.Count(`SELECT count(*) FROM site_point WHERE site_id = $1`, site.Bytes()); err != nil || n != kept {
				t.Errorf("%d events: %d points are kept, want %d: %v", events, n, kept, err)
			}
		}
	})
}

// What an export leaves out is flexd's: the state of an enrolment, and what account an amount is
// posted to, are the person's.
func TestExport_PersonsColumns(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site()
		seed.Exec(`INSERT INTO enrolment_change (id, org_id, site_id, proposition, state, at) VALUES ($1, $2, $1, 'full_schedule', 'withdrawn', 1)`,
			site.Bytes(), seed.Org.Bytes())

		err := db.ReadAll(t.Context(), func(all *store.All) error {
			held, err := all.Export(t.Context(), site)
			if changes := held["enrolment_change"]; err == nil && (len(changes) != 1 || changes[0]["state"] != "withdrawn") {
				t.Errorf("the site's enrolment is %v", changes)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// The name that a bank gave of a person's account is the person's: an export has it, and
// nothing where none was given.
func TestExport_AccountName(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site()

		err := db.Write(ctx, seed.Org, func(tx *store.Tx) error {
			for attempt, name := range []flex.Personal{"", "Ada Example"} {
				c := store.PayeeCheck{WithdrawalID: flex.TransactionID{1}, Attempt: attempt + 1, SiteID: site, Verdict: "close_match", Name: name}
				if err := tx.PutPayeeCheck(ctx, c); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		err = db.ReadAll(ctx, func(all *store.All) error {
			exported, err := all.Export(ctx, site)
			names := exported["bank_account"]
			if err == nil && (len(names) != 1 || names[0]["name"] != "Ada Example") {
				t.Errorf("the export has %v of the account", names)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
