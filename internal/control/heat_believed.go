package control

import (
	"context"
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Limits within which a reading of a heater is plausible. A thermometer of type DS18B20 reads
// 85 degrees when its supply fails and -127 when it does not answer.
const (
	// roomMin and roomMax are the limits of a room's temperature, in degrees. Very cold
	// rooms are plausible: to ignore such a reading would leave a home cold.
	roomMin, roomMax = -10.0, 40.0
	// waterMin and waterMax are those of the water in a tank.
	waterMin, waterMax = 1.0, 84.0
	// outdoorTolerance is by how many degrees the temperature outdoors may differ from what is
	// usual.
	outdoorTolerance = 20.0
	// roomRise and waterRise are by how many degrees a reading may exceed the one before it,
	// in addition to what the heater of a tank can cause, unless the next reading confirms it.
	roomRise, waterRise = 2.0, 10.0
	// maxOverRating is the greatest plausible power of a heater, as a multiple of its rated
	// power.
	maxOverRating = 1.2
	// roomUnheated and waterUnheated are the greatest rise in degrees that is plausible in a
	// half-hour without power.
	roomUnheated, waterUnheated = 0.3, 1.5
	// maxBuildingTime is the longest plausible time constant of a building, in hours: the time
	// in which it loses 63 % of its difference to the outdoors.
	maxBuildingTime = 4 * BuildingTime
	// coolingHalfHours is the number of half-hours without power that are checked together,
	// and coolingTolerance the error of a thermometer, in degrees, that is allowed in them.
	coolingHalfHours, coolingTolerance = 16, 0.2
)

// isPlausible reports whether a temperature is plausible without regard to other readings.
func isPlausible(r *flex.Reading) bool {
	temp := float64(r.Value) / 1e6
	switch r.Label {
	case flex.RoomTemperature:
		return temp >= roomMin && temp <= roomMax
	case flex.TankTemperature:
		return temp >= waterMin && temp <= waterMax
	case flex.OutdoorTemperature:
		return math.Abs(temp-usualAt(r.To)) <= outdoorTolerance
	}

	return true
}

// perKelvin is the heat in Wh that makes a tank one degree warmer.
func (t *heatedTank) perKelvin() float64 {
	return float64(t.capacity) / (t.high - t.low)
}

// contradicts reports whether one reading exceeds another that is near it in time by so much
// that one of the two must be wrong.
func (t *heatedTank) contradicts(low, high *flex.Reading) bool {
	apart := high.To.Sub(low.To).Abs()
	most := roomRise
	if high.Label == flex.TankTemperature {
		most = waterRise + float64(t.power)*apart.Hours()/t.perKelvin()
	}

	return apart <= heatGap && float64(high.Value-low.Value)/1e6 > most
}

// plausibleTemps returns the plausible temperatures of a list in the order of time. First it
// drops those out of range, then those far above their neighbours, and then those far below
// both neighbours. So if two thermometers are mixed up the colder one counts, and a newest
// reading far above the one before it counts only once the next one confirms it.
func (t *heatedTank) plausibleTemps(list []flex.Reading) []flex.Reading {
	var plausible []flex.Reading
	for i := range list {
		if isPlausible(&list[i]) {
			plausible = append(plausible, list[i])
		}
	}

	plausible = plausibleReadings(plausible, func(before, r, after *flex.Reading) bool {
		if before == nil || after == nil {
			return before != nil && t.contradicts(before, r) || after != nil && t.contradicts(after, r)
		}
		return t.contradicts(before, r) && t.contradicts(after, r)
	})

	return plausibleReadings(plausible, func(before, r, after *flex.Reading) bool {
		if before == nil || after == nil {
			return false
		}
		return t.contradicts(r, before) && t.contradicts(r, after)
	})
}

// plausibleReadings returns the readings of a list that are not wrong compared with their
// neighbours, which are nil at its ends.
func plausibleReadings(
	list []flex.Reading,
	wrong func(before, r, after *flex.Reading) bool,
) []flex.Reading {
	var plausible []flex.Reading
	for i := range list {
		var before, after *flex.Reading
		if i > 0 {
			before = &list[i-1]
		}
		if i+1 < len(list) {
			after = &list[i+1]
		}

		if !wrong(before, &list[i], after) {
			plausible = append(plausible, list[i])
		}
	}

	return plausible
}

// latestTemp returns the newest plausible temperature of the last two hours; false if there is
// none.
func (t *heatedTank) latestTemp(
	ctx context.Context,
	tx *store.Tx,
	label flex.Label,
) (flex.Reading, bool, error) {
	list, err := freshReadings(ctx, tx, t.asset.ID, label)
	if err != nil {
		return flex.Reading{}, false, err
	}

	list = t.plausibleTemps(list)
	if len(list) == 0 {
		return flex.Reading{}, false, nil
	}

	return list[len(list)-1], true, nil
}

// freshReadings returns an asset's readings of the last two hours, in the order of time.
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

// dropContradictions marks half-hours as unknown in which power and temperature contradict
// each other: more energy than the heater can draw, or a rise of temperature although there
// was no power in this half-hour and the one before.
func (t *heatedTank) dropContradictions(list []halfHourHeat) {
	most := maxOverRating * float64(t.power) * flex.HalfHour.Hours()
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
			h.valid = false
		}
	}
}

// dropUnmeteredRuns marks consecutive half-hours without power as unknown if the rooms cooled
// down less than any building would. Then the meter shows nothing while the heater is on.
func dropUnmeteredRuns(list []halfHourHeat) {
	for from := 0; from < len(list); {
		to := from
		for to < len(list) && list[to].valid && list[to].energy == 0 {
			to++
		}

		if tooWarm(list[from:to]) {
			for i := from; i < to; i++ {
				list[i].valid = false
			}
		}
		from = to + 1
	}
}

// tooWarm reports whether rooms without heat cooled down less, in any coolingHalfHours
// half-hours, than they would in a building with the longest plausible time constant, half of
// whose loss is replaced by people and the sun.
func tooWarm(run []halfHourHeat) bool {
	for i := 0; i+coolingHalfHours <= len(run); i++ {
		sum := 0.0
		for _, h := range run[i : i+coolingHalfHours] {
			sum += h.before - h.outdoor
		}

		least := sum * flex.HalfHour.Hours() / maxBuildingTime / 2
		fell := run[i].before - run[i+coolingHalfHours-1].after
		if fell < least-coolingTolerance {
			return true
		}
	}

	return false
}

// modelBasis returns the properties of the heater for which a model is valid: its power, and
// for a tank the heat that a degree takes.
func (t *heatedTank) modelBasis() store.HeatedAs {
	basis := store.HeatedAs{Power: t.power}
	if t.asset.Type == flex.HotWaterTank {
		basis.PerKelvin = int(math.Round(t.perKelvin()))
	}

	return basis
}

// dayFraction is the fraction of a day that a number of half-hours is.
func dayFraction(halfHours int) float64 {
	return float64(time.Duration(halfHours)*flex.HalfHour) / float64(24*time.Hour)
}
