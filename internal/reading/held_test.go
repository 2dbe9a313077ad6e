package reading_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store/storetest"
)

// TestTake_HeldBack holds each label at the edge of what its device or connection can carry.
func TestTake_HeldBack(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, 2)
		h.exec(t, `UPDATE asset SET power_w = 7400 WHERE id = $1`, asset(1).Bytes())
		h.exec(t, `UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, asset(1).Bytes())
		h.exec(t, `UPDATE site SET import_w = 18400, export_w = 3680, supply_set = TRUE`)
		half := func(n int, l flex.Label, v float64) reading.Input {
			return given(asset(n), l, "10:00", flex.HalfHour, v)
		}

		for _, c := range []struct {
			name string
			in   reading.Input
			held bool
		}{
			{"energy at the asset's power", half(1, flex.ChargerEnergy, 4.07), false},
			{"energy beyond it", half(1, flex.ChargerEnergy, 4.070001), true},
			{"the audit's 510 kWh", half(1, flex.ChargerEnergy, 510), true},
			{"energy of an asset of unknown power at the supply", half(2, flex.ChargerEnergy, 10.12), false},
			{"energy beyond it", half(2, flex.ChargerEnergy, 10.120001), true},
			{"inverter at its power", half(1, flex.BatteryInverterPower, 8.14), false},
			{"inverter beyond it", half(1, flex.BatteryInverterPower, 8.140001), true},
			{"inverter beyond it, giving", half(1, flex.BatteryInverterPower, -8.140001), true},
			{"import at the supply", half(1, flex.BoundaryImportPower, 20.24), false},
			{"import beyond it", half(1, flex.BoundaryImportPower, 20.240001), true},
			{"export at the supply", half(1, flex.BoundaryImportPower, -4.048), false},
			{"export beyond it", half(1, flex.BoundaryImportPower, -4.048001), true},
			{"consumption at the supply", half(1, flex.ProvisionalConsumption, 10.12), false},
			{"consumption beyond it", half(1, flex.ProvisionalConsumption, 10.120001), true},
			{"stored energy at the capacity", half(1, flex.BatteryStoredEnergy, 11), false},
			{"stored energy beyond it", half(1, flex.BatteryStoredEnergy, 11.000001), true},
			{"stored energy of an unknown capacity", half(2, flex.BatteryStoredEnergy, 50), false},
			{"solar power, which settles nothing", half(1, flex.SolarPower, 50), false},
		} {
			t.Run(c.name, func(t *testing.T) {
				v := h.take(t, c.in)[0]
				if held := strings.HasPrefix(string(v), "held back: "); held != c.held || v.Accepted() == c.held {
					t.Errorf("verdict %q, want held %v", v, c.held)
				}

				if strings.Contains(string(v), "m0s") {
					t.Errorf("a time is written for a program: %q", v)
				}
			})
		}

		if _, total, err := h.service.Held(t.Context(), reading.HeldQuery{Org: h.org, State: flex.HeldWaiting, Limit: 100}); err != nil || total != 6 {
			t.Errorf("%d are held back, %v; want 6, as two of a label and time are one", total, err)
		}
	})
}

// TestTake_RegisterJump sends the audit's register of 4,294,967 kWh among good ones: it is held
// back, and all others are taken.
func TestTake_RegisterJump(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		h.exec(t, `UPDATE asset SET power_w = 7400`)
		read := func(clock string, v float64) reading.Input { return given(a, flex.ChargerRegister, clock, 0, v) }
		for i, v := range h.take(t, read("09:00", 100), read("09:30", 4294967), read("10:00", 107.4)) {
			if v.Accepted() != (i != 1) {
				t.Errorf("reading %d: %q", i, v)
			}
		}

		// 7.4 kW for half an hour and a tenth, and a whole kilowatt-hour.
		if v := h.take(t, read("10:30", 112.470001))[0]; v.Accepted() {
			t.Error("just beyond the edge was taken")
		}
		if v := h.take(t, read("10:30", 112.47))[0]; !v.Accepted() {
			t.Errorf("at the edge: %s", v)
		}
		if v := h.take(t, read("11:00", 113))[0]; !v.Accepted() {
			t.Errorf("later: %s", v)
		}
		h.verify(t)
	})
}

// TestHeld_Decided releases and discards: what was released counts, also as a correction, what
// was discarded never does, and each is decided once.
func TestHeld_Decided(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		h.exec(t, `UPDATE asset SET power_w = 7400`)
		h.take(t, half(a, "10:00", 3), half(a, "10:30", 5))
		h.take(t, half(a, "10:00", 6))

		held := func() []flex.HeldReading {
			t.Helper()
			page, _, err := h.service.Held(t.Context(), reading.HeldQuery{Org: h.org, Asset: a, State: flex.HeldWaiting, Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			return page
		}

		page := held()
		if len(page) != 2 || page[0].Value != 6_000_000 || page[0].Reason != reading.BeyondPower {
			t.Fatalf("held: %+v", page)
		}
		if got := h.values(t, a, flex.ChargerEnergy, time.Time{}); got != "10:30=3" {
			t.Errorf("before: %s", got)
		}

		today := flex.DayAt(h.now)
		gaps, err := h.service.Gaps(t.Context(), h.org, flex.SiteID{9}, today, today)
		if err != nil || len(gaps) != 1 || gaps[0].HeldBack != 1 || gaps[0].Missing != gaps[0].Expected-1 {
			t.Errorf("gaps: %+v, %v; want one half-hour held back", gaps, err)
		}
		if _, err := h.service.Release(t.Context(), h.org, page[0].ID, true); flex.KindOf(err) != flex.Malformed {
			t.Errorf("an energy as a new meter: %v", err)
		}
		if r, err := h.service.Release(t.Context(), h.org, page[0].ID, false); err != nil || r.Decision != flex.HeldReleased {
			t.Errorf("%+v, %v", r, err)
		}

		if _, err := h.service.Discard(t.Context(), h.org, page[0].ID); flex.KindOf(err) != flex.Conflict {
			t.Errorf("decided twice: %v", err)
		}
		if _, err := h.service.Discard(t.Context(), h.org, page[1].ID); err != nil {
			t.Error(err)
		}
		if got := h.values(t, a, flex.ChargerEnergy, time.Time{}); got != "10:30=6" || len(held()) != 0 {
			t.Errorf("after: %s, %v", got, held())
		}

		// Sent again: the released one stands, the discarded one stays discarded.
		v := h.take(t, half(a, "10:00", 6), half(a, "10:30", 5))
		if !v[0].Accepted() || v[1].Accepted() || len(held()) != 0 {
			t.Errorf("sent again: %q, held %v", v, held())
		}
	})
}

// TestHeld_MeterReplaced has a register begin anew: the fall is held back, and once released
// as a new meter the readings after it are taken, those before it are still judged by the old
// one, and the law of registers holds.
func TestHeld_MeterReplaced(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		read := func(clock string, v float64) reading.Input { return given(a, flex.BoundaryImportRegister, clock, 0, v) }
		h.take(t, read("09:00", 52000), read("10:00", 52003))
		if v := h.take(t, read("10:30", 1))[0]; v.Accepted() {
			t.Fatal("a fall was taken")
		}

		page, _, err := h.service.Held(t.Context(), reading.HeldQuery{Org: h.org, State: flex.HeldWaiting, Limit: 10})
		if err != nil || len(page) != 1 || page[0].Reason != reading.RegisterFall {
			t.Fatalf("%+v, %v", page, err)
		}
		if r, err := h.service.Release(t.Context(), h.org, page[0].ID, true); err != nil || r.Decision != flex.HeldMeterReplaced {
			t.Fatalf("%+v, %v", r, err)
		}

		for i, v := range h.take(t, read("11:00", 3), read("09:30", 52001), read("11:30", 2), read("09:45", 52000)) {
			if v.Accepted() != (i < 2) {
				t.Errorf("reading %d: %q", i, v)
			}
		}
		if got := h.values(t, a, flex.BoundaryImportRegister, time.Time{}); got != "09:00=52000 09:30=52001 10:00=52003 10:30=1 11:00=3" {
			t.Errorf("kept %s", got)
		}
		h.verify(t)
	})
}

func (h *fixture) verify(t *testing.T) {
	t.Helper()
	if findings, err := h.db.Verify(t.Context()); err != nil || len(findings) > 0 {
		t.Errorf("%v, %v", findings, err)
	}
}

// After a new meter everything is held back until somebody looks. The release of the first has
// those count too that came after it and fit: not one that jumps again, nor one that falls.
func TestHeld_FollowersAreReleased(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		h.exec(t, `UPDATE asset SET power_w = 7400`)
		read := func(clock string, v float64) reading.Input { return given(a, flex.ChargerRegister, clock, 0, v) }
		for i, v := range h.take(t, read("08:00", 100), read("08:30", 9000), read("09:00", 9003), read("09:30", 99999), read("10:00", 9000.5), read("10:30", 9006)) {
			if v.Accepted() != (i == 0) {
				t.Errorf("reading %d: %q", i, v)
			}
		}

		waiting := func() []flex.HeldReading {
			t.Helper()
			page, _, err := h.service.Held(t.Context(), reading.HeldQuery{Org: h.org, Asset: a, State: flex.HeldWaiting, Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			return page
		}

		all := waiting()
		for _, r := range all {
			if r.Value == 9_000_000_000 {
				if _, err := h.service.Release(t.Context(), h.org, r.ID, true); err != nil {
					t.Fatal(err)
				}
			}
		}

		if got := h.values(t, a, flex.ChargerRegister, time.Time{}); got != "08:00=100 08:30=9000 09:00=9003 10:30=9006" {
			t.Errorf("what counts: %s", got)
		}
		if left := waiting(); len(all) != 5 || len(left) != 2 {
			t.Errorf("%d waited, %d still do: %+v", len(all), len(left), left)
		}
		h.verify(t)
	})
}

// A register's reading that came twice, once as an instant and once as a time that ends then,
// waits twice. Of the two one is released with what they follow, and the other waits on.
func TestHeld_FollowersAtOneInstant(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		h.exec(t, `UPDATE asset SET power_w = 7400`)
		read := func(clock string, length time.Duration, v float64) reading.Input {
			return given(a, flex.ChargerRegister, clock, length, v)
		}

		h.take(t, read("08:00", 0, 100), read("08:30", 0, 9000), read("09:00", 0, 9003))
		h.take(t, read("08:30", flex.HalfHour, 9003))

		q := reading.HeldQuery{Org: h.org, Asset: a, State: flex.HeldWaiting, Limit: 10}
		all, total, err := h.service.Held(t.Context(), q)
		if err != nil || total != 3 {
			t.Fatalf("%d wait, %v", total, err)
		}

		for _, r := range all {
			if r.Value == 9_000_000_000 {
				if _, err := h.service.Release(t.Context(), h.org, r.ID, true); err != nil {
					t.Fatal(err)
				}
			}
		}

		if got := h.values(t, a, flex.ChargerRegister, time.Time{}); got != "08:00=100 08:30=9000 09:00=9003" {
			t.Errorf("what counts: %s", got)
		}
		if _, left, err := h.service.Held(t.Context(), q); err != nil || left != 1 {
			t.Errorf("%d still wait, %v", left, err)
		}
		h.verify(t)
	})
}

// A reading that is held back by the connection's capacity says so where that is the default.
func TestTake_HeldByTheDefault(t *testing.T) {
	for _, set := range []bool{false, true} {
		storetest.EachURL(t, func(t *testing.T, url string) {
			h := open(t, url, 1)
			h.exec(t, `UPDATE site SET supply_set = $1`, set)
			v := string(h.take(t, given(asset(1), flex.ProvisionalConsumption, "10:00", flex.HalfHour, 20))[0])
			if says := strings.Contains(v, "import_capacity_kw of the site (the default: none was set)"); says == set {
				t.Errorf("the capacity was set is %v: %s", set, v)
			}
		})
	}
}
