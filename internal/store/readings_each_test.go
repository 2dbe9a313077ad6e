package store_test

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Queries that are answered together are answered as each alone: of several organisations'
// assets, two of one asset, over both clock changes, with registers, and with none.
func TestReadingsEach(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		seed := storetest.NewSeed(t, db, url)
		r := rand.New(rand.NewPCG(1, 2))
		days := []flex.Day{{Year: 2026, Month: 3, Dom: 28}, {Year: 2026, Month: 3, Dom: 29}, {Year: 2026, Month: 10, Dom: 24}, {Year: 2026, Month: 10, Dom: 25}}

		var cars []flex.AssetID
		for range 8 {
			cars = append(cars, seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400))
		}
		putDrawn(t, db, seed.Org, cars, days, r)

		other, err := db.AddOrg(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}

		of := seed.As(other.ID)
		theirs := []flex.AssetID{of.Asset(of.Site(flex.FullScheduleMethod), flex.Charger, 7400)}
		putDrawn(t, db, other.ID, theirs, days, r)
		cars = append(cars, theirs...)

		found := 0
		for range 40 {
			found += compareEach(t, db, seed.Org, drawQueries(r, cars, days))
		}
		if found < 100 {
			t.Errorf("only %d readings were found", found)
		}
	})
}

// putDrawn stores energies of half of the half-hours of the days, and registers of some.
func putDrawn(t *testing.T, db *store.DB, org flex.OrgID, cars []flex.AssetID, days []flex.Day, r *rand.Rand) {
	t.Helper()
	var rs []flex.Reading
	register := flex.Micro(0)

	for _, day := range days {
		for p := flex.PeriodAt(day.Start()); p.Start().Before(day.Span().To); p = p.Add(1) {
			for _, car := range cars {
				reading := flex.Reading{AssetID: car, Span: p.Span(), Label: flex.ChargerEnergy, Value: flex.Micro(r.IntN(1e6))}
				if r.IntN(3) == 0 { // a register never falls
					register += flex.Micro(r.IntN(1e6))
					reading.Label, reading.Value = flex.ChargerRegister, register
				}

				if r.IntN(2) == 0 {
					rs = append(rs, reading)
				}
			}
		}
	}

	if err := db.Write(t.Context(), org, func(tx *store.Tx) error { return tx.PutReadings(t.Context(), rs) }); err != nil {
		t.Fatal(err)
	}
}

// drawQueries draws what is asked for together.
func drawQueries(r *rand.Rand, cars []flex.AssetID, days []flex.Day) (list []store.ReadingQuery) {
	for range 1 + r.IntN(12) {
		n := 2 * r.IntN(2)
		from := days[n].Start().Add(time.Duration(r.IntN(40)) * flex.HalfHour)
		q := store.ReadingQuery{
			Assets: []flex.AssetID{cars[r.IntN(len(cars))]}, Labels: []flex.Label{flex.ChargerEnergy}, Days: days[n : n+2],
			Within: flex.Span{From: from, To: from.Add(time.Duration(r.IntN(30)) * flex.HalfHour)},
		}
		if r.IntN(2) == 0 {
			q.Labels = append(q.Labels, flex.ChargerRegister)
		}
		if r.IntN(4) == 0 {
			q.Days = q.Days[:1]
		}
		list = append(list, q)
	}

	return append(list, store.ReadingQuery{})
}

// compareEach asks together and one by one, and returns how many readings were found.
func compareEach(t *testing.T, db *store.DB, org flex.OrgID, list []store.ReadingQuery) (n int) {
	t.Helper()
	err := db.Read(t.Context(), org, func(tx *store.Tx) error {
		all, err := tx.ReadingsEach(t.Context(), list)
		for i := 0; i < len(list) && err == nil; i++ {
			var alone []flex.Reading
			alone, err = tx.Readings(t.Context(), list[i])
			if a, b := inOrder(all[i]), inOrder(alone); !slices.Equal(a, b) {
				t.Fatalf("%+v\ntogether: %v\nalone: %v", list[i], a, b)
			}
			n += len(alone)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return n
}

func inOrder(rs []flex.Reading) []flex.Reading {
	slices.SortFunc(rs, func(a, b flex.Reading) int {
		return cmp.Or(a.To.Compare(b.To), bytes.Compare(a.AssetID[:], b.AssetID[:]), cmp.Compare(a.Label, b.Label))
	})
	return rs
}
