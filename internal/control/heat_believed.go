package control

import (
	"context"
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// What a reading of a heater must be to be believed. A thermometer of type DS18B20 reads 85
// degrees when its supply fails and -127 when it is not heard.
const (
	// roomLeast and roomMost are in degrees; cold rooms are believed, as not to believe them
	// leaves a home cold.
	roomLeast, roomMost = -10.0, 40.0
	// waterLeast and waterMost are the same of a tank.
	waterLeast, waterMost = 1.0, 84.0
	// outdoorOff is by how many degrees it may be warmer or colder outdoors than is usual.
	outdoorOff = 20.0
	// roomRise and waterRise are by how many degrees a reading may be above the one before it,
	// beside what the element of a tank heats, unless the next one says the same.
	roomRise, waterRise = 2.0, 10.0
	// beyondRating is how much of its power a heater may take for its meter to be believed.
	beyondRating = 1.2
	// roomUnheated and waterUnheated are by how many degrees it may become warmer in a
	// half-hour without power.
	roomUnheated, waterUnheated = 0.3, 1.5
	// slowest is how many hours a home takes at most to lose 63 % of its difference to the
	// outdoors.
	slowest = 4 * BuildingTime
	// coolSpan is how many half-hours without power are looked at as one, and coolOff by how
	// many degrees a thermometer may be off in them.
	coolSpan, coolOff = 16, 0.2
)

// believable reports whether a temperature may be one by itself.
func believable(r *flex.Reading) bool {
	temp := float64(r.Value) / 1e6
	switch r.Label {
	case flex.RoomTemperature:
		return temp >= roomLeast && temp <= roomMost
	case flex.TankTemperature:
		return temp >= waterLeast && temp <= waterMost
	case flex.OutdoorTemperature:
		return math.Abs(temp-usualAt(r.To)) <= outdoorOff
	}

	return true
}

// perKelvin is the heat in Wh that makes a tank one degree warmer.
func (t *heatedTank) perKelvin() float64 {
	return float64(t.capacity) / (t.high - t.low)
}

// jumps reports whether one reading is so far above another that is near it in time that one
// of the two is wrong.
func (t *heatedTank) jumps(low, high *flex.Reading) bool {
	apart := high.To.Sub(low.To).Abs()
	most := roomRise
	if high.Label == flex.TankTemperature {
		most = waterRise + float64(t.power)*apart.Hours()/t.perKelvin()
	}

	return apart <= heatGap && float64(high.Value-low.Value)/1e6 > most
}

// believed are the temperatures of a list in the order of time that are believed: each may be
// one by itself, none is far above those beside it, and then none far below both. So of two
// thermometers that are mixed the colder one counts, and of a newest reading that is far above
// the one before it the one before, until the next says the same.
func (t *heatedTank) believed(list []flex.Reading) []flex.Reading {
	var kept []flex.Reading
	for i := range list {
		if believable(&list[i]) {
			kept = append(kept, list[i])
		}
	}

	kept = plausibleReadings(kept, func(before, r, after *flex.Reading) bool {
		if before == nil || after == nil {
			return before != nil && t.jumps(before, r) || after != nil && t.jumps(after, r)
		}
		return t.jumps(before, r) && t.jumps(after, r)
	})

	return plausibleReadings(kept, func(before, r, after *flex.Reading) bool {
		if before == nil || after == nil {
			return false
		}
		return t.jumps(r, before) && t.jumps(r, after)
	})
}

// plausibleReadings are the readings of a list that are not wrong beside the ones before and
// after them, which are nil at its ends.
func plausibleReadings(
	list []flex.Reading,
	wrong func(before, r, after *flex.Reading) bool,
) []flex.Reading {
	var kept []flex.Reading
	for i := range list {
		var before, after *flex.Reading
		if i > 0 {
			before = &list[i-1]
		}
		if i+1 < len(list) {
			after = &list[i+1]
		}

		if !wrong(before, &list[i], after) {
			kept = append(kept, list[i])
		}
	}

	return kept
}

// latestTemp is the newest temperature that is believed of the last two hours.
func (t *heatedTank) latestTemp(
	ctx context.Context,
	tx *store.Tx,
	label flex.Label,
) (flex.Reading, bool, error) {
	list, err := freshReadings(ctx, tx, t.asset.ID, label)
	if err != nil {
		return flex.Reading{}, false, err
	}

	list = t.believed(list)
	if len(list) == 0 {
		return flex.Reading{}, false, nil
	}

	return list[len(list)-1], true, nil
}

// freshReadings are what was read of an asset in the last two hours, in the order of time.
func freshReadings(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	labels ...flex.Label,
) ([]flex.Reading, error) {
	now := tx.Now()
	today := flex.DayAt(now)
	rs, err := tx.Readings(
		ctx,
		store.ReadingQuery{
			Assets: []flex.AssetID{asset},
			Labels: labels,
			Days:   []flex.Day{today.Add(-1), today},
		},
	)
	if err != nil {
		return nil, err
	}

	rs = slices.DeleteFunc(rs, func(r flex.Reading) bool {
		return r.To.After(now) || !r.To.After(now.Add(-ChargeFresh))
	})
	slices.SortStableFunc(rs, func(a, b flex.Reading) int { return a.To.Compare(b.To) })

	return rs, nil
}

// doubt leaves out the half-hours in which the power and the temperature contradict each
// other: more was taken than the heater can, or it became warmer without any power, in the
// half-hour before too.
func (t *heatedTank) doubt(list []halfHourHeat) {
	most := beyondRating * float64(t.power) * flex.HalfHour.Hours()
	rise := roomUnheated
	if t.asset.Type == flex.HotWaterTank {
		rise = waterUnheated
	}

	unheated := true
	for i := range list {
		h := &list[i]
		off := h.energy == 0
		warms := off && unheated && h.after-h.before > rise
		unheated = off

		if h.energy > most || warms {
			h.known = false
		}
	}
}

// doubtRuns leaves out the half-hours without power in a row in which the rooms cooled down
// less than any home would: its meter shows nothing while it heats.
func doubtRuns(list []halfHourHeat) {
	for from := 0; from < len(list); {
		to := from
		for to < len(list) && list[to].known && list[to].energy == 0 {
			to++
		}

		if tooWarm(list[from:to]) {
			for i := from; i < to; i++ {
				list[i].known = false
			}
		}
		from = to + 1
	}
}

// tooWarm reports whether rooms without heat cooled down less in some coolSpan than they would
// in a home that takes slowest to lose 63 % of its difference, and of which half is made up
// for by people and the sun.
func tooWarm(run []halfHourHeat) bool {
	for i := 0; i+coolSpan <= len(run); i++ {
		sum := 0.0
		for _, h := range run[i : i+coolSpan] {
			sum += h.before - h.outdoor
		}

		least := sum * flex.HalfHour.Hours() / slowest / 2
		fell := run[i].before - run[i+coolSpan-1].after
		if fell < least-coolOff {
			return true
		}
	}

	return false
}

// learnedAs is what a model of the heater holds for: its power, and of a tank what makes it
// warmer.
func (t *heatedTank) learnedAs() store.HeatedAs {
	as := store.HeatedAs{Power: t.power}
	if t.asset.Type == flex.HotWaterTank {
		as.PerKelvin = int(math.Round(t.perKelvin()))
	}

	return as
}

// dayOf is how long a part of a day a number of half-hours is.
func dayOf(halfHours int) float64 {
	return float64(time.Duration(halfHours)*flex.HalfHour) / float64(24*time.Hour)
}
