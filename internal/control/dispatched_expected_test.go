package control_test

import (
	"strings"
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// charged has a battery of 10 kWh be read at a state of charge at an instant, at which it is, too.
func (h *fixture) charged(id flex.AssetID, when string, percent float64) {
	h.Helper()
	h.goTo(when)
	h.read(id, flex.BatteryStateOfCharge, when, when, percent)
}

// reported is the newest instruction's report, with its minutes.
func (h *fixture) reported() *control.InstructionReport {
	h.Helper()
	in, _ := h.newest()
	r, err := h.service.ReportInstructionMinutes(h.Context(), h.Org, in.ID)
	if err != nil {
		h.Fatal(err)
	}
	return r
}

// expects compares what is expected of the newest instruction in its half-hours, and what is short of what it asks for.
func (h *fixture) expects(when string, expected, short []flex.WattHours) {
	h.Helper()
	r := h.reported()
	var minutes, missing flex.WattHours
	for i := range r.Minutes {
		minutes += r.Minutes[i].Expected
		missing += r.Short(&r.Minutes[i])
	}

	var all, sum flex.WattHours
	for i := range expected {
		s := &r.Slots[i]
		all, sum = all+s.Expected, sum+r.Short(s)
		if farFrom(s.Expected, expected[i]) || farFrom(r.Short(s), short[i]) {
			h.Errorf("%s, half-hour %d: %d Wh are expected and %d are short, not %d and %d: %+v", when, i, s.Expected, r.Short(s), expected[i], short[i], *s)
		}
	}

	// minutes are whole watt-hours
	if off := missing - sum; off > 40 || off < -40 {
		h.Errorf("%s: %d Wh are short in half-hours, %d in minutes", when, sum, missing)
	}
	if len(expected) == len(r.Slots) && (minutes-all > 40 || all-minutes > 40) {
		h.Errorf("%s: %d Wh are expected in half-hours, %d in minutes", when, all, minutes)
	}
}

// TestDispatch_Bounded dispatches batteries for more than they hold above their reserve, or than they have room for: what is expected of
// them is what they can, by half-hour and by minute, and the rest is short.
func TestDispatch_Bounded(t *testing.T) {
	for _, c := range []struct {
		name     string
		power    flex.Watts
		soc      float64
		expected []flex.WattHours // in each half-hour
		short    []flex.WattHours
	}{
		{"enough", -3000, 60, []flex.WattHours{-1500, -1500}, []flex.WattHours{0, 0}},
		{"just enough", -3000, 41.6, []flex.WattHours{-1500, -1500}, []flex.WattHours{0, 0}},
		{"less than asked for", -3000, 30, []flex.WattHours{-1500, -400}, []flex.WattHours{0, 1100}}, // 2 kWh above the reserve, 1.9 at the meter
		{"its reserve alone", -3000, 10, []flex.WattHours{0, 0}, []flex.WattHours{1500, 1500}},
		{"below its reserve", -3000, 5, []flex.WattHours{0, 0}, []flex.WattHours{1500, 1500}},
		{"room for less", 3000, 81, []flex.WattHours{1500, 500}, []flex.WattHours{0, 1000}}, // 1.9 kWh, 2 at the meter
		{"full", 3000, 100, []flex.WattHours{0, 0}, []flex.WattHours{1500, 1500}},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:40:00Z", func(h *fixture) {
				id := h.nightBattery()

				h.charged(id, "2026-01-14T23:00:00Z", c.soc)
				h.Exec(`UPDATE battery_plan SET planned_w = ''`) // it would draw and give nothing without
				if err := h.dispatch("2026-01-14T23:00:00Z", "2026-01-15T00:00:00Z", c.power, id); err != nil {
					t.Fatal(err)
				}

				h.expects("sent", c.expected, c.short)
				h.runBatteries()
				h.expects("planned again", c.expected, c.short)
				if in, _ := h.newest(); in.Change != c.power {
					t.Errorf("%d W are asked for, not %d", in.Change, c.power)
				}
			})
		})
	}
}

// TestDispatch_BoundedMinute has a battery be empty in the middle of a half-hour: until then each minute is as asked for, and then nothing is.
func TestDispatch_BoundedMinute(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		h.charged(id, "2026-01-14T23:00:00Z", 30)
		if err := h.dispatch("2026-01-14T23:10:00Z", "2026-01-15T00:00:00Z", -3000, id); err != nil {
			t.Fatal(err)
		}

		for i, m := range h.reported().Minutes[:50] { // 1.9 kWh last 38 minutes
			want := flex.WattHours(-50)
			if i >= 38 {
				want = 0
			}
			if m.Expected != want {
				t.Errorf("minute %d: %d Wh are expected, not %d", i, m.Expected, want)
			}
		}
	})
}

// TestDispatch_BoundedAgain has what is expected follow what is read later, and what is left of a dispatch by a newer one be asked for
// in full.
func TestDispatch_BoundedAgain(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id, other := h.nightBattery(), h.nightBattery()
		h.charged(id, "2026-01-14T23:00:00Z", 60)
		h.charged(other, "2026-01-14T23:00:00Z", 60)
		h.runBatteries()
		if err := h.dispatch("2026-01-14T23:30:00Z", "2026-01-15T01:00:00Z", -3000, id, other); err != nil {
			t.Fatal(err)
		}
		h.expects("sent", []flex.WattHours{-3000, -3000, -3000}, []flex.WattHours{0, 0, 0})

		// One of them holds 3 kWh less than was thought, of which 0.8 at the meter are left after the first half-hour.
		h.charged(id, "2026-01-14T23:31:00Z", 34)
		h.charged(other, "2026-01-14T23:31:00Z", 60)
		h.goTo("2026-01-15T00:00:00Z")
		h.runBatteries()
		h.expects("read again", []flex.WattHours{-3000, -2331, -1500}, []flex.WattHours{0, 669, 1500})

		// The second battery is sent something else for the last half-hour. The first is asked for all of it again.
		if err := h.dispatch("2026-01-15T00:30:00Z", "2026-01-15T01:00:00Z", 1000, other); err != nil {
			t.Fatal(err)
		}
		h.expects("newer", []flex.WattHours{500}, []flex.WattHours{0})
		if err := h.dispatch("2026-01-15T00:10:00Z", "2026-01-15T00:20:00Z", 1000, id); err != nil {
			t.Fatal(err)
		}

		asked := h.Strings(`SELECT i.change_w || ' ' || c.expected FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
			WHERE i.reason LIKE 'what a newer%' AND c.released_at IS NULL ORDER BY i.from_at, i.id`)
		if len(asked) != 3 || !strings.Contains(strings.Join(asked, ", "), "x-3000") {
			t.Errorf("left of the first: %q", asked)
		}
		if findings, err := h.db.Verify(h.Context()); err != nil || len(findings) > 0 {
			t.Errorf("verify: %v %v", findings, err)
		}
	})
}

// TestInstruction_BatteryBounded has what is expected of a battery that an instruction calls be what it holds, too, as it is read later.
func TestInstruction_BatteryBounded(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		h.charged(id, "2026-01-14T23:00:00Z", 60)
		h.runBatteries()
		h.send(asks("2026-01-14T23:30:00Z", "2026-01-15T00:30:00Z", -4000))
		h.expects("sent", []flex.WattHours{-1500, -1500}, []flex.WattHours{0, 501})

		h.charged(id, "2026-01-14T23:31:00Z", 20)
		h.goTo("2026-01-15T00:00:00Z")
		h.runBatteries()
		h.expects("read again", []flex.WattHours{-1500, 0}, []flex.WattHours{0, 2000})
	})
}

// TestShort has what is short in a preview be the same whichever way it is asked for, and no more than that.
func TestShort(t *testing.T) {
	for _, c := range []struct{ asked, brought, short flex.WattHours }{
		{1000, 600, 400}, {1000, 1000, 0}, {1000, 1200, 0}, {1000, -200, 1000}, {0, -200, 0}, {0, 200, 0},
		{-1000, -600, 400}, {-1000, -1000, 0}, {-1000, -1200, 0}, {-1000, 0, 1000}, {-1000, 200, 1000},
	} {
		preview := control.InstructedSlot{Asked: c.asked, Given: c.brought}
		if short := preview.Short(); short != c.short {
			t.Errorf("%+v: %d", c, short)
		}
	}
}
