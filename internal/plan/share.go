package plan

import (
	"math"
	"time"

	"flexd/internal/flex"
)

// Prices by which a shared fleet weighs its needs, in p/kWh: a need that is not met is worse
// than peak time, where that is allowed, and peak time where it is not is worse than both.
const (
	shareUnserved  = 1000
	sharePeak      = 300
	sharePeakNever = 5000
)

// SharedCar is a car among others that share caps. Its problem has no limits yet.
type SharedCar struct {
	*ChargeProblem
	Cap int // of its group, as a Room names it
}

// Shares are what each car of a fleet is to have of the room that all share.
type Shares struct {
	Cars   [][]flex.Step // power kept for each car; none beyond
	Prices []flex.PricedPeriod
	Caps   [][]flex.Price // of room under each cap, half-hour by half-hour
}

// Share divides the room under caps among cars for the least cost, by half-hours, with Fleet.
// Charge-now and what else takes room must be in the room already. Where something was traded
// the fleet is held to what it then draws, and the prices are between selling and buying.
func (r *Room) Share(cars []SharedCar, prices []flex.PricedPeriod, traded []flex.Traded) (Shares, error) {
	p, first, taking := r.fleet(cars, prices, traded)
	a, err := Fleet(&p)
	if err != nil {
		return Shares{}, err
	}
	s := Shares{Cars: make([][]flex.Step, len(cars)), Prices: prices, Caps: make([][]flex.Price, len(r.caps))}
	total := make([]float64, p.Slots)
	for n, i := range taking {
		e := &p.EVs[n]
		for k, kwh := range a.EVs.Of(n) {
			slot := first.Add(int(e.First) + k)
			span := slot.Span()
			if k == 0 {
				span.From = span.To.Add(-time.Duration(math.Round(e.FirstFraction*1800)) * time.Second)
			}
			if w := flex.Watts(math.Round(kwh * 3.6e6 / max(1, span.Len().Seconds()))); w > 0 && !span.Empty() {
				s.Cars[i] = append(s.Cars[i], flex.Step{Span: span, Limit: min(w, cars[i].Power)})
				total[int(e.First)+k] += kwh
			}
		}
	}
	for k := range r.caps {
		s.Caps[k] = make([]flex.Price, p.Slots)
		node := k // Fleet's first prices are the fleet's cap's, then the groups': the first stands for no group
		if k > 0 {
			node = k + 1
		}
		for t := range s.Caps[k] {
			if node < len(a.Prices.Cap) && t < len(a.Prices.Cap[node]) {
				s.Caps[k][t] = flex.FromGBPPerMWh(10 * a.Prices.Cap[node][t])
			}
		}
	}
	if len(traded) > 0 {
		s.Prices = r.holdTo(traded, total, a.Prices.Market, first)
	}
	return s, nil
}

// holdTo holds the fleet to what it draws in the half-hours that were traded, and returns the
// prices at which it does.
func (r *Room) holdTo(traded []flex.Traded, total, market []float64, first flex.Period) (prices []flex.PricedPeriod) {
	for _, t := range traded {
		if i := t.Period.Sub(first); i >= 0 && i < len(total) {
			others := int64(0)
			if r.load[0] != nil {
				if m, to := r.minutes(t.Period.Span()); m < to {
					others = r.load[0][to-1]
				}
			}
			r.Hold(t.Period.Span(), flex.Watts(others+int64(math.Ceil(total[i]*2000))))
		}
	}
	for i, p := range market {
		prices = append(prices, flex.PricedPeriod{Period: first.Add(i), Price: flex.FromGBPPerMWh(10 * p), Known: true})
	}
	return prices
}

// fleet writes the cars as a coupled fleet, from the half-hour first on. Of the cars, taking
// names those that are in it.
func (r *Room) fleet(cars []SharedCar, prices []flex.PricedPeriod, traded []flex.Traded) (p FleetProblem, first flex.Period, taking []int) {
	first = flex.PeriodAt(time.Unix(r.first*60, 0))
	p.Slots, p.Unserved = 1, shareUnserved
	for i := range cars {
		if e, ok := cars[i].ev(first); ok {
			p.EVs, taking = append(p.EVs, e), append(taking, i)
			p.Slots = max(p.Slots, int(e.Last)+1)
		}
	}
	assumed := assumedPrice(prices)
	p.Price = make([]float64, p.Slots)
	for t := range p.Price {
		price, _ := priceAt(prices, first.Add(t).Start().Unix(), assumed)
		p.Price[t] = price.GBPPerMWh() / 10
	}
	p.CapKW = r.capKW(0, first, p.Slots)
	p.Groups = make([]FleetGroup, len(r.caps)) // the first has no cap of its own
	for k := 1; k < len(r.caps); k++ {
		p.Groups[k].CapKW = r.capKW(k, first, p.Slots)
	}
	if len(traded) > 0 {
		p.Position = r.position(traded, p.Price, first)
	}
	return p, first, taking
}

// capKW is what a cap leaves in each half-hour, nil if it bounds no power.
func (r *Room) capKW(k int, first flex.Period, slots int) []float64 {
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
func (r *Room) position(traded []flex.Traded, market []float64, first flex.Period) *FleetPosition {
	n := len(market)
	q := &FleetPosition{KWh: make([]float64, n), Buy: append([]float64(nil), market...), Sell: append([]float64(nil), market...)}
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

// ev writes a car for Fleet, with the half-hours after charge-now that are wholly its own;
// false if there are none, or nothing is needed.
func (c *SharedCar) ev(first flex.Period) (e FleetEV, ok bool) {
	from, need := c.From, joules(c.Need)*3600
	if !c.ChargeNow.Empty() && c.ChargeNow.To.After(from) {
		from = c.ChargeNow.To
		need -= joules(c.ChargeNow.Meet(flex.Span{From: c.From, To: c.ReadyBy}).Len()/time.Second) * joules(c.Power)
	}
	begin, end := flex.PeriodAt(from), flex.PeriodAt(c.ReadyBy).Sub(first)-1
	e = FleetEV{
		EnergyKWh: float64(need) / 3.6e6, MaxKW: c.Power.KW(), Group: int32(c.Cap), PeakAdder: sharePeakNever,
		FirstFraction: begin.End().Sub(from).Seconds() / 1800,
	}
	if c.MayChargePeak {
		e.PeakAdder = sharePeak
	}
	at := begin.Sub(first)
	if need <= 0 || at < 0 || end < at || at >= FleetSlots {
		return e, false
	}
	e.First, e.Last = uint8(at), uint8(min(end, FleetSlots-1))
	for t := e.First; t <= e.Last; t++ {
		if !c.offPeakAll(first.Add(int(t)).Span().Meet(flex.Span{From: from, To: c.ReadyBy})) {
			e.Peak |= 1 << t
		}
	}
	return e, true
}

// offPeakAll reports whether a span is off-peak from end to end.
func (c *SharedCar) offPeakAll(s flex.Span) bool {
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
func (c *SharedCar) Slack() time.Duration {
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
