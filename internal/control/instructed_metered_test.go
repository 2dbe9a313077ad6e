package control

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// twoDays are readings of an asset one after the other, of which some are missing.
func twoDays(asset flex.AssetID, label flex.Label, from time.Time, length time.Duration) (rs []flex.Reading) {
	r := rand.New(rand.NewPCG(uint64(length), 1))
	for at := from; at.Before(from.Add(48 * time.Hour)); at = at.Add(length) {
		if r.IntN(40) > 0 {
			span := flex.Span{From: at, To: at.Add(length)}
			rs = append(rs, flex.Reading{AssetID: asset, Span: span, Label: label, Value: flex.Micro(r.IntN(3_000_000))})
		}
	}

	return rs
}

// TestMeteredOf reads what meters say of some time, and all that they say of two days: of the half-hours of that time both are the same.
func TestMeteredOf(t *testing.T) {
	start := time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(
			t,
			url,
			store.Options{Environment: flex.Sandbox, Now: func() time.Time { return start.Add(48 * time.Hour) }},
		)
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site(flex.FullScheduleMethod)
		was := []store.Called{
			{AssetID: seed.Asset(site, flex.Charger, 7400)},
			{AssetID: seed.Asset(site, flex.Battery, 5000), Battery: true},
			{AssetID: seed.Asset(site, flex.HeatPump, 3000), Heater: true},
		}

		rs := twoDays(was[0].AssetID, flex.ChargerEnergy, start, flex.HalfHour)
		rs = append(rs, twoDays(was[1].AssetID, flex.BatteryInverterPower, start, 7*time.Minute)...)
		rs = append(rs, twoDays(was[2].AssetID, flex.HeatPower, start, 100*time.Minute)...)
		err := db.Write(
			t.Context(),
			seed.Org,
			func(tx *store.Tx) error { return tx.PutReadings(t.Context(), rs) },
		)
		if err != nil {
			t.Fatal(err)
		}

		all := halfHoursBy(rs)
		for _, c := range []struct{ from, to time.Duration }{
			{17 * time.Hour, 19 * time.Hour},
			{17*time.Hour + 10*time.Minute, 19*time.Hour + time.Minute}, // touches 17:00 and 19:00
			{22*time.Hour + 45*time.Minute, 26 * time.Hour},
		} {
			span := flex.Span{From: start.Add(c.from), To: start.Add(c.to)}
			var found map[flex.AssetID]map[flex.Period]flex.WattHours
			err := db.Read(t.Context(), seed.Org, func(tx *store.Tx) (err error) {
				found, err = meteredOf(t.Context(), tx, was, span)
				return err
			})

			if err != nil {
				t.Fatal(err)
			}
			if known := sameIn(t, span, found, all); known < 8 {
				t.Errorf("%v: only %d are known", span, known)
			}
		}
	})
}

// sameIn compares what is found of the half-hours that a span touches with all that is known, and returns how many of them are.
func sameIn(t *testing.T, span flex.Span, found, all map[flex.AssetID]map[flex.Period]flex.WattHours) (known int) {
	t.Helper()
	for id := range all {
		for p := flex.PeriodAt(span.From); p.Start().Before(span.To); p = p.Add(1) {
			want, is := all[id][p]
			if e, ok := found[id][p]; ok != is || e != want {
				t.Errorf("%v: %d Wh (%v), not %d (%v)", p.Start(), e, ok, want, is)
			}
			if is {
				known++
			}
		}
	}

	return known
}

// TestAddRegistered has a charger whose register alone is read: a half-hour at both ends of which it was read is known, another is not,
// and the charger's own half-hour counts before it.
func TestAddRegistered(t *testing.T) {
	start := time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(
			t,
			url,
			store.Options{Environment: flex.Sandbox, Now: func() time.Time { return start.Add(4 * time.Hour) }},
		)
		seed := storetest.NewSeed(t, db, url)
		asset := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400)
		was := []store.Called{{AssetID: asset}}

		var rs []flex.Reading
		for minutes, kwh := range map[int]float64{0: 1000, 30: 1001.5, 50: 1003, 60: 1003.5, 90: 1003.5, 150: 1005} {
			at := start.Add(time.Duration(minutes) * time.Minute)
			rs = append(rs, flex.Reading{AssetID: asset, Span: flex.Span{From: at, To: at}, Label: flex.ChargerRegister, Value: flex.Micro(kwh * 1e6)})
		}

		own := flex.Span{From: start.Add(time.Hour), To: start.Add(time.Hour + flex.HalfHour)}
		rs = append(rs, flex.Reading{AssetID: asset, Span: own, Label: flex.ChargerEnergy, Value: 250_000})
		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error { return tx.PutReadings(t.Context(), rs) })
		if err != nil {
			t.Fatal(err)
		}

		var found map[flex.AssetID]map[flex.Period]flex.WattHours
		err = db.Read(t.Context(), seed.Org, func(tx *store.Tx) (err error) {
			span := flex.Span{From: start, To: start.Add(150 * time.Minute)}
			found, err = meteredOf(t.Context(), tx, was, span)
			if err != nil {
				return err
			}
			return addRegistered(t.Context(), tx, was, span, found)
		})

		if err != nil {
			t.Fatal(err)
		}

		want := map[flex.Period]flex.WattHours{}
		for n, e := range []flex.WattHours{1500, 2000, 250} {
			want[flex.PeriodAt(start).Add(n)] = e
		}
		if !maps.Equal(found[asset], want) {
			t.Errorf("%v are known, not %v", found[asset], want)
		}
	})
}
