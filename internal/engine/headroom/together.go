package headroom

import (
	"math"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/simplex"
	"flexd/internal/flex"
)

const (
	// togetherCars is the most cars that are divided with their least power: what they can do at once grows as
	// four to the power of their number.
	togetherCars = 3
	// togetherSpans bounds the spans of such a problem, and togetherPivots its work.
	togetherSpans  = 192
	togetherPivots = 4000
	// togetherMissing is the part of all needs that shares may miss before that is tried.
	togetherMissing = 0.002
)

// together divides the headroom under one cap among a few cars, each of which takes nothing or its least power.
type together struct {
	*Profile
	cars  []Car
	free  []flex.Span
	need  []float64 // kWh
	spans []stretch
	lp    simplex.Solver
	modes []mode
}

// stretch is a number of minutes in which nothing changes but what the cars do.
type stretch struct {
	from, to int
	watts    int64 // that are left
}

// mode is what the cars do at once in a stretch.
type mode struct {
	stretch int
	watts   []int64
	column  int // its hours
}

// together divides the headroom among cars with their least power, if their shares miss more of their needs than
// that does. The shares are reserved already, and what takes their place is.
func (r *Profile) together(
	cars []Car,
	prices []flex.PricedPeriod,
	shares [][]flex.Step,
) [][]flex.Step {
	if len(cars) < 2 || len(cars) > togetherCars {
		return shares
	}

	g := &together{Profile: r, cars: cars}
	all := 0.0
	for i := range cars {
		if cars[i].Cap != cars[0].Cap {
			return shares
		}

		span, need := cars[i].afterChargeNow()
		g.free = append(g.free, span)
		g.need = append(g.need, max(0, float64(need)/3.6e6))
		all += g.need[i]
	}

	missing := g.missing(shares)
	if missing <= togetherMissing*all {
		return shares
	}

	for i, steps := range shares {
		r.Release(cars[i].Cap, steps)
	}

	if better := g.solve(prices); better != nil && g.missing(better) < missing {
		shares = better
	}

	for i, steps := range shares {
		r.Reserve(cars[i].Cap, steps)
	}

	return shares
}

// missing is how much of their needs the cars lack with some shares, in kWh.
func (g *together) missing(shares [][]flex.Step) (kwh float64) {
	for i, steps := range shares {
		given := 0.0
		for _, s := range steps {
			given += s.Limit.KW() * s.Meet(g.free[i]).Len().Hours()
		}
		kwh += max(0, g.need[i]-given)
	}

	return kwh
}

// solve is each car's share by a linear programme over what the cars can do at once, nil if there is none. Its
// columns are hours of a mode: any mix of modes in turn is possible. Powers between a mode's are left out.
func (g *together) solve(prices []flex.PricedPeriod) [][]flex.Step {
	g.cut()
	if len(g.spans) == 0 || len(g.spans) > togetherSpans {
		return nil
	}

	g.lp.Reset()
	var crash []int
	for _, s := range g.spans {
		hours := float64(s.to-s.from) / 60
		crash = append(crash, g.slack(hours, 0))
	}

	for _, need := range g.need {
		crash = append(crash, g.slack(need, unservedPrice))
	}

	assumed := charge.AssumedPrice(prices)
	for t, s := range g.spans {
		at := g.instant(s.from).Unix()
		price, _ := charge.PriceAt(prices, at, assumed)
		g.addModes(t, penceOf(price))
	}

	g.lp.Start(crash)
	if g.lp.Solve(math.Inf(1), togetherPivots) != simplex.Optimal {
		return nil
	}

	return g.steps()
}

// slack adds a row of some size, and the variable that fills it.
func (g *together) slack(size, price float64) int {
	row := g.lp.AddRow(size)
	j := g.lp.AddColumn(price, 0, size)
	g.lp.AddEntry(j, row, 1)

	return j
}

// cut finds the stretches: cut where a half-hour, a car's time, its off-peak time or the headroom changes.
func (g *together) cut() {
	cuts := map[int]bool{}
	end := 0
	mark := func(s flex.Span) {
		from, to := g.minutes(s)
		cuts[from], cuts[to] = true, true
	}

	for i := range g.cars {
		mark(g.free[i])
		_, to := g.minutes(g.free[i])
		end = max(end, to)
		for _, s := range g.cars[i].OffPeak {
			mark(s)
		}
	}

	for m := range end {
		w := g.room(m)
		n := len(g.spans)
		anew := n == 0 || cuts[m] || (g.first+int64(m))%30 == 0
		if anew || g.spans[n-1].watts != w {
			g.spans = append(g.spans, stretch{from: m, to: m + 1, watts: w})
			continue
		}

		g.spans[n-1].to = m + 1
	}
}

// room is what is left of the cap in a minute, at most what all the cars can draw.
func (g *together) room(m int) int64 {
	all := int64(0)
	for i := range g.cars {
		all += int64(g.cars[i].Power)
	}

	w, _ := g.left(g.cars[0].Cap, m, all, 0)

	return w
}

// addModes adds what the cars can do at once in a stretch: each nothing, its least or all its power, and one of them
// what the others leave.
func (g *together) addModes(t int, price float64) {
	all := 1
	for range g.cars {
		all *= choices
	}

	for k := range all {
		watts := make([]int64, len(g.cars))
		if g.fill(t, k, watts) {
			g.addMode(t, watts, price)
		}
	}
}

// What a car can do in a mode.
const (
	nothing = iota
	least
	full
	theRest
	choices
)

// fill writes the powers of a mode by its number. It is false if there is no such mode.
func (g *together) fill(t, number int, watts []int64) bool {
	taker, left := -1, g.spans[t].watts
	for i := range g.cars {
		power := int64(g.cars[i].Power)
		choice := number % choices
		number /= choices

		switch choice {
		case least:
			watts[i] = min(power, int64(leastOf(g.cars[i].Problem)))
		case full:
			watts[i] = power
		case theRest:
			if taker >= 0 {
				return false
			}
			taker = i
		}

		left -= watts[i]

		if choice != nothing && !g.open(t, i) {
			return false
		}
	}

	if taker >= 0 {
		c := &g.cars[taker]
		watts[taker] = left
		return left > int64(leastOf(c.Problem)) && left < int64(c.Power)
	}

	return left >= 0
}

// open reports whether a car may charge in a stretch.
func (g *together) open(t, car int) bool {
	s := flex.Span{
		From: g.instant(g.spans[t].from),
		To:   g.instant(g.spans[t].to),
	}

	return g.need[car] > 0 && !s.Meet(g.free[car]).Empty()
}

// addMode adds the hours of a mode, and what an hour of it costs.
func (g *together) addMode(t int, watts []int64, price float64) {
	s := g.spans[t]
	span := flex.Span{From: g.instant(s.from), To: g.instant(s.to)}
	cost := 0.0
	for i, w := range watts {
		p := price
		if c := &g.cars[i]; w > 0 && !c.offPeakAll(span.Meet(g.free[i])) {
			p += c.peakAdder()
		}
		cost += p * float64(w) / 1000
	}

	j := g.lp.AddColumn(cost, 0, float64(s.to-s.from)/60)
	g.lp.AddEntry(j, t, 1)
	for i, w := range watts {
		g.lp.AddEntry(j, len(g.spans)+i, float64(w)/1000)
	}

	g.modes = append(g.modes, mode{stretch: t, watts: watts, column: j})
}

// steps puts the modes of each stretch in turn, to the nearest minute.
func (g *together) steps() [][]flex.Step {
	shares := make([][]flex.Step, len(g.cars))
	at, hours := -1, 0.0
	for _, m := range g.modes {
		if m.stretch != at {
			at, hours = m.stretch, 0
		}

		s := g.spans[at]
		begin := s.from + int(math.Round(60*hours))
		hours += g.lp.Value(m.column)
		end := min(s.to, s.from+int(math.Round(60*hours)))
		span := flex.Span{From: g.instant(begin), To: g.instant(end)}
		for i, w := range m.watts {
			if w > 0 && begin < end {
				shares[i] = joinNext(shares[i], flex.Step{
					Span:  span,
					Limit: flex.Watts(w),
				})
			}
		}
	}

	return shares
}
