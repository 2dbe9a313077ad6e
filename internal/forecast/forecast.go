package forecast

import (
	"time"

	"flexd/internal/flex"
)

// The method's numbers.
const (
	Days       = 42  // looked back
	decay      = 0.9 // of a day's weight with each day back
	otherClass = 0.3 // weight of a day of the other class
)

// Series holds metered half-hours: what a home drew from its supply and its roof
// together, or what a roof gave, without gaps filled.
type Series map[flex.Period]flex.WattHours

// At returns what was metered in a half-hour, and whether it was.
func (s Series) At(p flex.Period) (flex.WattHours, bool) {
	e, known := s[p]
	return e, known
}

// Unknown is the load that is guessed of a home of which nothing is known, in each
// half-hour: that of a typical home, 2,700 kWh in a year, without a shape.
const Unknown = flex.WattHours(154)

// Load guesses the load of periods from what was metered before the first of them. It is
// false if nothing was, and then the guess is Unknown. A working day is what the caller
// says is one.
func Load(
	past Series,
	periods []flex.Period,
	working func(flex.Day) bool,
) ([]flex.WattHours, bool) {
	return weightedMean(past, periods, Unknown, wallSlot, func(day, past flex.Day) float64 {
		if working(day) == working(past) {
			return 1
		}
		return otherClass
	})
}

// How what a roof gave earlier in a day changes the guess of the rest of it.
const (
	recent = 0.8 // weight of a half-hour with each one back
	lasts  = 0.9 // part of the change with each half-hour ahead
	// energy for which the usual is believed as much as what was metered
	prior            = 500.0 // Wh
	dullest, clearst = 0.1, 3.0
)

// Solar guesses what a roof gives in periods from what it gave before the first of them.
// It is false if it never gave anything, and then the guess is nothing. Where it gave more or less than usual
// earlier on the day of the first, the rest of the day is guessed higher or lower.
func Solar(past Series, periods []flex.Period) ([]flex.WattHours, bool) {
	same := func(_, _ flex.Day) float64 { return 1 }
	guess, known := weightedMean(past, periods, 0, sunSlot, same)
	if !known || len(periods) == 0 {
		return guess, known
	}

	today, now := sunSlot(periods[0])
	var earlier []flex.Period
	for n := int(now); n > 0; n-- {
		earlier = append(earlier, periods[0].Add(-n))
	}

	usual, _ := weightedMean(past, earlier, 0, sunSlot, same)
	gave, used := prior, prior
	weight := 1.0
	for n := len(earlier) - 1; n >= 0; n-- {
		if e, metered := past[earlier[n]]; metered {
			gave += weight * float64(e)
			used += weight * float64(usual[n])
		}

		weight *= recent
	}

	change := max(dullest, min(clearst, gave/used)) - 1
	for i, p := range periods {
		if day, _ := sunSlot(p); day != today {
			break
		}

		guess[i] = flex.WattHours(float64(guess[i])*(1+change) + 0.5)
		change *= lasts
	}

	return guess, true
}

// slot is a half-hour of the day, 0 to 47.
type slot int

// wallSlot is the half-hour that the clocks in London show, with the day.
func wallSlot(p flex.Period) (flex.Day, slot) {
	local := p.Start().In(flex.London)
	return flex.DayAt(p.Start()), slot(local.Hour()*2 + local.Minute()/30)
}

// sunSlot is the half-hour in UTC, with the day.
func sunSlot(p flex.Period) (flex.Day, slot) {
	t := p.Start()
	return flex.Day{
		Year:  t.Year(),
		Month: t.Month(),
		Dom:   t.Day(),
	}, slot(t.Hour()*2 + t.Minute()/30)
}

// weightedMean is the weighted mean for each period.
func weightedMean(
	past Series,
	periods []flex.Period,
	unknown flex.WattHours,
	at func(flex.Period) (flex.Day, slot),
	weightOf func(day, past flex.Day) float64,
) ([]flex.WattHours, bool) {
	out := make([]flex.WattHours, len(periods))
	if len(periods) == 0 {
		return out, len(past) > 0
	}

	metered, newest := bySlot(past, periods[0], at)
	known := false

	for i, p := range periods {
		day, s := at(p)
		sum, weight := 0.0, 0.0

		for _, m := range metered[s] {
			w := pow(daysBetween(m.day, newest)) * weightOf(day, m.day)
			sum, weight = sum+w*float64(m.energy), weight+w
		}

		out[i] = unknown
		if weight > 0 {
			out[i] = flex.WattHours(sum/weight + 0.5)
			known = true
		}
	}

	if !known {
		return out, false
	}

	return out, true
}

type metered struct {
	day    flex.Day
	energy flex.WattHours
}

// bySlot sorts what was metered before a period by the time of day, and says which day
// was the last.
func bySlot(
	past Series,
	before flex.Period,
	at func(flex.Period) (flex.Day, slot),
) ([48][]metered, flex.Day) {
	var (
		by     [48][]metered
		newest flex.Day
	)

	for n := 1; n <= Days*48; n++ { // in order, so that the same readings give the same guess
		p := before.Add(-n)
		energy, ok := past[p]
		if !ok {
			continue
		}

		day, s := at(p)
		if newest == (flex.Day{}) {
			newest = day
		}

		by[s] = append(by[s], metered{day, energy})
	}

	return by, newest
}

func daysBetween(from, to flex.Day) int {
	a := time.Date(from.Year, from.Month, from.Dom, 0, 0, 0, 0, time.UTC)
	b := time.Date(to.Year, to.Month, to.Dom, 0, 0, 0, 0, time.UTC)
	return int(b.Sub(a) / (24 * time.Hour))
}

// powers are decay to the power of each number of days.
var powers = func() [Days + 2]float64 {
	var p [Days + 2]float64
	p[0] = 1
	for i := range p[1:] {
		p[i+1] = p[i] * decay
	}
	return p
}()

func pow(days int) float64 { return powers[max(0, min(days, len(powers)-1))] }
