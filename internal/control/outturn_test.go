package control_test

import (
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// TestOutturn holds a day's forecast against what came: it knows nothing of the day itself.
func TestOutturn(t *testing.T) {
	each(t, "2026-06-15T12:10:00Z", func(h *fixture) {
		h.Consent(at("2025-01-01T00:00:00Z"))
		meter := h.Asset(h.site, flex.BoundaryMeter, 0)
		today := flex.DayAt(at("2026-06-15T12:10:00Z"))
		var rs []flex.Reading

		for k := range 4 {
			for n := 1; n <= 48; n++ {
				p := today.Add(-k).Period(n)
				kw := 0.6

				if k < 2 { // from yesterday on the home draws twice as much
					kw = 1.2
				}

				if p.End().After(at("2026-06-15T12:10:00Z")) {
					continue
				}

				rs = append(rs, flex.Reading{AssetID: meter, Span: p.Span(), Label: flex.BoundaryImportPower, Value: flex.Micro(kw * 1e6)},
					flex.Reading{AssetID: meter, Span: p.Span(), Label: flex.SolarPower, Value: 400_000})
			}
		}

		if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) }); err != nil {
			t.Fatal(err)
		}

		day, hs, err := h.service.Outturn(h.Context(), h.Org, h.site, today.Add(-1))
		if err != nil || day != today.Add(-1) || len(hs) != 48 {
			t.Fatalf("%s, %d, %v", day, len(hs), err)
		}

		want := control.OutturnHalfHour{Period: day.Period(20), Load: 500, Roof: 200, DrewKnown: true, Drew: 800, GaveKnown: true, Gave: 200, RoofFrom: control.SolarMetered}
		if hs[19] != want {
			t.Errorf("yesterday %+v, want %+v", hs[19], want)
		}

		day, hs, err = h.service.Outturn(h.Context(), h.Org, h.site, flex.Day{})
		if err != nil || day != today {
			t.Fatalf("%s, %v", day, err)
		}

		if x := hs[25]; !x.DrewKnown || x.Drew != 800 { // 12:30 in London
			t.Errorf("what has ended %+v", x)
		}

		if x := hs[26]; x.DrewKnown || x.GaveKnown || x.Load <= 500 || x.Load >= 800 {
			t.Errorf("what is running %+v", x)
		}

		// Before the first reading it is a typical home without a roof.
		_, hs, err = h.service.Outturn(h.Context(), h.Org, h.site, today.Add(-10))
		if err != nil || hs[0].Load != forecast.Unknown || hs[0].RoofFrom != control.SolarNone {
			t.Errorf("%+v, %v", hs[0], err)
		}

		for days, fine := range map[int]bool{-control.OutturnDays: true, -control.OutturnDays - 1: false, 1: true, 2: false} {
			if _, _, err := h.service.Outturn(h.Context(), h.Org, h.site, today.Add(days)); fine != (err == nil) || !fine && flex.KindOf(err) != flex.Malformed {
				t.Errorf("%d days from today: %v", days, err)
			}
		}

		if _, _, err := h.service.Outturn(h.Context(), h.Org, flex.SiteID{9}, today); flex.KindOf(err) != flex.NotFound {
			t.Errorf("nobody's site: %v", err)
		}
	})
}
