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

// Car is a car among others that share caps. Its problem has no limits yet but the time that it leaves out.
type Car struct {
	*charge.Problem
	Cap int // of its group, by its place
}

// Shares are what each car of a fleet is to have of the headroom that all share.
type Shares struct {
	Cars   [][]flex.Step // reserved for each car, until Release
	Prices []flex.PricedPeriod
	Caps   [][]flex.Price // of headroom under each cap, half-hour by half-hour
}

// Share divides the headroom under caps among cars for the least cost, by half-hours, with
// package fleet, and reserves each car's share to the minute. Charge-now and other loads must
// be in the profile already. Where something was traded the fleet is held to what it then
// draws, and the prices are between selling and buying.
func (r *Profile) Share(
	cars []Car,
	prices []flex.PricedPeriod,
	traded []flex.Traded,
) (Shares, error) {
	ends := r.reserveEnds(cars)
	p := r.problem(cars, prices, traded)
	plan, err := fleet.Solve(&p.Problem)
	if err != nil {
		return Shares{}, err
	}

	s := Shares{
		Cars:   make([][]flex.Step, len(cars)),
		Prices: prices,
		Caps:   p.capPrices(&plan),
	}

	for t, list := range p.shares(&plan, cars) {
		// The largest first, as it has the least choice of minutes.
		slices.SortStableFunc(list, func(a, b share) int {
			return cmp.Compare(b.seconds, a.seconds)
		})
		for _, q := range list {
			steps := r.pack(&cars[q.car], p.first.Add(t).Span(), q.seconds)
			s.Cars[q.car] = append(s.Cars[q.car], steps...)
		}
	}

	for i, steps := range ends {
		s.Cars[i] = append(s.Cars[i], steps...)
	}

	if len(traded) > 0 {
		r.setCeiling()
		s.Prices = p.marketPrices(&plan, prices)
	}

	return s, nil
}

// reserveEnds reserves for each car what it needs beyond its whole half-hours, in the part of a half-hour that it has before
// ready-by. The fleet's plan knows only whole ones, and another car would be given that part.
func (r *Profile) reserveEnds(cars []Car) [][]flex.Step {
	ends := make([][]flex.Step, len(cars))
	for i := range cars {
		c := &cars[i]
		last := flex.PeriodAt(c.ReadyBy)
		if !last.Start().Before(r.instant(horizon)) { // its end is not planned yet
			continue
		}

		if seconds := c.beyondWhole(last); seconds >= 1 {
			ends[i] = r.pack(c, last.Span(), seconds)
		}
	}

	return ends
}

// marketPrices are the plan's own prices of energy, between selling and buying, and the market's after its end.
func (p *sharedProblem) marketPrices(
	plan *fleet.Plan,
	market []flex.PricedPeriod,
) []flex.PricedPeriod {
	prices := make([]flex.PricedPeriod, p.Slots)
	for t, price := range plan.Prices.Market {
		prices[t] = flex.PricedPeriod{
			Period: p.first.Add(t),
			Price:  priceOf(price),
			Known:  true,
		}
	}

	for _, q := range market {
		if q.Period.Sub(p.first) >= p.Slots {
			prices = append(prices, q)
		}
	}

	return prices
}

// priceOf turns pence per kWh into a price.
func priceOf(pencePerKWh float64) flex.Price {
	return flex.FromGBPPerMWh(10 * pencePerKWh)
}

// penceOf is a price in pence per kWh.
func penceOf(p flex.Price) float64 { return p.GBPPerMWh() / 10 }

// capPrices returns the prices of caps by their places. A plan of a fleet has the fleet's cap
// first, then the groups'; the first group is that of cars without one, and has no cap.
func (p *sharedProblem) capPrices(plan *fleet.Plan) [][]flex.Price {
	all := make([][]flex.Price, len(p.groups))
	for k := range all {
		all[k] = make([]flex.Price, p.Slots)
		node := 0
		if k > 0 {
			node = p.groups[k] + 1
		}
		if node >= len(plan.Prices.Cap) {
			continue
		}

		row := plan.Prices.Cap[node]
		for t := range min(p.Slots, len(row)) {
			all[k][t] = priceOf(row[t])
		}
	}

	return all
}

// share is what a car is to have of a half-hour, in seconds at full power.
type share struct {
	car     int
	seconds float64
}

// pack reserves a share in the minutes of a half-hour: at full power where there is headroom
// for that, then at less where there is not. Two that share a half-hour so take turns in it,
// and neither is left with less power than a car can charge with.
func (r *Profile) pack(
	c *Car,
	half flex.Span,
	seconds float64,
) []flex.Step {
	free, _ := c.afterChargeNow() // the share is of that time alone
	from, to := r.minutes(half.Meet(free))

	var steps []flex.Step
	for _, unsplit := range []bool{true, false} {
		for m := from; m < to && seconds >= 30; m++ { // to the nearest minute, so that turns add up
			w, _ := r.freePower(c.Cap, m, int64(c.Power), leastOf(c.Problem))
			if w == 0 || unsplit != (w == int64(c.Power)) ||
				contains(steps, r.instant(m)) {
				continue
			}

			begin := r.instant(m)
			step := flex.Step{
				Span:  flex.Span{From: begin, To: begin.Add(time.Minute)},
				Limit: flex.Watts(w),
			}

			r.Reserve(c.Cap, []flex.Step{step})
			seconds -= 60 * float64(w) / float64(c.Power)
			steps = joinNext(steps, step)
		}
	}

	return steps
}

// joinNext appends a step, or lengthens the last one if the step follows it at once with the
// same limit.
func joinNext(
	steps []flex.Step,
	next flex.Step,
) []flex.Step {
	n := len(steps)
	if n > 0 && steps[n-1].To.Equal(next.From) &&
		steps[n-1].Limit == next.Limit {
		steps[n-1].To = next.To
		return steps
	}

	return append(steps, next)
}

// contains reports whether one of the steps holds an instant.
func contains(steps []flex.Step, at time.Time) bool {
	return slices.ContainsFunc(steps, func(s flex.Step) bool {
		return s.Contains(at)
	})
}

// sharedProblem is the problem of a fleet that shares caps.
type sharedProblem struct {
	fleet.Problem
	first  flex.Period // its first half-hour
	cars   []int       // of each EV, the place among all cars
	groups []int       // of each cap, the place of its group; 0 for the fleet's
}

// shares returns what each car has of each half-hour by a plan.
func (p *sharedProblem) shares(
	plan *fleet.Plan,
	cars []Car,
) [][]share {
	slots := make([][]share, p.Slots)
	for n, i := range p.cars {
		first := int(p.EVs[n].First)
		for k, kwh := range plan.EVs.Of(n) {
			seconds := kwh * 3.6e6 / max(1, float64(cars[i].Power))
			if seconds >= 1 {
				slots[first+k] = append(slots[first+k], share{i, seconds})
			}
		}
	}

	return slots
}

// problem writes the cars as a fleet that shares caps, from the profile's first half-hour on.
func (r *Profile) problem(
	cars []Car,
	prices []flex.PricedPeriod,
	traded []flex.Traded,
) *sharedProblem {
	p := &sharedProblem{first: flex.PeriodAt(r.instant(0))}
	p.Unserved = unservedPrice
	p.groups = r.groups()
	p.addCars(cars)

	assumed := charge.AssumedPrice(prices)
	p.Price = make([]float64, p.Slots)
	for t := range p.Price {
		price, _ := charge.PriceAt(
			prices,
			p.first.Add(t).Start().Unix(),
			assumed,
		)

		p.Price[t] = penceOf(price)
	}

	p.CapKW = r.capKW(0, p.first, p.Slots)
	p.Groups = make([]fleet.Group, len(r.caps)) // the first has no cap of its own
	for k := 1; k < len(r.caps); k++ {
		g := &p.Groups[p.groups[k]]
		g.CapKW = r.capKW(k, p.first, p.Slots)
		if up := r.parents[k]; up != 0 {
			g.Parent = int32(p.groups[up] + 1)
		}
	}

	if len(traded) > 0 {
		p.Position = r.position(traded, p.Price, p.first)
	}

	return p
}

// groups gives the group of each cap its place in a fleet's problem: after the one that it lies in. The fleet's is 0.
func (r *Profile) groups() []int {
	depth := make([]int, len(r.caps))
	order := make([]int, len(r.caps))
	for k := range order {
		order[k] = k
		r.eachCap(k, func(int) { depth[k]++ })
	}

	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(depth[a], depth[b])
	})

	places := make([]int, len(r.caps))
	for i, k := range order {
		places[k] = i
	}

	return places
}

// capKW is what a cap leaves in each half-hour, on average over all of it, nil if it bounds no power.
func (r *Profile) capKW(
	k int,
	first flex.Period,
	slots int,
) []float64 {
	if !r.bounds(k) {
		return nil
	}

	kw := make([]float64, slots)
	for t := range kw {
		least := int64(flex.CapMax)
		if p := r.caps[k].Power; p != nil {
			least = int64(*p)
		}

		from, to := r.minutes(first.Add(t).Span())
		for m := from; m < to; m++ {
			if watts, bounded := r.cap(k, m); bounded {
				least = min(least, watts-r.loadAt(k, m))
			}
		}

		// The fleet's plan counts energy: what is over of a half-hour that has begun carries none any more.
		hours := float64(to-from) / 30
		kw[t] = float64(max(0, least)) / 1000 * hours
	}

	return kw
}

// position is what was traded, less what others of the fleet draw of it. A half-hour without
// is paid at the market's price.
func (r *Profile) position(
	traded []flex.Traded,
	market []float64,
	first flex.Period,
) *fleet.Position {
	n := len(market)
	q := &fleet.Position{
		KWh:  make([]float64, n),
		Buy:  slices.Clone(market),
		Sell: slices.Clone(market),
	}

	for _, t := range traded {
		i := t.Period.Sub(first)
		if i < 0 || i >= n {
			continue
		}

		others := 0.0
		from, to := r.minutes(t.Period.Span())
		for m := from; m < to && r.load[0] != nil; m++ {
			others += float64(r.load[0][m]) / 60_000
		}

		// Of a half-hour that has begun, what was bought for the time that is over was drawn then.
		hours := float64(to-from) / 30
		q.KWh[i] = t.Energy.KWh()*hours - others
		q.Buy[i] = penceOf(t.Buy)
		q.Sell[i] = penceOf(t.Sell)
	}

	return q
}

// addCars adds the cars that need anything, and has the problem reach to the last one's end.
func (p *sharedProblem) addCars(cars []Car) {
	p.Slots = 1
	for i := range cars {
		e, ok := cars[i].ev(p.first)
		if !ok {
			continue
		}

		e.Group = int32(p.groups[cars[i].Cap])
		p.EVs = append(p.EVs, e)
		p.cars = append(p.cars, i)
		p.Slots = max(p.Slots, int(e.Last)+1)
	}
}

// afterChargeNow is the time that a car has to itself once charge-now is over, and what it
// needs then.
func (c *Car) afterChargeNow() (flex.Span, charge.Joules) {
	free := flex.Span{From: c.From, To: c.ReadyBy}
	need := charge.Joules(c.Need) * 3600
	if !c.ChargeNow.Empty() && c.ChargeNow.To.After(c.From) {
		now := c.ChargeNow.Meet(free).Len() / time.Second
		need -= charge.Joules(now) * charge.Joules(c.Power)
		free.From = c.ChargeNow.To
	}

	return free, need
}

// beyondWhole is what a car needs beyond the half-hours before the last one, in seconds at full power: nothing where it has no part of
// the last, or may not charge there.
func (c *Car) beyondWhole(last flex.Period) float64 {
	free, need := c.afterChargeNow()
	closed := c.closedSpans(free, need)
	opens := func(s flex.Span) bool {
		return (c.MayChargePeak || c.offPeakAll(s)) && !covers(closed, s)
	}

	end := last.Span().Meet(free)
	if end.Empty() || !opens(end) {
		return 0
	}

	seconds := float64(need) / max(1, float64(c.Power))
	for at := flex.PeriodAt(free.From); seconds > 0 && at.Before(last); at = at.Add(1) {
		if half := at.Span().Meet(free); opens(half) {
			seconds -= half.Len().Seconds()
		}
	}

	return seconds
}

// closedSpans is the time that an instruction has a car leave out, by its problem. It is none where the car's other time does not take
// what it needs: the need goes first.
func (c *Car) closedSpans(free flex.Span, need charge.Joules) []flex.Span {
	var closed []flex.Span
	for _, s := range c.Limits {
		if s.Limit <= 0 {
			closed = append(closed, s.Span)
		}
	}
	if len(closed) == 0 {
		return nil
	}

	open := c.OffPeak
	if c.AllOffPeak || c.MayChargePeak {
		open = []flex.Span{free}
	}

	seconds := 0.0
	for _, o := range open {
		remaining := o.Meet(free)
		seconds += remaining.Len().Seconds()
		for _, s := range closed {
			seconds -= s.Meet(remaining).Len().Seconds()
		}
	}

	if seconds*float64(c.Power) < float64(need) {
		return nil
	}

	return closed
}

// ev writes a car for package fleet, with the half-hours after charge-now that are wholly its
// own; false if there are none, or nothing is needed.
func (c *Car) ev(first flex.Period) (fleet.EV, bool) {
	free, need := c.afterChargeNow()
	if need <= 0 {
		return fleet.EV{}, false
	}

	begin := flex.PeriodAt(free.From)
	from, to := begin.Sub(first), flex.PeriodAt(c.ReadyBy).Sub(first)-1
	if from < 0 || to < from || from >= fleet.MaxSlots {
		return fleet.EV{}, false
	}

	e := fleet.EV{
		EnergyKWh:     float64(need) / 3.6e6,
		MaxKW:         c.Power.KW(),
		PeakAdder:     c.peakAdder(),
		First:         uint8(from),
		Last:          uint8(min(to, fleet.MaxSlots-1)),
		FirstFraction: begin.End().Sub(free.From).Seconds() / 1800,
	}

	// What an instruction closes counts as peak time, so that others have it where they can.
	closed := c.closedSpans(free, need)
	for t := e.First; t <= e.Last; t++ {
		half := first.Add(int(t)).Span().Meet(free)
		if !c.offPeakAll(half) || covers(closed, half) {
			e.Peak |= 1 << t
		}
	}

	return e, true
}

// peakAdder is what a kWh in peak time counts beside its price.
func (c *Car) peakAdder() float64 {
	if c.MayChargePeak {
		return peakPrice
	}
	return forbiddenPeakPrice
}

// offPeakAll reports whether a span is off-peak from end to end.
func (c *Car) offPeakAll(s flex.Span) bool {
	return c.AllOffPeak || covers(c.OffPeak, s)
}

// covers reports whether one of some spans has all of another.
func covers(spans []flex.Span, s flex.Span) bool {
	return slices.ContainsFunc(spans, func(o flex.Span) bool {
		return !s.From.Before(o.From) && !s.To.After(o.To)
	})
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
