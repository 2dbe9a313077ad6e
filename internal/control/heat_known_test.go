package control_test

import (
	"bytes"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestHeatLearn_Known has what is known of a heat pump and of a tank said with its days and how certain it is, before and
// after it is reset; a charger has none.
func TestHeatLearn_Known(t *testing.T) {
	each(t, "2026-01-13T00:05:00Z", func(h *fixture) {
		pump, tank := h.pump(""), h.tank()
		says := func(id flex.AssetID, want ...string) {
			h.Helper()
			known, err := h.service.Heat(h.Context(), h.Org, id)
			if err != nil {
				h.Fatal(err)
			}

			for _, text := range want {
				if said := known.Sentence(); !strings.Contains(said, text) {
					t.Errorf("no %q in %q", text, said)
				}
			}
		}
		says(pump, "loses 261 W and keeps 10.4 kWh", "nothing was learned yet")
		says(tank, "7.4 kWh drawn and lost in a day", "nothing was learned yet")

		rs := lived(pump, "2026-01-13T00:00:00Z", 3)
		h.write(func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })
		h.readDays(tank, flex.TankTemperature, "2026-01-13T00:00:00Z", func(int) (float64, float64) { return 60, 0.1 })
		h.runTanks()
		says(pump, "learned from 3 days of readings since 2026-01-10, certainty high")
		says(tank, "learned from 2 days of readings since 2026-01-11, certainty low")

		if err := h.service.ResetRate(h.Context(), h.Org, pump); err != nil {
			t.Fatal(err)
		}
		says(pump, "nothing was learned yet")
		if _, err := h.service.Heat(h.Context(), h.Org, h.asset); flex.KindOf(err) != flex.NotFound {
			t.Errorf("a charger's heat: %v", err)
		}
		h.clean()
	})
}

// TestHeatLearn_ClockChanges has a household that draws its water at 12:00 by the clock in a fortnight with a change of the
// clock in it, and once in the hour that the clock shows twice: each is expected at its half-hour.
func TestHeatLearn_ClockChanges(t *testing.T) {
	for _, c := range []struct {
		today    string
		halfHour int // of the day of the change
		drawn    string
		slot     int
	}{
		{"2026-03-31", 46, "2026-03-29T02:00:00Z", 6},  // 03:00 by the clock, an hour after its change
		{"2026-10-27", 50, "2026-10-25T00:00:00Z", 2},  // 01:00, the first time
		{"2026-10-27", 50, "2026-10-25T01:30:00Z", 3},  // 01:30, the second time
		{"2026-10-27", 50, "2026-10-25T23:30:00Z", 47}, // the last of the day
	} {
		each(t, c.today+"T12:05:00Z", func(h *fixture) {
			day, err := flex.ParseDay(c.today)
			if err != nil {
				t.Fatal(err)
			}

			change := flex.DayAt(at(c.drawn))
			if change.Periods() != c.halfHour {
				t.Fatalf("%v has %d half-hours", change, change.Periods())
			}

			id := h.tank()
			var rs []flex.Reading
			for now := day.Add(-4).Start(); !now.After(day.Start()); now = now.Add(flex.HalfHour) {
				kilowatts := 0.1
				before := now.Add(-flex.HalfHour)
				if local := before.In(flex.London); local.Hour() == 12 && local.Minute() == 0 || before.Equal(at(c.drawn)) {
					kilowatts = 3 // the element makes up for it in the same half-hour
				}
				instant := flex.Span{From: now, To: now}
				rs = append(rs,
					flex.Reading{AssetID: id, Span: instant, Label: flex.TankTemperature, Value: 60e6},
					flex.Reading{AssetID: id, Span: flex.Span{From: before, To: now}, Label: flex.HeatPower, Value: flex.Micro(kilowatts * 1e6)})
			}
			h.write(func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })

			h.runTanks()
			water := h.heatModel(id).Water
			if water == nil || water.Days != 4 {
				t.Fatalf("learned %+v", water)
			}

			for slot, used := range water.Used {
				noon, once := slot == 24, slot == c.slot
				switch {
				case noon && used < 1200, once && used < 250, !noon && !once && used > 300:
					t.Errorf("%s: %d Wh are expected in half-hour %d", c.drawn, used, slot)
				}
			}
			h.clean()
		})
	}
}

// TestHeatLearn_Erased has what was learned go with its site, and a portable file of the organisation have it.
func TestHeatLearn_Erased(t *testing.T) {
	each(t, "2026-01-13T00:05:00Z", func(h *fixture) {
		id := h.pump("")
		rs := lived(id, "2026-01-13T00:00:00Z", 3)
		h.write(func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })
		h.runTanks()
		models := func() int { return h.Count(`SELECT COUNT(*) FROM heat_model`) }
		if models() != 1 {
			t.Fatalf("%d models", models())
		}

		var file bytes.Buffer
		err := h.db.WriteAll(h.Context(), func(all *store.All) error {
			held, err := all.Export(h.Context(), h.site)
			if err != nil {
				return err
			}

			if len(held["heat_model"]) != 1 {
				t.Errorf("the person's export has %d models", len(held["heat_model"]))
			}
			_, err = all.ExportOrg(h.Context(), h.Org, &file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		if !strings.Contains(file.String(), "loss_w_per_k") {
			t.Error("the organisation's file has no building")
		}

		h.write(func(tx *store.Tx) error {
			if err := tx.StopScheduling(h.Context(), id); err != nil {
				return err
			}
			return tx.DropAsset(h.Context(), id)
		})

		if models() != 0 {
			t.Error("a model is kept of an asset that is gone")
		}
		again := h.pump("")
		h.runTanks()
		if m := h.heatModel(again); m.Rooms != nil || models() != 1 {
			t.Errorf("another heat pump at the site has %+v", m)
		}
	})
}
