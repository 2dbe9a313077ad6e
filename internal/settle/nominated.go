package settle

import (
	"time"

	"flexd/internal/flex"
)

// Stay is a span in which a car was plugged in, its plan without the market, and the energy
// that it drew.
//
// A plan for a car that is not there, or is full, must not be paid for. So the baseline only
// counts the supported part of the plan, which the car can be proved to have drawn. In each
// half-hour n of the stay, in order,
//
//	supported(n) = min(plan(n) + deferred(n), fastest(n), drawn − supported(1) − … − supported(n−1))
//	deferred(n+1) = plan(n) + deferred(n) − supported(n)
//
// where drawn is the energy that the car drew in the whole stay, by its own meter or by the
// rise of its state of charge, and fastest is the most that it drew in any half-hour of it.
// Energy for which the car is too slow is deferred. Without a meter and a state of charge,
// nothing is supported.
type Stay struct {
	flex.Span
	// without market prices, from the half-hour in which the stay begins
	Plan    []flex.WattHours
	Drawn   flex.WattHours // in the whole stay, as measured
	Fastest flex.WattHours // drawn in any half-hour; 0: not known
}

// SupportedPlan returns the part of the plan that counts in the baseline, half-hour by
// half-hour from that in which the stay begins.
func (s *Stay) SupportedPlan() []flex.WattHours {
	supported := make([]flex.WattHours, s.halfHours())
	remaining, deferred := s.Drawn, flex.WattHours(0)

	for i := range supported {
		plan := deferred
		if i < len(s.Plan) {
			plan += s.Plan[i]
		}

		supportedNow := max(0, min(plan, remaining))
		if s.Fastest > 0 {
			supportedNow = min(supportedNow, s.proRata(i, s.Fastest))
		}

		supported[i] = supportedNow
		remaining, deferred = remaining-supportedNow, plan-supportedNow
	}

	return supported
}

// Bounds returns the limits of what the event can have moved in settlement periods of the
// stay: from minus the supported plan to the rest of what the car could have drawn at its
// rated power.
func (s *Stay) Bounds(
	first flex.Period,
	n int,
	power flex.Watts,
) []Bound {
	supported, possible := s.SupportedPlan(), s.PossibleEnergy(power)

	bounds := make([]Bound, n)
	for i := range bounds {
		at := first.Add(i).Sub(flex.PeriodAt(s.From))
		if at >= 0 && at < len(supported) {
			bounds[i] = Bound{-supported[at], max(0, possible[at]-supported[at])}
		}
	}

	return bounds
}

// PossibleEnergy returns the most that the car could have drawn in each half-hour of the stay
// at its rated power.
func (s *Stay) PossibleEnergy(power flex.Watts) []flex.WattHours {
	possible := make([]flex.WattHours, s.halfHours())
	for i := range possible {
		possible[i] = min(s.proRata(i, inHalfHour(power)), s.Drawn)
	}

	return possible
}

// UseMeter sets the drawn energy from the car's own meter. It returns how many half-hours of
// the stay are not known.
func (s *Stay) UseMeter(days []MeteredDay) int {
	first := flex.PeriodAt(s.From)

	s.Drawn, s.Fastest = 0, 0

	var missing int
	for i := range s.halfHours() {
		day, n := first.Add(i).SettlementPeriod()
		e, known := flex.WattHours(0), false

		if m := dayOf(days, day); m != nil {
			e, known = m.At(n)
		}

		if !known {
			missing++
		}

		s.Drawn += max(0, e)
		s.Fastest = max(s.Fastest, e)
	}

	return missing
}

// UseStateOfCharge sets the drawn energy from the car's state of charge: the largest rise from
// a level to a later one. The readings are of the stay, in order of time.
func (s *Stay) UseStateOfCharge(levels []flex.Reading, capacity flex.WattHours) {
	const full = 100_000_000 // millionths of a percent
	lowest, rise := flex.Micro(full), flex.Micro(0)

	for i := range levels {
		l := &levels[i]
		if l.Label != flex.BatteryStateOfCharge || l.To.Before(s.From) ||
			l.From.After(s.To) {
			continue
		}

		lowest = min(lowest, l.Value)
		rise = max(rise, l.Value-lowest)
	}

	s.Drawn, s.Fastest = flex.WattHours(int64(rise)*int64(capacity)/full), 0
}

// halfHours returns how many half-hours the stay touches.
func (s *Stay) halfHours() int {
	if s.Empty() {
		return 0
	}
	return flex.PeriodAt(s.To.Add(-1)).Sub(flex.PeriodAt(s.From)) + 1
}

// proRata returns the part of a half-hour's energy that falls into the stay.
func (s *Stay) proRata(i int, e flex.WattHours) flex.WattHours {
	in := flex.PeriodAt(s.From).Add(i).Span().Meet(s.Span).Len()
	return flex.WattHours(int64(e) * int64(in/time.Second) / int64(flex.HalfHour/time.Second))
}

// Without subtracts the energy of assets from that of the boundary in front of them. A
// half-hour is known if it is known for the boundary and for all assets.
func Without(boundary []MeteredDay, assets ...[]MeteredDay) []MeteredDay {
	rest := make([]MeteredDay, 0, len(boundary))
	for i := range boundary {
		b := &boundary[i]
		m := MeteredDay{Day: b.Day}

		for n := 1; n <= b.Day.Periods(); n++ {
			e, known := b.At(n)
			for _, days := range assets {
				own := dayOf(days, b.Day)
				used, read := flex.WattHours(0), false

				if own != nil {
					used, read = own.At(n)
				}

				e, known = e-used, known && read
			}

			if known {
				m.Set(n, e)
			}
		}

		if m.Known != 0 {
			rest = append(rest, m)
		}
	}

	return rest
}

// FullPowerPlan returns the energy at a constant power in each half-hour of the stay.
func (s *Stay) FullPowerPlan(power flex.Watts) []flex.WattHours {
	plan := make([]flex.WattHours, s.halfHours())
	for i := range plan {
		plan[i] = s.proRata(i, inHalfHour(power))
	}

	return plan
}

// ByDay groups energies of the stay's half-hours by day.
func (s *Stay) ByDay(energies []flex.WattHours) []MeteredDay {
	first := flex.PeriodAt(s.From)

	var days []MeteredDay
	for i, e := range energies {
		day, n := first.Add(i).SettlementPeriod()
		if len(days) == 0 || days[len(days)-1].Day != day {
			days = append(days, MeteredDay{Day: day})
		}
		days[len(days)-1].Set(n, e)
	}

	return days
}

// UsedEnergy returns what an asset used on the days: what its own meter read, and zero while
// it was not plugged in. Other half-hours are not known.
func UsedEnergy(
	own []MeteredDay,
	stays []flex.Span,
	days []flex.Day,
) []MeteredDay {
	used := make([]MeteredDay, len(days))
	for i, d := range days {
		used[i] = MeteredDay{Day: d}
		for n := 1; n <= d.Periods(); n++ {
			used[i].Set(n, 0)
		}
	}

	for _, s := range stays {
		last := flex.PeriodAt(s.To.Add(-1))
		for p := flex.PeriodAt(s.From); !s.Empty() && !last.Before(p); p = p.Add(1) {
			day, n := p.SettlementPeriod()
			if m := dayOf(used, day); m != nil {
				m.Known &^= 1 << (n - 1)
			}
		}
	}

	for i := range own {
		m := dayOf(used, own[i].Day)
		for n := 1; m != nil && n <= own[i].Day.Periods(); n++ {
			if e, known := own[i].At(n); known {
				m.Set(n, e)
			}
		}
	}

	return used
}

// AssetEnergy is the used energy, or the supported plan, of an asset behind a meter.
type AssetEnergy struct {
	Type flex.AssetType
	Days []MeteredDay
}

// CombinedEnergy returns the total energy of assets behind one meter, in the days of the first
// of them. Energy through a charger is also the energy of the car at it. So in each half-hour,
// cars only count as far as they exceed the chargers, separately for charging and discharging.
// A half-hour is known if it is known for all assets.
func CombinedEnergy(assets []AssetEnergy) []MeteredDay {
	if len(assets) == 0 {
		return nil
	}

	sum := make([]MeteredDay, len(assets[0].Days))
	for i := range sum {
		sum[i].Day = assets[0].Days[i].Day
		for n := 1; n <= sum[i].Day.Periods(); n++ {
			if e, known := combinedPeriod(assets, sum[i].Day, n); known {
				sum[i].Set(n, e)
			}
		}
	}

	return sum
}

// combinedPeriod is CombinedEnergy for one half-hour.
func combinedPeriod(
	assets []AssetEnergy,
	day flex.Day,
	n int,
) (flex.WattHours, bool) {
	var others flex.WattHours
	var chargers, cars [2]flex.WattHours // charged and discharged

	for _, a := range assets {
		m := dayOf(a.Days, day)
		if m == nil {
			return 0, false
		}

		e, known := m.At(n)
		if !known {
			return 0, false
		}

		energy := [2]flex.WattHours{max(0, e), max(0, -e)}
		switch a.Type {
		case flex.Charger:
			chargers[0] += energy[0]
			chargers[1] += energy[1]
		case flex.ElectricVehicle:
			cars[0] += energy[0]
			cars[1] += energy[1]
		default:
			others += e
		}
	}

	charged, discharged := max(chargers[0], cars[0]), max(chargers[1], cars[1])

	return others + charged - discharged, true
}
