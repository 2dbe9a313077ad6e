package control_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// building is a building that is worked out minute by minute, by no code of the planner.
type building struct{ loss, capacity, temp float64 }

// lives moves the house on by half an hour at 2 degrees outdoors, or as is given, with a heat pump of 3 kW that keeps a
// temperature, and returns the Wh of electricity.
func (b *building) lives(keep, outdoor float64) float64 {
	drawn := 0.0
	cop := 3.2 + 0.07*(outdoor-7)
	for range 30 {
		given := 0.0
		if b.temp < keep {
			given = 3000
		}
		drawn += given / 60
		b.temp += (given*cop - b.loss*(b.temp-outdoor)) / b.capacity / 60
	}
	return drawn
}

// lived are the readings of a house of 250 W/K over some days up to an instant, in the order of time. It keeps 20.5 degrees by
// day and nothing before five.
func lived(id flex.AssetID, end string, days int) []flex.Reading {
	b := building{loss: 250, capacity: 10000, temp: 20.5}
	var rs []flex.Reading
	from := at(end).Add(-time.Duration(days) * 24 * time.Hour)
	add := func(span flex.Span, label flex.Label, value float64) {
		rs = append(rs, flex.Reading{AssetID: id, Span: span, Label: label, Value: flex.Micro(math.Round(value*1e3) * 1e3)})
	}

	for slot := range 48*days + 1 {
		now := from.Add(time.Duration(slot) * flex.HalfHour)
		instant := flex.Span{From: now, To: now}
		add(instant, flex.RoomTemperature, b.temp)
		add(instant, flex.OutdoorTemperature, 2)
		keep := 20.5
		if slot%48 < 10 {
			keep = 0
		}

		if slot < 48*days {
			add(flex.Span{From: now, To: now.Add(flex.HalfHour)}, flex.HeatPower, b.lives(keep, 2)/500)
		}
	}
	return rs
}

// coldest is how cold the house becomes in the next day if its heat pump does as it was sent.
func (h *fixture) coldest(p store.TankPlan, temp float64) float64 {
	h.Helper()
	if p.Room == nil || len(p.Room.Course) < 48 {
		h.Fatalf("no course: %+v", p.Room)
	}
	b := building{loss: 250, capacity: 10000, temp: temp}
	least := temp

	for _, c := range p.Room.Course[:48] {
		keep := 20.5 // the middle of the band
		if c.Off {
			keep = 0
		}
		b.lives(keep, c.Outdoor)
		least = min(least, b.temp)
	}
	return least
}

// changed has some readings of one label be others: change is given which one it is.
func changed(rs []flex.Reading, label flex.Label, change func(n int, r *flex.Reading)) []flex.Reading {
	n := 0
	for i := range rs {
		if rs[i].Label == label {
			change(n, &rs[i])
			n++
		}
	}
	return rs
}

// without leaves out the readings of half-hours.
func without(rs []flex.Reading, gone func(slot int) bool) []flex.Reading {
	first := rs[0].From
	return slices.DeleteFunc(rs, func(r flex.Reading) bool { return gone(int(r.To.Sub(first) / flex.HalfHour)) })
}

// wrong are ways in which the readings of a heat pump come in, and whether a building is to be learned of them.
var wrong = []struct {
	name    string
	change  func(rs []flex.Reading) []flex.Reading
	learned bool
}{
	{"as they were", func(rs []flex.Reading) []flex.Reading { return rs }, true},
	{"out of order", func(rs []flex.Reading) []flex.Reading { slices.Reverse(rs); return rs }, true},
	{"doubled a minute later", func(rs []flex.Reading) []flex.Reading {
		for _, r := range slices.Clone(rs) {
			if r.Label == flex.RoomTemperature {
				r.From, r.To = r.From.Add(time.Minute), r.To.Add(time.Minute)
				rs = append(rs, r)
			}
		}
		return rs[:len(rs)-1]
	}, true},
	{"a day missing", func(rs []flex.Reading) []flex.Reading {
		return without(rs, func(slot int) bool { return slot > 60 && slot < 108 })
	}, true},
	{"all but the last hours missing", func(rs []flex.Reading) []flex.Reading {
		return without(rs, func(slot int) bool { return slot < 138 })
	}, false},
	{"a thermometer that reads 85 degrees now and then", func(rs []flex.Reading) []flex.Reading {
		return changed(rs, flex.RoomTemperature, func(n int, r *flex.Reading) {
			if n%12 == 0 {
				r.Value = 85e6
			}
		})
	}, true},
	{"a thermometer that reads -127 degrees now and then", func(rs []flex.Reading) []flex.Reading {
		return changed(rs, flex.RoomTemperature, func(n int, r *flex.Reading) {
			if n%12 == 0 {
				r.Value = -127e6
			}
		})
	}, true},
	{"a thermometer that is off by six degrees now and then", func(rs []flex.Reading) []flex.Reading {
		return changed(rs, flex.RoomTemperature, func(n int, r *flex.Reading) {
			if n%12 == 0 {
				r.Value += 6e6
			}
		})
	}, true},
	{"a thermometer that always reads 85 degrees", func(rs []flex.Reading) []flex.Reading {
		return changed(rs, flex.RoomTemperature, func(_ int, r *flex.Reading) { r.Value = 85e6 })
	}, false},
	{"two thermometers mixed", func(rs []flex.Reading) []flex.Reading {
		return changed(rs, flex.RoomTemperature, func(n int, r *flex.Reading) {
			if n%2 == 0 {
				r.Value += 5e6
			}
		})
	}, true},
	{"a meter that shows no power", func(rs []flex.Reading) []flex.Reading {
		return changed(rs, flex.HeatPower, func(_ int, r *flex.Reading) { r.Value = 0 })
	}, false},
	{"a meter that shows no power in a day of three", func(rs []flex.Reading) []flex.Reading {
		return changed(rs, flex.HeatPower, func(n int, r *flex.Reading) {
			if n/48 == 1 {
				r.Value = 0
			}
		})
	}, true},
	{"power beyond the rating now and then", func(rs []flex.Reading) []flex.Reading {
		return changed(rs, flex.HeatPower, func(n int, r *flex.Reading) {
			if n%12 == 0 {
				r.Value = 300e6
			}
		})
	}, true},
	{"55 degrees outdoors", func(rs []flex.Reading) []flex.Reading {
		return changed(rs, flex.OutdoorTemperature, func(_ int, r *flex.Reading) { r.Value = 55e6 })
	}, true},
}

// TestHeatLearn_Wrong has readings that are missing, doubled, out of order or wrong: what is learned of them is near the
// building as it is, or nothing; and no plan leaves the home cold.
func TestHeatLearn_Wrong(t *testing.T) {
	const now = "2026-01-13T00:00:00Z"
	each(t, "2026-01-13T00:05:00Z", func(h *fixture) {
		ids := make([]flex.AssetID, len(wrong))
		for i, c := range wrong {
			ids[i] = h.pump("")
			rs := c.change(lived(ids[i], now, 3))
			h.write(func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })
		}

		h.runTanks()
		for i, c := range wrong {
			rooms := h.heatModel(ids[i]).Rooms
			if (rooms != nil) != c.learned {
				t.Errorf("%s: learned %+v", c.name, rooms)
			}

			if rooms != nil {
				if needs := (rooms.Loss*18 - rooms.Gain) / (250 * 18); needs < 0.85 || needs > 1.4 {
					t.Errorf("%s: takes %.2f of what it does: %+v", c.name, needs, *rooms)
				}
			}
			if least := h.coldest(h.tankPlan(ids[i]), 20.5); least < 18.8 {
				t.Errorf("%s: the home becomes %.2f degrees cold", c.name, least)
			}
		}

		h.clean()
	})
}

// TestHeatLearn_Late has readings that come in after the day's first plan, and wrong ones that are corrected: both count from
// the next day on.
func TestHeatLearn_Late(t *testing.T) {
	each(t, "2026-01-13T00:05:00Z", func(h *fixture) {
		late, wrong := h.pump(""), h.pump("")
		put := func(rs []flex.Reading) {
			h.write(func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })
		}
		twice := func(_ int, r *flex.Reading) { r.Value *= 2 }
		put(changed(lived(wrong, "2026-01-13T00:00:00Z", 3), flex.HeatPower, twice))
		h.runTanks()
		before := h.heatModel(wrong).Rooms
		if m := h.heatModel(late); m.Rooms != nil || before == nil {
			t.Fatalf("before: %+v, %+v", m.Rooms, before)
		}

		put(lived(late, "2026-01-13T00:00:00Z", 3))
		put(lived(wrong, "2026-01-13T00:00:00Z", 3))
		h.wait(time.Hour)
		h.runTanks()
		if m := h.heatModel(late); m.Rooms != nil {
			t.Errorf("learned twice in a day: %+v", m)
		}

		h.wait(24 * time.Hour)
		h.runTanks()
		a, b := h.heatModel(late).Rooms, h.heatModel(wrong).Rooms
		if a == nil || b == nil || *a != *b || b.Loss == before.Loss {
			t.Errorf("late %+v, corrected %+v, before %+v", a, b, before)
		}
		h.clean()
	})
}

// TestHeatLearn_LatestWrong has a newest reading that is wrong: the plan goes by the one before it.
func TestHeatLearn_LatestWrong(t *testing.T) {
	for _, c := range []struct {
		name         string
		label        flex.Label
		read, before float64
		want         float64 // degrees that are planned from, of a tank the kWh above 45 degrees; at most
	}{
		{"85 degrees in a room", flex.RoomTemperature, 85, 19.3, 19.5},
		{"8 degrees more in a room", flex.RoomTemperature, 27.3, 19.3, 19.5},
		{"-127 degrees in a room", flex.RoomTemperature, -127, 19.3, 19.5},
		{"a tank of 85 degrees", flex.TankTemperature, 85, 46, 0.3},
		{"a tank that becomes 25 degrees warmer in minutes", flex.TankTemperature, 71, 46, 0.3},
		{"a tank of -127 degrees", flex.TankTemperature, -127, 46, 0.3},
	} {
		t.Run(c.name, func(t *testing.T) {
			one(t, "2026-01-13T17:00:00Z", func(h *fixture) {
				id := h.pump("")
				if c.label == flex.TankTemperature {
					id = h.tank()
				}

				h.read(id, c.label, "2026-01-13T16:45:00Z", "2026-01-13T16:45:00Z", c.before)
				h.read(id, c.label, "2026-01-13T16:55:00Z", "2026-01-13T16:55:00Z", c.read)
				h.runTanks()

				p := h.tankPlan(id)
				got := p.Stored.KWh()
				if p.Room != nil {
					got = p.Room.Temp
				}
				if got > c.want || got < c.want-0.6 || p.Basis != store.TankRead {
					t.Errorf("planned from %.2f, %v", got, p.Basis)
				}
			})
		})
	}
}

// TestHeatLearn_Tank_Wrong has tanks whose readings are wrong: what a household draws is still expected.
func TestHeatLearn_Tank_Wrong(t *testing.T) {
	each(t, "2026-01-13T00:05:00Z", func(h *fixture) {
		perKelvin := 200 * 1.163

		days := func(change func(slot int, temp, kilowatts float64) (float64, float64)) store.HeatModel {
			id := h.tank()

			h.readDays(id, flex.TankTemperature, "2026-01-13T00:00:00Z", func(slot int) (float64, float64) {
				temp, kilowatts := 60.0, 0.1
				switch slot % 48 {
				case 25:
					temp, kilowatts = 60-2000/perKelvin, 0
				case 26:
					temp, kilowatts = 60-500/perKelvin, 3
				case 27:
					kilowatts = 1
				}
				return change(slot, temp, kilowatts)
			})

			h.runTanks()
			return h.heatModel(id)
		}

		for name, change := range map[string]func(slot int, temp, kilowatts float64) (float64, float64){
			"as they were": func(_ int, temp, kilowatts float64) (float64, float64) { return temp, kilowatts },
			"85 degrees": func(slot int, temp, kilowatts float64) (float64, float64) {
				if slot%10 == 0 {
					temp = 85
				}
				return temp, kilowatts
			},
			"power beyond the rating": func(slot int, temp, kilowatts float64) (float64, float64) {
				if slot%10 == 0 {
					kilowatts = 90
				}

				return temp, kilowatts
			},
		} {
			m := days(change)
			if m.Water == nil {
				t.Fatalf("%s: nothing was learned", name)
			}

			used := 0
			for _, wh := range m.Water.Used {
				used += wh
			}
			if w := m.Water; w.Used[24] < 1300 || used > 9000 || slices.Max(w.Spare) > 4500 {
				t.Errorf("%s: expects %v and keeps %v", name, w.Used, w.Spare)
			}
		}

		if m := days(func(_ int, _, _ float64) (float64, float64) { return 60, 0 }); m.Water != nil {
			t.Errorf("a tank that loses nothing: %v", m.Water.Used)
		}
		h.clean()
	})
}

// TestHeatLearn_Replaced has a heat pump replaced by another, registered again, and of another power: what was learned of
// one does not serve the other, and is learned anew as the power changes.
func TestHeatLearn_Replaced(t *testing.T) {
	each(t, "2026-01-13T00:05:00Z", func(h *fixture) {
		gone := h.pump("")
		rs := lived(gone, "2026-01-13T00:00:00Z", 3)
		h.write(func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })
		h.Exec(`UPDATE asset SET external_id = 'pump' WHERE id = $1`, gone.Bytes())
		h.runTanks()
		old := h.heatModel(gone)
		if old.Rooms == nil || old.As.Power != 3000 {
			t.Fatalf("learned %+v", old)
		}

		// One whose power was mistaken: the same day a building is learned by the new one. With a third of the power most
		// readings are beyond it.
		set := func(id flex.AssetID, power flex.Watts) {
			h.write(func(tx *store.Tx) error {
				a, err := tx.Asset(h.Context(), id)
				if err != nil {
					return err
				}
				a.Power = &power
				return tx.UpdateAsset(h.Context(), a)
			})
			h.runTanks()
		}

		set(gone, 6000)
		m := h.heatModel(gone)
		if m.As.Power != 6000 || m.Rooms == nil || m.Rooms.Loss == old.Rooms.Loss || h.tankPlan(gone).Room.Building != *m.Rooms {
			t.Errorf("of 6 kW: %+v", m)
		}
		set(gone, 3000)
		if m := h.heatModel(gone); *m.Rooms != *old.Rooms {
			t.Errorf("of 3 kW again: %+v and not %+v", m.Rooms, old.Rooms)
		}

		h.write(func(tx *store.Tx) error {
			if err := tx.StopScheduling(h.Context(), gone); err != nil {
				return err
			}
			return tx.DropAsset(h.Context(), gone)
		})
		again := h.pump("")
		h.Exec(`UPDATE asset SET external_id = 'pump' WHERE id = $1`, again.Bytes())
		h.runTanks()
		if m := h.heatModel(again); m.Rooms != nil || h.tankPlan(again).Room.Building.Days != 0 {
			t.Errorf("another asset's building: %+v", m)
		}

		if said := h.tankSays(again); strings.Contains(said, "learned from") {
			t.Error(said)
		}
		if n := h.Count(`SELECT COUNT(*) FROM heat_model WHERE asset_id = $1`, gone.Bytes()); n != 0 {
			t.Errorf("%d models are kept of an asset that is gone", n)
		}
		h.clean()
	})
}
