package headroom

import (
	"cmp"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/fleet"
	"flexd/internal/flex"
)

// Prices by which a shared fleet weighs its needs, in p/kWh: a need that is not met is worse
// than peak time, where that is allowed, and peak time where it is not is worse than both.
const (
	unservedPrice      = 1000
	peakPrice          = 300
	forbiddenPeakPrice = 5000
)

// Car is a car among others that share caps. Its problem has no limits yet.
type Car struct {
	*charge.Problem
	Cap int // of its group, as a Room names it
}

// Shares are what each car of a fleet is to have of the room that all share.
type Shares struct {
	Cars   [][]flex.Step // reserved for each car, until Release
	Prices []flex.PricedPeriod
	Caps   [][]flex.Price // of room under each cap, half-hour by half-hour
}

// Share divides the room under caps among cars for the least cost, by half-hours, with Solve,
// and reserves each car's share to the minute. Charge-now and what else takes room must be in
// the room already. Where something was traded the fleet is held to what it then draws, and the
// prices are between selling and buying.
func (r *Profile) Share(cars []Car, prices []flex.PricedPeriod, traded []flex.Traded) (Shares, error) {
	p, first, taking := r.fleet(cars, prices, traded)
	a, err := fleet.Solve(&p)
	if err != nil {
		return Shares{}, err
	}

	s := Shares{Cars: make([][]flex.Step, len(cars)), Prices: prices, Caps: make([][]flex.Price, len(r.caps))}
	slots := make([][]share, p.Slots)
	for n, i := range taking {
		e := &p.EVs[n]
		for k, kwh := range a.EVs.Of(n) {
			t := int(e.First) + k
			if seconds := kwh * 3.6e6 / max(1, float64(cars[i].Power)); seconds >= 1 {
				slots[t] = append(slots[t], share{i, seconds})
			}
		}
	}

	for k := range r.caps {
		s.Caps[k] = make([]flex.Price, p.Slots)
		node := k // Solve's first prices are the fleet's cap's, then the groups': the first stands for no group
		if k > 0 {
			node = k + 1
		}

		for t := range s.Caps[k] {
			if node < len(a.Prices.Cap) && t < len(a.Prices.Cap[node]) {
				s.Caps[k][t] = flex.FromGBPPerMWh(10 * a.Prices.Cap[node][t])
			}
		}
	}

	for t, list := range slots {
		slices.SortStableFunc(list, func(a, b share) int { return cmp.Compare(b.seconds, a.seconds) })
		for _, q := range list {
			s.Cars[q.car] = append(s.Cars[q.car], r.pack(&cars[q.car], first.Add(t).Span(), q.seconds)...)
		}
	}

	if len(traded) > 0 {
		r.setCeiling()
		s.Prices = make([]flex.PricedPeriod, p.Slots)
		for t, price := range a.Prices.Market {
			s.Prices[t] = flex.PricedPeriod{Period: first.Add(t), Price: flex.FromGBPPerMWh(10 * price), Known: true}
		}
	}

	return s, nil
}

// share is what a car is to have of a half-hour, in seconds at full power.
type share struct {
	car     int
	seconds float64
}

// pack reserves a share in the minutes of a half-hour: at full power where there is room for
// that, then at less where there is not. Two that share a half-hour so take turns in it, and
// neither is left with less power than a car can charge with.
func (r *Profile) pack(c *Car, half flex.Span, seconds float64) (steps []flex.Step) {
	for _, whole := range []bool{true, false} {
		from, to := r.minutes(half.Meet(flex.Span{From: c.From, To: c.ReadyBy}))
		for m := from; m < to && seconds >= 30; m++ { // to the nearest minute, so that turns add up
			w, _ := r.left(c.Cap, m, int64(c.Power))
			if w == 0 || whole != (w == int64(c.Power)) || contains(steps, r.first+int64(m)) {
				continue
			}

			begin := time.Unix((r.first+int64(m))*60, 0).UTC()
			step := flex.Step{Span: flex.Span{From: begin, To: begin.Add(time.Minute)}, Limit: flex.Watts(w)}
			r.Reserve(c.Cap, []flex.Step{step})
			seconds -= 60 * float64(w) / float64(c.Power)
			if n := len(steps); n > 0 && steps[n-1].To.Equal(begin) && steps[n-1].Limit == step.Limit {
				steps[n-1].To = step.To
			} else {
				steps = append(steps, step)
			}
		}
	}

	return steps
}

// taken reports whether steps hold a minute.
func contains(steps []flex.Step, minute int64) bool {
	return slices.ContainsFunc(steps, func(s flex.Step) bool { return s.Contains(time.Unix(minute*60, 0)) })
}

// fleet writes the cars as a coupled fleet, from the half-hour first on. Of the cars, taking
// names those that are in it.
func (r *Profile) fleet(cars []Car, prices []flex.PricedPeriod, traded []flex.Traded) (p fleet.Problem, first flex.Period, taking []int) {
	first = flex.PeriodAt(time.Unix(r.first*60, 0))
	p.Slots, p.Unserved = 1, unservedPrice
	for i := range cars {
		if e, ok := cars[i].ev(first); ok {
			p.EVs, taking = append(p.EVs, e), append(taking, i)
			p.Slots = max(p.Slots, int(e.Last)+1)
		}
	}

	assumed := charge.AssumedPrice(prices)
	p.Price = make([]float64, p.Slots)
	for t := range p.Price {
		price, _ := charge.PriceAt(prices, first.Add(t).Start().Unix(), assumed)
		p.Price[t] = price.GBPPerMWh() / 10
	}

	p.CapKW = r.capKW(0, first, p.Slots)
	p.Groups = make([]fleet.Group, len(r.caps)) // the first has no cap of its own
	for k := 1; k < len(r.caps); k++ {
		p.Groups[k].CapKW = r.capKW(k, first, p.Slots)
	}

	if len(traded) > 0 {
		p.Position = r.position(traded, p.Price, first)
	}
	return p, first, taking
}

// capKW is what a cap leaves in each half-hour, nil if it bounds no power.
func (r *Profile) capKW(k int, first flex.Period, slots int) []float64 {
	bound := r.caps[k].Power
	if bound == nil {
		return nil
	}

	kw := make([]float64, slots)
	for t := range kw {
		most := int64(0)
		for m, to := r.minutes(first.Add(t).Span()); m < to && r.load[k] != nil; m++ {
			most = max(most, r.load[k][m])
		}
		kw[t] = float64(max(0, int64(*bound)-most)) / 1000
	}

	return kw
}

// position is what was traded, less what others of the fleet draw of it. A half-hour without
// is paid at the market's price.
func (r *Profile) position(traded []flex.Traded, market []float64, first flex.Period) *fleet.Position {
	n := len(market)
	q := &fleet.Position{KWh: make([]float64, n), Buy: append([]float64(nil), market...), Sell: append([]float64(nil), market...)}
	for _, t := range traded {
		i := t.Period.Sub(first)
		if i < 0 || i >= n {
			continue
		}

		others := 0.0
		for m, to := r.minutes(t.Period.Span()); m < to && r.load[0] != nil; m++ {
			others += float64(r.load[0][m]) / 60_000
		}

		q.KWh[i], q.Buy[i], q.Sell[i] = t.Energy.KWh()-others, t.Buy.GBPPerMWh()/10, t.Sell.GBPPerMWh()/10
	}

	return q
}

// ev writes a car for Solve, with the half-hours after charge-now that are wholly its own;
// false if there are none, or nothing is needed.
func (c *Car) ev(first flex.Period) (e fleet.EV, ok bool) {
	from, need := c.From, charge.Joules(c.Need)*3600
	if !c.ChargeNow.Empty() && c.ChargeNow.To.After(from) {
		from = c.ChargeNow.To
		need -= charge.Joules(c.ChargeNow.Meet(flex.Span{From: c.From, To: c.ReadyBy}).Len()/time.Second) * charge.Joules(c.Power)
	}

	begin, end := flex.PeriodAt(from), flex.PeriodAt(c.ReadyBy).Sub(first)-1
	e = fleet.EV{
		EnergyKWh: float64(need) / 3.6e6, MaxKW: c.Power.KW(), Group: int32(c.Cap), PeakAdder: forbiddenPeakPrice,
		FirstFraction: begin.End().Sub(from).Seconds() / 1800,
	}

	if c.MayChargePeak {
		e.PeakAdder = peakPrice
	}
	at := begin.Sub(first)
	if need <= 0 || at < 0 || end < at || at >= fleet.MaxSlots {
		return e, false
	}

	e.First, e.Last = uint8(at), uint8(min(end, fleet.MaxSlots-1))
	for t := e.First; t <= e.Last; t++ {
		if !c.offPeakAll(first.Add(int(t)).Span().Meet(flex.Span{From: from, To: c.ReadyBy})) {
			e.Peak |= 1 << t
		}
	}

	return e, true
}

// offPeakAll reports whether a span is off-peak from end to end.
func (c *Car) offPeakAll(s flex.Span) bool {
	if c.AllOffPeak {
		return true
	}

	for _, o := range c.OffPeak {
		if o.Meet(s) == s {
			return true
		}
	}

	return false
}

// Slack is how long a car could wait and still meet its need, in off-peak time or, where it
// may charge then, in any.
func (c *Car) Slack() time.Duration {
	window := flex.Span{From: c.From, To: c.ReadyBy}
	open := window.Len()
	if !c.AllOffPeak && !c.MayChargePeak {
		open = 0
		for _, o := range c.OffPeak {
			open += o.Meet(window).Len()
		}
	}

	if c.Power <= 0 {
		return open
	}
	return open - time.Duration(int64(c.Need)*3600/int64(c.Power))*time.Second
}
