package headroom

import (
	"cmp"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/fleet"
	"flexd/internal/flex"
)

// The prices that weigh the cars' needs against energy costs, in p/kWh. A need that is not met
// is worse than allowed charging in peak time. Charging in peak time that is not allowed is
// worse than both.
const (
	unservedPrice      = 1000
	peakPrice          = 300
	forbiddenPeakPrice = 5000
)

// Car is one of the cars that share caps. The only limits of its problem are the times that an
// instruction closes.
type Car struct {
	*charge.Problem
	Cap int // the index of its group's cap
}

// Shares is how the headroom is divided among the cars.
type Shares struct {
	Cars   [][]flex.Step // reserved for each car, until Release
	Prices []flex.PricedPeriod
	Caps   [][]flex.Price // of headroom under each cap, half-hour by half-hour
}

// Share divides the headroom under caps among cars at the least cost. It solves the fleet in
// half-hours with package fleet, and then reserves each car's share in whole minutes.
// Charge-now and other loads must be in the profile already. If energy was traded, the fleet
// is then limited to what it draws by this plan, and the prices lie between the prices of
// selling and buying.
func (r *Profile) Share(
	cars []Car,
	prices []flex.PricedPeriod,
	traded []flex.Traded,
) (Shares, error) {
	ends := r.reserveLastParts(cars)
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

	// Convert each half-hour's energies into minutes.
	for t, list := range p.shares(&plan, cars) {
		// The largest share comes first, because it has the least choice of minutes.
		slices.SortStableFunc(list, func(a, b share) int {
			return cmp.Compare(b.seconds, a.seconds)
		})
		for _, q := range list {
			steps := r.reserveShare(&cars[q.car], p.first.Add(t).Span(), q.seconds)
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

// reserveLastParts reserves, for each car whose ready-by is within a half-hour, what it needs
// in the part before ready-by. The fleet's plan has whole half-hours only, and would give that
// part to another car.
func (r *Profile) reserveLastParts(cars []Car) [][]flex.Step {
	ends := make([][]flex.Step, len(cars))
	for i := range cars {
		c := &cars[i]
		last := flex.PeriodAt(c.ReadyBy)
		if !last.Start().Before(r.instant(horizon)) { // ready-by is beyond the horizon
			continue
		}

		if seconds := c.needInLastPart(last); seconds >= 1 {
			ends[i] = r.reserveShare(c, last.Span(), seconds)
		}
	}

	return ends
}

// marketPrices returns the plan's own prices of energy, which lie between selling and buying;
// after its end, the market's.
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

// penceOf converts a price to pence per kWh.
func penceOf(p flex.Price) float64 { return p.GBPPerMWh() / 10 }

// capPrices returns the prices of headroom by the index of the cap. A plan of package fleet
// lists the fleet's cap first, then those of its groups. Its first group is that of the cars
// without one, which has no cap.
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

// share is a car's part of a half-hour, in seconds at full power.
type share struct {
	car     int
	seconds float64
}

// reserveShare reserves a share in the minutes of a half-hour: first where there is headroom
// for full power, then where there is less. Two cars that share a half-hour thus take turns,
// and neither is left with less power than it can charge with.
func (r *Profile) reserveShare(
	c *Car,
	half flex.Span,
	seconds float64,
) []flex.Step {
	free, _ := c.afterChargeNow() // the share does not include charge-now
	from, to := r.minutes(half.Meet(free))

	var steps []flex.Step
	// First the minutes with full power, then those with less.
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

// joinNext appends a step, or extends the last one if the new step follows it directly with
// the same limit.
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

// contains reports whether an instant lies in one of the steps.
func contains(steps []flex.Step, at time.Time) bool {
	return slices.ContainsFunc(steps, func(s flex.Step) bool {
		return s.Contains(at)
	})
}

// sharedProblem is the problem of a fleet that shares caps.
type sharedProblem struct {
	fleet.Problem
	first  flex.Period // its first half-hour
	cars   []int       // of each EV, its index among all cars
	groups []int       // of each cap, the index of its group in the fleet's problem; 0 for the fleet's
}

// shares returns each car's part of each half-hour by a plan.
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

// problem returns the cars as a fleet that shares caps, from the profile's first half-hour on.
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

// groups returns the index of each cap's group in the fleet's problem. A group comes after the
// one that it lies in. The fleet's index is 0.
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

// capKW returns the mean power that a cap leaves in each half-hour; nil if it limits no power.
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

		// The fleet's plan counts energy. In a half-hour that has begun, only the remaining
		// minutes count.
		hours := float64(to-from) / 30
		kw[t] = float64(max(0, least)) / 1000 * hours
	}

	return kw
}

// position returns the energy that was traded, less what other loads draw of it. In a
// half-hour without a trade, energy costs the market's price.
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

		// In a half-hour that has begun, the energy bought for its first part counts as drawn.
		hours := float64(to-from) / 30
		q.KWh[i] = t.Energy.KWh()*hours - others
		q.Buy[i] = penceOf(t.Buy)
		q.Sell[i] = penceOf(t.Sell)
	}

	return q
}

// addCars adds the cars that need energy, and extends the problem to the last car's end.
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

// afterChargeNow returns the car's time after charge-now, and the energy that it needs then.
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

// needInLastPart returns what a car needs beyond the half-hours before the last one, in seconds
// at full power. It is 0 if the car has no part of the last half-hour, or may not charge
// there.
func (c *Car) needInLastPart(last flex.Period) float64 {
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

// closedSpans returns the time that an instruction closes for a car. It is none if the other
// time is not enough for what the car needs: the need takes precedence.
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

// ev returns a car for package fleet, with the half-hours after charge-now that it has
// completely. It returns false if there are none, or nothing is needed.
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

	// Time that an instruction closes counts as peak time, so that other cars are given it
	// where possible.
	closed := c.closedSpans(free, need)
	for t := e.First; t <= e.Last; t++ {
		half := first.Add(int(t)).Span().Meet(free)
		if !c.offPeakAll(half) || covers(closed, half) {
			e.Peak |= 1 << t
		}
	}

	return e, true
}

// peakAdder returns what a kWh in peak time counts in addition to its price.
func (c *Car) peakAdder() float64 {
	if c.MayChargePeak {
		return peakPrice
	}
	return forbiddenPeakPrice
}

// offPeakAll reports whether a span is completely off-peak.
func (c *Car) offPeakAll(s flex.Span) bool {
	return c.AllOffPeak || covers(c.OffPeak, s)
}

// covers reports whether s lies completely within one of the spans.
func covers(spans []flex.Span, s flex.Span) bool {
	return slices.ContainsFunc(spans, func(o flex.Span) bool {
		return !s.From.Before(o.From) && !s.To.After(o.To)
	})
}

// Slack returns how long a car could wait and still meet its need. Only off-peak time counts,
// unless the car may charge in peak time too.
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
