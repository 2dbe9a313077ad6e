package reward_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Settled together, a site at a time, or at another's side, events come to the same bytes:
// what is read at a stroke for many does not show in any. The sites are metered in all ways,
// with holes, pieces that do not begin with a half-hour, and a boundary that two assets tell.
func TestSettleAgain_TogetherOrAlone(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		random := rand.New(rand.NewPCG(7, 7))
		first := flex.Day{Year: 2025, Month: 9, Dom: 20} // over a clock change
		const days, sites = 45, 8
		now := first.Add(days).Start()
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		seed.Exec(`INSERT INTO model (key, name, type, cop11) VALUES ('m', 'm', 'charger', TRUE)`)
		var of []flex.SiteID
		var rs []flex.Reading

		for i := range sites {
			site := seed.Site()
			of = append(of, site)
			a := seed.Asset(site, flex.Charger, 0)
			if i%4 == 0 {
				seed.Exec(`UPDATE asset SET model = 'm', installed_on = '2025-01-01' WHERE id = $1`, a.Bytes())
			}
			rs = append(rs, someReadings(random, a, i, first, days)...)
			if i%3 == 0 {
				rs = append(rs, someReadings(random, seed.Asset(site, flex.Battery, 0), i+1, first, days)...)
			}
		}

		seed.Consent(time.UnixMicro(1))
		for d := 15; d < days; d += 4 {
			n := 1 + random.IntN(44)
			seed.Events(first.Add(d), n, n+random.IntN(3))
		}
		if err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error { return tx.PutReadings(t.Context(), rs) }); err != nil {
			t.Fatal(err)
		}

		service := &reward.Service{DB: db}
		results := func(site flex.SiteID, from, to flex.Day) map[flex.FlexEventID]store.Settlement {
			t.Helper()
			run, err := service.Resettle(t.Context(), seed.Org, reward.Resettlement{Site: site, From: from, To: to})
			if err != nil {
				t.Fatal(err)
			}

			found := map[flex.FlexEventID]store.Settlement{}
			err = db.Read(t.Context(), seed.Org, func(tx *store.Tx) error {
				ss, err := tx.SettlementsIn(context.Background(), run.ID)
				for _, s := range ss {
					found[s.Event] = s
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return found
		}

		together := results(flex.SiteID{}, first, first.Add(days))
		alone, ways := 0, map[settle.Metering]int{}

		for d := 15; d < days; d += 4 {
			for _, site := range of {
				for id, s := range results(site, first.Add(d), first.Add(d)) {
					alone++
					ways[s.Result.Metering]++
					if all := together[id]; all.Hash != s.Hash || !bytes.Equal(all.Result.AppendText(nil), s.Result.AppendText(nil)) {
						t.Errorf("alone:\n%s\ntogether:\n%s", s.Result.AppendText(nil), all.Result.AppendText(nil))
					}
				}
			}
		}

		if alone != len(together) || ways[settle.Boundary] == 0 || ways[settle.Asset] == 0 {
			t.Errorf("%d events alone, %d together, metered as %v", alone, len(together), ways)
		}
	})
}

// someReadings makes an asset's readings, a way of metering for each number.
func someReadings(random *rand.Rand, a flex.AssetID, way int, first flex.Day, days int) (rs []flex.Reading) {
	labels := [][]flex.Label{
		{flex.ChargerEnergy}, {flex.BoundaryImportPower, flex.ChargerEnergy}, {flex.BoundaryImportRegister, flex.BoundaryExportRegister},
		{flex.ChargerRegister}, {flex.ProvisionalConsumption}, {flex.BatteryInverterPower, flex.ChargerRegister},
	}[way%6]
	begin, end := flex.PeriodAt(first.Start()), flex.PeriodAt(first.Add(days).Start())
	mark := flex.Micro(0)

	for p := begin; p.Before(end); p = p.Add(1) {
		mark += flex.Micro(random.IntN(3_000_000))

		for _, label := range labels {
			if random.IntN(200) == 0 {
				continue
			}

			r := flex.Reading{AssetID: a, Label: label, Span: p.Span(), Value: flex.Micro(random.IntN(3_000_000))}
			switch label {
			case flex.BoundaryImportRegister, flex.BoundaryExportRegister, flex.ChargerRegister:
				r.Span, r.Value = flex.Span{From: p.Start(), To: p.Start()}, mark
			case flex.BoundaryImportPower, flex.BatteryInverterPower: // pieces of forty minutes
				if p.Sub(begin)%4 != 0 {
					continue
				}

				for range 3 {
					r.To = r.From.Add(40 * time.Minute)
					rs = append(rs, r)
					r.From = r.To
				}
				continue
			}

			rs = append(rs, r)
		}
	}
	return rs
}

// A range longer than a year is refused before anything is read, with what would be right.
func TestSettleAgain_Range(t *testing.T) {
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, store.Options{})
	seed := storetest.NewSeed(t, db, url)
	service := &reward.Service{DB: db}
	day := func(text string) flex.Day {
		d, err := flex.ParseDay(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}

	for _, c := range []struct {
		from, to string
		want     string // of the refusal
	}{
		{"2025-01-01", "2026-01-01", ""}, // 366 days, both included
		{"2025-01-01", "2026-01-02", "is 367 days: at most 366"},
		{"0001-01-01", "9999-12-31", "is 3652059 days"},
		{"0026-01-01", "2026-01-31", "at most 366"},
		{"2026-01-02", "2026-01-01", "is before the first"},
	} {
		again := reward.Resettlement{From: day(c.from), To: day(c.to)}
		_, err := service.Resettle(t.Context(), seed.Org, again)
		_, repaired := service.Repair(t.Context(), seed.Org, again)

		for _, err := range []error{err, repaired} {
			if (err == nil) != (c.want == "") || err != nil && (flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s to %s: %v", c.from, c.to, err)
			}
		}
	}
}
