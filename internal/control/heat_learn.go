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
	// HeatDays is the number of past days that a heat pump's building and a tank are learned
	// from.
	HeatDays = 14
	// heatGap is how far apart two readings of a temperature may be to interpolate between
	// them.
	heatGap = 65 * time.Minute
	// heatWindows is the least number of windows of three hours to learn a building from: a
	// day has 48.
	heatWindows = 16
)

// halfHourHeat is what was read of a heater in a half-hour.
type halfHourHeat struct {
	before  float64 // degrees at its beginning
	after   float64
	energy  float64 // Wh of electricity
	outdoor float64 // degrees
	known   bool
}

// heatRead is what was read of a heater in some days.
type heatRead struct {
	temps    []flex.Reading // in the order of time
	outdoors []flex.Reading
	powers   []flex.Reading
}

// readHeatDays reads what a heater is learned from: its readings of the days before today,
// from its last reset on.
func (t *heatedTank) readHeatDays(ctx context.Context, tx *store.Tx) (heatRead, error) {
	today := flex.DayAt(tx.Now())
	rs, err := tx.Readings(ctx, heatQuery(&t.asset, today))
	if err != nil {
		return heatRead{}, fmt.Errorf("read what a heater learns from: %w", err)
	}

	slices.SortStableFunc(rs, func(a, b flex.Reading) int { return a.To.Compare(b.To) })

	var r heatRead
	for _, x := range rs {
		if x.From.Before(t.known.ResetAt) || x.To.After(today.Start()) {
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

	r.temps, r.outdoors = t.believed(r.temps), t.believed(r.outdoors)

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

// halfHours are the half-hours of the days that were read, in their order. Where the
// temperature outdoors was not read it is what is usual.
func (r *heatRead) halfHours() ([]flex.Period, []halfHourHeat) {
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
		h.known = metered && begun && ended

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
func (r *heatRead) sinceText() string {
	return flex.DayAt(r.temps[0].To).String()
}

// learnRooms learns a building from what was read of it; nil if that is too little, or no
// building can be so.
func (t *heatedTank) learnRooms(r *heatRead) *store.BuildingRecord {
	assumed := assumedBuilding(t.power)
	_, list := r.halfHours()
	t.doubt(list)
	doubtRuns(list)

	var samples []heat.Sample
	gap, known := true, 0
	for i := range list {
		h := &list[i]
		if !h.known {
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

// daysIn is how many days some half-hours are, one at least.
func daysIn(halfHours int) int { return max(1, (halfHours+24)/48) }

// learnWater learns what leaves a tank from what was read of it; nil if that is too little.
func (t *heatedTank) learnWater(r *heatRead) *store.WaterRecord {
	periods, list := r.halfHours()
	t.doubt(list)
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

// leastOfLoss is the part of what a tank is assumed to lose that must have left it on a day
// for the day to be believed.
const leastOfLoss = 0.25

// waterDays are what left a tank on each day, and of how many half-hours that is known. A day
// on which next to nothing left it is unknown: its meter shows too little. Of an hour that the
// clock shows twice the half-hour in which more left it counts.
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

// waterDay is what left a tank in the half-hours of one day, and of how many it is known.
func (t *heatedTank) waterDay(periods []flex.Period, list []halfHourHeat) (tank.Day, int) {
	day := unknownDay()
	known, sum := 0, 0.0
	used := t.leftIn(list)
	for i, p := range periods {
		if !list[i].known {
			continue
		}

		known++
		_, place := kindOf(p)
		sum += used[i]
		day[place] = max(day[place], int(max(0, used[i])))
	}

	if sum < leastOfLoss*float64(TankLoss)*dayOf(known) {
		return day, 0
	}

	return day, known
}

// leftIn is what left a tank in half-hours that follow each other, in Wh; nothing where it is
// not known. A thermometer that shows late what was heated has more leave the tank in one
// half-hour, and less than nothing in the next: the one makes up for the other.
func (t *heatedTank) leftIn(list []halfHourHeat) []float64 {
	left := make([]float64, len(list))
	for i := range list {
		h := &list[i]
		if !h.known {
			continue
		}

		left[i] = h.energy - (h.after-h.before)*t.perKelvin()
		if i > 0 && left[i] < 0 {
			late := min(-left[i], max(0, left[i-1]))
			left[i-1] -= late
			left[i] += late
		}
	}

	return left
}

// unknownDay is a day of which nothing is known.
func unknownDay() tank.Day {
	var d tank.Day
	for i := range d {
		d[i] = -1
	}
	return d
}

// learn learns the heater once a day, when it is first planned, and again when its power or
// its volume changed. It keeps what it learned.
func (t *heatedTank) learn(ctx context.Context, tx *store.Tx) error {
	today := flex.DayAt(tx.Now())
	as := t.learnedAs()
	if t.known.Day == today && t.known.As == as {
		return nil
	}

	read, err := t.readHeatDays(ctx, tx)
	if err != nil {
		return err
	}

	m := store.HeatModel{Day: today, ResetAt: t.known.ResetAt, As: as}
	if t.asset.Type == flex.HeatPump {
		m.Rooms = t.learnRooms(&read)
	} else {
		m.Water = t.learnWater(&read)
	}

	t.known = m

	return tx.PutHeatModel(ctx, t.asset.ID, &m)
}

// assumed is what leaves a tank of which nothing is known, and what is to be in it in the
// hours in which people are up: the water of a shower, but no more than half of what it holds.
func (t *heatedTank) assumed() *tank.Pattern {
	var p tank.Pattern
	for slot := range tank.DaySlots {
		drawn := tank.DrawnIn(slot, TankDraw)
		p.Used[slot] = drawn + int(TankLoss)/tank.DaySlots
		if slot >= upFrom && slot < upTo {
			p.Spare[slot] = int(min(TankSpare, t.capacity/2))
		}
	}

	return &p
}

// pattern is what leaves the tank: as it was learned, else as it is assumed.
func (t *heatedTank) pattern() *tank.Pattern {
	water := t.known.Water
	if water == nil || len(water.Used) != tank.DaySlots || len(water.Spare) != tank.DaySlots {
		return t.assumed()
	}

	p := &tank.Pattern{Days: water.Days}
	copy(p.Used[:], water.Used)
	copy(p.Spare[:], water.Spare)

	return p
}
