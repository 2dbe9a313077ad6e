package settle

import (
	"time"

	"flexd/internal/flex"
)

// Stay is a time in which a car was plugged in, what it would have drawn without the market
// by its plan, and what shows that it could.
//
// What a plan nominates for a car that is not there, or full, must not be paid for. So the
// baseline takes of the plan only what the car is shown to have taken: in each half-hour n
// of the stay, in order,
//
//	shown(n) = min(plan(n) + late(n), fastest(n), drawn − shown(1) − … − shown(n−1))
//	late(n+1) = plan(n) + late(n) − shown(n)
//
// where drawn is the energy that the car drew in the whole stay, by its own meter or by the
// rise of its state of charge, and fastest the most that it drew in any half-hour of it. What
// the car is too slow for comes later. Without either, nothing is shown, and shown is 0.
type Stay struct {
	flex.Span
	// without market prices, from the half-hour in which the stay begins
	Plan    []flex.WattHours
	Drawn   flex.WattHours // in the whole stay, as it was shown
	Fastest flex.WattHours // drawn in any half-hour; 0: not known
}

// Shown returns what the baseline takes of the plan, half-hour by half-hour from that in which
// the stay begins.
func (s *Stay) Shown() []flex.WattHours {
	shown := make([]flex.WattHours, s.halfHours())
	left, late := s.Drawn, flex.WattHours(0)

	for i := range shown {
		want := late
		if i < len(s.Plan) {
			want += s.Plan[i]
		}

		take := max(0, min(want, left))
		if s.Fastest > 0 {
			take = min(take, s.part(i, s.Fastest))
		}

		shown[i] = take
		left, late = left-take, want-take
	}

	return shown
}

// Bounds returns between what the event can have moved in settlement periods of the stay: from
// none of what is shown to all that the car could have drawn, at its rated power.
func (s *Stay) Bounds(
	first flex.Period,
	n int,
	power flex.Watts,
) []Bound {
	shown, could := s.Shown(), s.Could(power)

	bounds := make([]Bound, n)
	for i := range bounds {
		at := first.Add(i).Sub(flex.PeriodAt(s.From))
		if at >= 0 && at < len(shown) {
			bounds[i] = Bound{-shown[at], max(0, could[at]-shown[at])}
		}
	}

	return bounds
}

// Could returns the most that the car could have drawn in each half-hour of the stay, at its
// rated power.
func (s *Stay) Could(power flex.Watts) []flex.WattHours {
	could := make([]flex.WattHours, s.halfHours())
	for i := range could {
		could[i] = min(s.part(i, inHalfHour(power)), s.Drawn)
	}

	return could
}

// Meter takes what the car drew from its own meter. It returns how many half-hours of the
// stay are not known.
func (s *Stay) Meter(days []MeteredDay) int {
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

// Charge takes what the car drew from its state of charge: what the highest level after the
// lowest is above it. The readings are of the stay, in order of time.
func (s *Stay) Charge(levels []flex.Reading, capacity flex.WattHours) {
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

// part returns the part of a half-hour's energy in which the car was plugged in.
func (s *Stay) part(i int, e flex.WattHours) flex.WattHours {
	in := flex.PeriodAt(s.From).Add(i).Span().Meet(s.Span).Len()
	return flex.WattHours(int64(e) * int64(in/time.Second) / int64(flex.HalfHour/time.Second))
}

// Without returns a boundary's days without what assets behind it used. A half-hour is known
// where the boundary and all of them are.
func Without(boundary []MeteredDay, assets ...[]MeteredDay) []MeteredDay {
	rest := make([]MeteredDay, 0, len(boundary))
	for i := range boundary {
		b := &boundary[i]
		m := MeteredDay{Day: b.Day}

		for n := 1; n <= b.Day.Periods(); n++ {
			e, known := b.At(n)
			for _, days := range assets {
				own := dayOf(days, b.Day)
				used, given := flex.WattHours(0), false

				if own != nil {
					used, given = own.At(n)
				}

				e, known = e-used, known && given
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

// At returns the energy of a power in each half-hour of the stay.
func (s *Stay) At(power flex.Watts) []flex.WattHours {
	plan := make([]flex.WattHours, s.halfHours())
	for i := range plan {
		plan[i] = s.part(i, inHalfHour(power))
	}

	return plan
}

// Days lays energies of the stay's half-hours out by day.
func (s *Stay) Days(energies []flex.WattHours) []MeteredDay {
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

// Used returns what an asset that is plugged in used on the days: what its own meter read, and
// nothing where it was not plugged in. Else it is not known.
func Used(
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

// Behind is what an asset behind a meter used, or is shown to have taken.
type Behind struct {
	Type flex.AssetType
	Days []MeteredDay
}

// Together returns what assets behind one meter used together, in the days of the first of
// them. What passes a charger is used by the car at it too: in each half-hour, and for what is
// taken and what is given by itself, the cars count beyond the chargers. A half-hour is known
// where all assets' are.
func Together(assets []Behind) []MeteredDay {
	if len(assets) == 0 {
		return nil
	}

	sum := make([]MeteredDay, len(assets[0].Days))
	for i := range sum {
		sum[i].Day = assets[0].Days[i].Day
		for n := 1; n <= sum[i].Day.Periods(); n++ {
			if e, known := together(assets, sum[i].Day, n); known {
				sum[i].Set(n, e)
			}
		}
	}

	return sum
}

// together is Together in one half-hour.
func together(
	assets []Behind,
	day flex.Day,
	n int,
) (flex.WattHours, bool) {
	var others flex.WattHours
	var chargers, cars [2]flex.WattHours // taken and given

	for _, a := range assets {
		m := dayOf(a.Days, day)
		if m == nil {
			return 0, false
		}

		e, known := m.At(n)
		if !known {
			return 0, false
		}

		of := [2]flex.WattHours{max(0, e), max(0, -e)}
		switch a.Type {
		case flex.Charger:
			chargers[0] += of[0]
			chargers[1] += of[1]
		case flex.ElectricVehicle:
			cars[0] += of[0]
			cars[1] += of[1]
		default:
			others += e
		}
	}

	taken, given := max(chargers[0], cars[0]), max(chargers[1], cars[1])

	return others + taken - given, true
}
