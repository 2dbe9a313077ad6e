package charge

import (
	"slices"

	"flexd/internal/flex"
)

// Joules counts energy in watt-seconds, the finest unit of a schedule.
type Joules int64

// tier is the priority class of a period.
type tier uint8

const (
	tierShut tier = iota // never used
	tierNow              // charge-now
	tierOpen             // off-peak that is open whatever the need
	tierOff              // off-peak that is bought for the need
	// peak time that is bought for what off-peak time cannot deliver
	tierPeak
)

// segment is a span in which no input changes: at most a half-hour.
type segment struct {
	from, to int64 // Unix seconds
	power    int64 // watts that may flow
	price    flex.Price
	// the sort key of the purchase: the price, or 0
	key     flex.Price
	known   bool
	offPeak bool
	tier    tier
	reason  Reason
	// the plan begins with this segment while the car is charging
	running bool
	// the charging part: empty, all, or one end of the segment
	onFrom int64
	onTo   int64
}

func (k *segment) size() Joules { return Joules((k.to - k.from) * k.power) }

func (k *segment) energy() Joules {
	return Joules((k.onTo - k.onFrom) * k.power)
}

func (k *segment) fill() { k.onFrom, k.onTo = k.from, k.to }

// pay returns the cost of energy e in micro-pounds.
func (k *segment) pay(e Joules) float64 {
	return float64(k.price) * float64(e) / (3600 * 1e6)
}

// limit returns the limit of the step for the segment's charging part.
func (k *segment) limit(p *Problem) flex.Watts {
	if p.Exact || flex.Watts(k.power) < p.Power {
		return flex.Watts(k.power)
	}
	return flex.FullLimit(p.Power)
}

// costOf returns the total cost of the segments' charging parts.
func costOf(c []segment) float64 {
	var sum float64
	for i := range c {
		sum += c[i].pay(c[i].energy())
	}
	return sum
}

// Sizes for the plan of a night: so many fit on the stack, and larger ones are allocated.
const (
	segmentsUsual = 48
	stepsUsual    = 16
)

// segmentsOf appends the segments of the problem's time to c, divided wherever an input
// changes.
func segmentsOf(c []segment, p *Problem, ignorePrices bool) []segment {
	edges := edgesOf(make([]int64, 0, 2*segmentsUsual), p)
	assumed := AssumedPrice(p.Prices)
	for i := 1; i < len(edges); i++ {
		k := segment{
			from:   edges[i-1],
			to:     edges[i],
			onFrom: edges[i-1],
			onTo:   edges[i-1],
		}

		k.power = int64(p.Power)
		if w, capped := LimitAt(p.Limits, k.from); capped {
			k.power = max(0, min(k.power, int64(w)))
		}

		k.price, k.known = PriceAt(p.Prices, k.from, assumed)
		k.offPeak = p.AllOffPeak || within(p.OffPeak, k.from)
		if !ignorePrices {
			k.key = k.price
		}

		k.running = i == 1 && p.Running
		k.tier, k.reason = tierOf(p, &k)
		c = append(c, k)
	}

	return c
}

// tierOf sets the tier of a segment. A segment that never charges gets its reason here; a cap
// is the reason only if the car could charge without it.
func tierOf(p *Problem, k *segment) (tier, Reason) {
	now := k.from >= p.ChargeNow.From.Unix() && k.from < p.ChargeNow.To.Unix()
	switch {
	case now && k.power > 0:
		return tierNow, 0
	case !now && k.from >= p.ReadyBy.Unix():
		return tierShut, PastReady
	case !now && !k.offPeak && !p.MayChargePeak:
		return tierShut, PeakClosed
	case k.power <= 0:
		return tierShut, CapClosed

	case !k.offPeak:
		return tierPeak, 0
	case p.Mode == flex.Minimise, p.PauseAbove > 0 && k.known && k.price > p.PauseAbove:
		return tierOff, 0
	}

	return tierOpen, 0
}

// edgesOf appends to the empty slice the instants at which the problem changes, in order, from
// its start to its end.
func edgesOf(edges []int64, p *Problem) []int64 {
	from, ready := p.From.Unix(), p.ReadyBy.Unix()
	to := ready
	if !p.ChargeNow.Empty() {
		to = max(to, p.ChargeNow.To.Unix())
	}
	if from >= to {
		return nil
	}

	edges = append(edges, from)
	for t := from - from%1800 + 1800; t < to; t += 1800 {
		edges = append(edges, t)
	}

	edges = append(edges, to)
	add := func(at int64) {
		i, found := slices.BinarySearch(edges, at)
		if !found && from < at && at < to {
			edges = slices.Insert(edges, i, at)
		}
	}

	add(ready)
	addSpan := func(s flex.Span) {
		if !s.Empty() {
			add(s.From.Unix())
			add(s.To.Unix())
		}
	}

	addSpan(p.ChargeNow)
	for _, s := range p.OffPeak {
		addSpan(s)
	}

	for _, l := range p.Limits {
		addSpan(l.Span)
	}

	return edges
}

// within reports whether one of the sorted spans contains the instant.
func within(spans []flex.Span, unix int64) bool {
	for i := range spans { // few
		if unix < spans[i].To.Unix() {
			return spans[i].From.Unix() <= unix
		}
	}

	return false
}

// LimitAt returns the cap in force at the instant, if there is one.
func LimitAt(limits []flex.Step, unix int64) (flex.Watts, bool) {
	i, _ := slices.BinarySearchFunc(limits, unix, func(l flex.Step, t int64) int {
		if l.To.Unix() <= t {
			return -1
		}
		return 1
	})

	if i < len(limits) && limits[i].From.Unix() <= unix {
		return limits[i].Limit, true
	}

	return 0, false
}

// AssumedPrice is the price assumed for a missing one: the lower median of the known prices,
// or zero if none is known.
func AssumedPrice(prices []flex.PricedPeriod) flex.Price {
	known := make([]flex.Price, 0, 2*segmentsUsual)
	for _, q := range prices {
		if q.Known {
			known = append(known, q.Price)
		}
	}

	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)

	return known[(len(known)-1)/2]
}

// PriceAt returns the price of the period that contains the instant, or the assumed one.
func PriceAt(
	prices []flex.PricedPeriod,
	unix int64,
	assumed flex.Price,
) (flex.Price, bool) {
	if len(prices) == 0 {
		return assumed, false
	}

	period := flex.PeriodAt(fromUnix(unix))
	i := period.Sub(prices[0].Period) // if they follow each other without a gap
	found := i >= 0 && i < len(prices) && prices[i].Period == period
	if !found {
		i, found = slices.BinarySearchFunc(
			prices,
			period,
			func(q flex.PricedPeriod, p flex.Period) int {
				return q.Period.Sub(p)
			},
		)
	}

	if found && prices[i].Known {
		return prices[i].Price, true
	}

	return assumed, false
}
