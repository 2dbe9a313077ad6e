package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/heat"
	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// HeatDays is the number of past days from which the model of a building or tank is
	// learned.
	HeatDays = 14
	// heatGap is the longest time between two readings of a temperature to interpolate between
	// them.
	heatGap = 65 * time.Minute
	// heatWindows is the least number of windows of three hours to learn a building from: a
	// day has 48.
	heatWindows = 16
)

// halfHourHeat has the readings of a heater in one half-hour.
type halfHourHeat struct {
	before  float64 // degrees at its beginning
	after   float64
	energy  float64 // Wh of electricity
	outdoor float64 // degrees
	valid   bool
}

// heatReadings has the readings of a heater from some days, each list in the order of time.
type heatReadings struct {
	temps    []flex.Reading // in the order of time
	outdoors []flex.Reading
	powers   []flex.Reading
}

// readHeatDays reads what a heater's model is learned from: the readings of the days before
// today, since its last reset.
func (t *heatedTank) readHeatDays(ctx context.Context, tx *store.Tx) (heatReadings, error) {
	today := flex.DayAt(tx.Now())
	rs, err := tx.Readings(ctx, heatQuery(&t.asset, today))
	if err != nil {
		return heatReadings{}, fmt.Errorf("read what a heater learns from: %w", err)
	}

	slices.SortStableFunc(rs, func(a, b flex.Reading) int { return a.To.Compare(b.To) })

	var r heatReadings
	for _, x := range rs {
		if x.From.Before(t.model.ResetAt) || x.To.After(today.Start()) {
			continue
		}

		switch x.Label {
		case flex.OutdoorTemperature:
			r.outdoors = append(r.outdoors, x)
		case flex.HeatPower:
			r.powers = append(r.powers, x)
		default:
			r.temps = append(r.temps, x)
		}
	}

	r.temps, r.outdoors = t.plausibleTemps(r.temps), t.plausibleTemps(r.outdoors)

	return r, nil
}

// heatQuery asks for the readings of the days before one.
func heatQuery(asset *flex.Asset, today flex.Day) store.ReadingQuery {
	temp := flex.RoomTemperature
	if asset.Type == flex.HotWaterTank {
		temp = flex.TankTemperature
	}

	q := store.ReadingQuery{
		Assets: []flex.AssetID{asset.ID},
		Labels: []flex.Label{temp, flex.OutdoorTemperature, flex.HeatPower},
	}

	for k := HeatDays; k >= 1; k-- {
		q.Days = append(q.Days, today.Add(-k))
	}

	return q
}

// tempAt interpolates a temperature at an instant between the readings before and after it, in
// degrees Celsius. It is false if these are more than heatGap apart.
func tempAt(list []flex.Reading, at time.Time) (float64, bool) {
	i, _ := slices.BinarySearchFunc(list, at, func(r flex.Reading, at time.Time) int {
		return r.To.Compare(at)
	})
	if i == len(list) {
		return 0, false
	}

	after := float64(list[i].Value) / 1e6
	if list[i].To.Equal(at) {
		return after, true
	}
	if i == 0 || list[i].To.Sub(list[i-1].To) > heatGap {
		return 0, false
	}

	before := float64(list[i-1].Value) / 1e6
	part := float64(at.Sub(list[i-1].To)) / float64(list[i].To.Sub(list[i-1].To))

	return before + part*(after-before), true
}

// halfHours returns the half-hours between the first and the last temperature, in order. Where
// the temperature outdoors was not read, it is the usual one.
func (r *heatReadings) halfHours() ([]flex.Period, []halfHourHeat) {
	if len(r.temps) == 0 {
		return nil, nil
	}

	drawn := energies(r.powers, flex.HeatPower)
	first, last := flex.PeriodAt(r.temps[0].To), r.temps[len(r.temps)-1].To

	var list []halfHourHeat
	periods := periodsTo(first, last)
	for _, p := range periods {
		var h halfHourHeat
		var begun, ended bool
		h.before, begun = tempAt(r.temps, p.Start())
		h.after, ended = tempAt(r.temps, p.End())
		energy, metered := drawn[p]
		h.energy = float64(energy)
		h.valid = metered && begun && ended

		mid := p.Start().Add(flex.HalfHour / 2)
		outdoor, read := tempAt(r.outdoors, mid)
		if !read {
			outdoor = usualAt(mid)
		}
		h.outdoor = outdoor
		list = append(list, h)
	}

	return periods, list
}

// sinceText is the day of the first reading of a temperature.
func (r *heatReadings) sinceText() string {
	return flex.DayAt(r.temps[0].To).String()
}

// learnRooms learns the model of a building; nil if there are too few readings, or the result
// cannot be a building's.
func (t *heatedTank) learnRooms(r *heatReadings) *store.BuildingRecord {
	assumed := assumedBuilding(t.power)
	_, list := r.halfHours()
	t.dropContradictions(list)
	dropUnmeteredRuns(list)

	var samples []heat.Sample
	gap, known := true, 0
	for i := range list {
		h := &list[i]
		if !h.valid {
			gap = true
			continue
		}

		known++
		samples = append(samples, heat.Sample{
			Hours:   flex.HalfHour.Hours(),
			Before:  h.before,
			After:   h.after,
			Outdoor: h.outdoor,
			Heat:    h.energy * heat.COP(h.outdoor),
			Gap:     gap,
		})
		gap = false
	}

	learned := heat.Learn(heat.Building{
		Loss:     assumed.Loss,
		Capacity: assumed.Capacity,
		Gain:     assumed.Gain,
	}, samples)
	if learned.Used < heatWindows || learned.Doubtful {
		return nil
	}

	return &store.BuildingRecord{
		Loss:     learned.Loss,
		Capacity: learned.Capacity,
		Gain:     learned.Gain,
		Days:     daysIn(known),
		Since:    r.sinceText(),
		Error:    learned.Error,
		Miss:     learned.Miss,
		Dip:      learned.Dip,
		Stop:     learned.Stop,
	}
}

// daysIn is the number of days that some half-hours make, rounded, at least 1.
func daysIn(halfHours int) int { return max(1, (halfHours+24)/48) }

// learnWater learns how much is used from a tank; nil if there are too few readings.
func (t *heatedTank) learnWater(r *heatReadings) *store.WaterRecord {
	periods, list := r.halfHours()
	t.dropContradictions(list)
	days, known := t.waterDays(periods, list)
	if known < tank.DaySlots/2 {
		return nil
	}

	learned := tank.Learn(t.assumed(), days)

	return &store.WaterRecord{
		Used:  learned.Used[:],
		Spare: learned.Spare[:],
		Days:  daysIn(known),
		Since: r.sinceText(),
	}
}

// minLossPart is the fraction of the assumed standing loss that must have left a tank on a day
// for the day's readings to be plausible.
const minLossPart = 0.25

// waterDays returns the energy that left a tank on each day, and the number of half-hours in
// which that is known. A day on which next to nothing left it counts as unknown, because its
// meter must show too little. On the day with an hour twice, the greater of the two values
// counts.
func (t *heatedTank) waterDays(periods []flex.Period, list []halfHourHeat) ([]tank.Day, int) {
	var days []tank.Day
	known := 0
	for len(periods) > 0 {
		n := 1
		for n < len(periods) && flex.DayAt(periods[n].Start()) == flex.DayAt(periods[0].Start()) {
			n++
		}

		if day, k := t.waterDay(periods[:n], list[:n]); k > 0 {
			days, known = append(days, day), known+k
		}
		periods, list = periods[n:], list[n:]
	}

	return days, known
}

// waterDay returns the energy that left a tank in each half-hour of one day, and the number of
// those that are known.
func (t *heatedTank) waterDay(periods []flex.Period, list []halfHourHeat) (tank.Day, int) {
	day := unknownDay()
	known, sum := 0, 0.0
	used := t.usedIn(list)
	for i, p := range periods {
		if !list[i].valid {
			continue
		}

		known++
		_, place := kindOf(p)
		sum += used[i]
		day[place] = max(day[place], int(max(0, used[i])))
	}

	if sum < minLossPart*float64(TankLoss)*dayFraction(known) {
		return day, 0
	}

	return day, known
}

// usedIn returns the energy that left a tank in consecutive half-hours, in Wh; zero where it
// is not known. If a thermometer shows heat late, the energy seems too large in one half-hour
// and negative in the next. The negative part is then moved back to the half-hour before.
func (t *heatedTank) usedIn(list []halfHourHeat) []float64 {
	remaining := make([]float64, len(list))
	for i := range list {
		h := &list[i]
		if !h.valid {
			continue
		}

		remaining[i] = h.energy - (h.after-h.before)*t.perKelvin()
		if i > 0 && remaining[i] < 0 {
			late := min(-remaining[i], max(0, remaining[i-1]))
			remaining[i-1] -= late
			remaining[i] += late
		}
	}

	return remaining
}

// unknownDay is a day of which nothing is known.
func unknownDay() tank.Day {
	var d tank.Day
	for i := range d {
		d[i] = -1
	}
	return d
}

// learn updates the heater's model once a day, when it is first planned, and when its power or
// its volume has changed. It stores the model.
func (t *heatedTank) learn(ctx context.Context, tx *store.Tx) error {
	today := flex.DayAt(tx.Now())
	as := t.modelBasis()
	if t.model.Day == today && t.model.As == as {
		return nil
	}

	read, err := t.readHeatDays(ctx, tx)
	if err != nil {
		return err
	}

	m := store.HeatModel{Day: today, ResetAt: t.model.ResetAt, As: as}
	if t.asset.Type == flex.HeatPump {
		m.Rooms = t.learnRooms(&read)
	} else {
		m.Water = t.learnWater(&read)
	}

	t.model = m

	return tx.PutHeatModel(ctx, t.asset.ID, &m)
}

// assumed returns the assumed use of a tank that nothing is known of. In the hours in which
// people are up, the reserve is the water of a shower, but at most half of what the tank
// holds.
func (t *heatedTank) assumed() *tank.Pattern {
	var p tank.Pattern
	for slot := range tank.DaySlots {
		drawn := tank.DrawnIn(slot, TankDraw)
		p.Used[slot] = drawn + int(TankLoss)/tank.DaySlots
		if slot >= wakingFrom && slot < wakingTo {
			p.Spare[slot] = int(min(TankSpare, t.capacity/2))
		}
	}

	return &p
}

// pattern returns the use of the tank as it was learned, or else the assumed one.
func (t *heatedTank) pattern() *tank.Pattern {
	water := t.model.Water
	if water == nil || len(water.Used) != tank.DaySlots || len(water.Spare) != tank.DaySlots {
		return t.assumed()
	}

	p := &tank.Pattern{Days: water.Days}
	copy(p.Used[:], water.Used)
	copy(p.Spare[:], water.Spare)

	return p
}
