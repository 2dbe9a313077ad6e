package control_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// heatModel is what is kept of a heater.
func (h *fixture) heatModel(id flex.AssetID) (m store.HeatModel) {
	h.Helper()
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) (err error) {
		m, err = tx.HeatModel(h.Context(), id)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return m
}

// readDays reports two days of a heater up to an instant, half-hour by half-hour: its temperature and what it drew.
func (h *fixture) readDays(id flex.AssetID, label flex.Label, end string, of func(slot int) (temp, kilowatts float64)) {
	h.Helper()
	text := func(t time.Time) string { return t.Format(time.RFC3339) }
	from := at(end).Add(-48 * time.Hour)
	for slot := range 97 {
		now := from.Add(time.Duration(slot) * flex.HalfHour)
		temp, kilowatts := of(slot)
		h.read(id, label, text(now), text(now), temp)
		h.read(id, flex.OutdoorTemperature, text(now), text(now), 2)
		h.read(id, flex.HeatPower, text(now.Add(-flex.HalfHour)), text(now), kilowatts)
	}
}

// TestHeatLearn_Rooms has a building that loses twice what is assumed by its heat pump's power: it is learned from
// readings of the days before, shown, kept for the day, and forgotten when it is reset.
func TestHeatLearn_Rooms(t *testing.T) {
	each(t, "2026-01-13T00:05:00Z", func(h *fixture) {
		id := h.pump("")
		const loss, capacity, cop = 400.0, 8000.0, 2.85 // as is assumed at 2 degrees
		temp := 20.0
		h.readDays(id, flex.RoomTemperature, "2026-01-13T00:00:00Z", func(slot int) (float64, float64) {
			kilowatts := 0.0
			if slot%4 < 2 && slot%48 > 9 {
				kilowatts = 3
			}
			temp += (kilowatts*1000*cop - loss*(temp-2)) * 0.5 / capacity
			return math.Round(temp*10) / 10, kilowatts
		})

		h.runTanks()
		rooms := h.heatModel(id).Rooms
		if rooms == nil {
			t.Fatal("nothing was learned")
		}
		if needs := rooms.Loss*18 - rooms.Gain; math.Abs(needs/(loss*18)-1) > 0.15 || rooms.Days != 2 {
			t.Errorf("takes %.0f W at 18 degrees of difference, not %.0f: %+v", needs, loss*18, rooms)
		}

		said := h.tankSays(id)
		if !strings.Contains(said, "learned from 2 days of readings since 2026-01-11") {
			t.Error(said)
		}
		if got := h.tankPlan(id).Room.Building; got != *rooms {
			t.Errorf("planned with %+v", got)
		}

		if err := h.service.ResetRate(h.Context(), h.Org, id); err != nil {
			t.Fatal(err)
		}
		h.runTanks()
		if m := h.heatModel(id); m.Rooms != nil || m.ResetAt.IsZero() || h.tankPlan(id).Room.Building.Days != 0 {
			t.Errorf("reset: %+v", m)
		}

		h.wait(24 * time.Hour)
		h.runTanks()
		if m := h.heatModel(id); m.Rooms != nil || m.Day != (flex.Day{Year: 2026, Month: 1, Dom: 14}) {
			t.Errorf("what was read before the reset is learned from: %+v", m)
		}
		h.clean()
	})
}

// TestHeatLearn_Water has a household that draws all of its water at noon: it is expected then, and kept for.
func TestHeatLearn_Water(t *testing.T) {
	each(t, "2026-01-13T00:05:00Z", func(h *fixture) {
		id := h.tank()
		perKelvin := 200 * 1.163

		h.readDays(id, flex.TankTemperature, "2026-01-13T00:00:00Z", func(slot int) (float64, float64) {
			switch slot % 48 {
			case 25: // at its end, 12:30, two kWh are gone
				return 60 - 2000/perKelvin, 0
			case 26:
				return 60 - 500/perKelvin, 3
			case 27:
				return 60, 1
			}
			return 60, 0
		})

		h.runTanks()
		water := h.heatModel(id).Water
		if water == nil {
			t.Fatal("nothing was learned")
		}
		if water.Used[24] < 1300 || water.Used[14] > 300 || water.Spare[23] < 2000 || water.Spare[6] > 600 || water.Days != 2 {
			t.Errorf("expects %v and keeps %v, of %d days", water.Used, water.Spare, water.Days)
		}

		x, err := h.service.Explanation(h.Context(), h.Org, id)
		if prose := x.Prose(); err != nil || !strings.Contains(prose, "used_in_a_day") || !strings.Contains(prose, "learned from 2 days of readings since 2026-01-11") {
			t.Errorf("%v: %s", err, prose)
		}
		h.clean()
	})
}
