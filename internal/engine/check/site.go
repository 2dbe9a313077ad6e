package check

import (
	"math"

	"flexd/internal/engine/site"
	"flexd/internal/flex"
)

// Tolerances of a plan of a site: kWh, kelvin and the share of the turnover.
const (
	siteLimit = 1e-6
	siteMoney = 1e-6
)

// siteBooks has the sums of the check of a site's plan.
type siteBooks struct {
	p     *site.Problem
	net   []float64 // of all devices and the base load, minus solar generation
	own   []float64 // consumption of the building
	fed   []float64 // discharge of batteries
	cars  []bool    // a car charges
	cost  float64
	gross float64
	short float64
	peak  float64
	fault error
}

// newSiteBooks returns the initial sums of a site.
func newSiteBooks(p *site.Problem) *siteBooks {
	n := len(p.Load)

	return &siteBooks{
		p:    p,
		net:  make([]float64, n),
		own:  make([]float64, n),
		fed:  make([]float64, n),
		cars: make([]bool, n),
	}
}

// SiteTurnover returns the sum of the absolute terms of a plan's cost, in pence.
func SiteTurnover(p *site.Problem, a *site.Plan) float64 {
	b := newSiteBooks(p)
	b.devices(a)
	b.meter()

	return b.gross
}

// Site checks the plan of a site against its limits, and the figures of the result against the
// computed ones.
func Site(p *site.Problem, a *site.Plan, r site.Result) error {
	b := newSiteBooks(p)

	if len(a.Battery) != len(p.Batteries) || len(a.Car) != len(p.Cars) {
		return flex.Fail(
			flex.Internal,
			"a plan of %d batteries and %d cars, where %d and %d would be right",
			len(a.Battery),
			len(a.Car),
			len(p.Batteries),
			len(p.Cars),
		)
	}

	b.devices(a)
	b.meter()

	if b.fault != nil {
		return b.fault
	}

	return b.compare(r)
}

// devices adds up what every device does.
func (b *siteBooks) devices(a *site.Plan) {
	p := b.p

	for t := range b.net {
		b.own[t] = p.Load[t]
		b.net[t] = p.Load[t] - p.PV[t]
	}

	for k := range p.Batteries {
		b.battery(k, a.Battery[k])
	}

	for k := range p.Cars {
		b.car(k, a.Car[k])
	}

	if p.Tank != nil {
		b.tank(a.Tank)
	}

	if p.Heat != nil {
		b.heat(a.Heat)
	}
}

// checkBounds records a fault if a value is outside its limits.
func (b *siteBooks) checkBounds(label string, t int, v, least, most float64) {
	if b.fault == nil && !(v >= least-siteLimit && v <= most+siteLimit) {
		b.fault = flex.Fail(
			flex.Internal,
			"%s in slot %d is %v, which is not from %v to %v",
			label,
			t,
			v,
			least,
			most,
		)
	}
}

// item adds a term of the cost.
func (b *siteBooks) item(cost float64) {
	b.cost += cost
	b.gross += math.Abs(cost)
}

// level returns the stored energy after a slot.
func level(before, q, in, out float64) float64 {
	return before + max(q, 0)*in - max(-q, 0)/out
}

func (b *siteBooks) battery(k int, x []float64) {
	d := &b.p.Batteries[k]
	stored := d.Init

	for t, q := range x {
		open := b.p.Hours
		if d.Ordered != nil && d.Ordered[t] {
			open = 0
			stored += d.Moved[t]
		}

		b.checkBounds("the battery's energy", t, q, -d.Discharge*open, d.Charge*open)

		stored = level(stored, q, d.ChargeEff, d.Efficient)
		b.checkBounds("what the battery stores", t, stored, d.Min, d.Max)

		b.net[t] += q
		b.fed[t] += max(-q, 0)
		b.item(max(-q, 0) * d.Wear)
	}

	b.cost -= stored * d.Terminal
}

func (b *siteBooks) car(k int, x []float64) {
	d := &b.p.Cars[k]
	charged, before := 0.0, false

	for t, q := range x {
		hours := d.Available[t]

		charges := q > siteLimit

		if charges {
			b.checkBounds("the car's energy", t, q, d.Min*hours, d.Max*hours)
			b.cars[t] = true

			if !before {
				b.item(d.StartCost)
			}

			b.tier(d, t, q)
		}

		if d.V2G == nil {
			b.checkBounds("the car's energy", t, q, 0, math.Inf(1))
		}

		before = charges
		charged += q
		b.net[t] += q
	}

	if d.V2G != nil {
		b.discharge(d, x)

		return
	}

	b.checkBounds("the car's energy in all", len(x)-1, charged, 0, d.Energy)
	b.short += max(0, d.Energy-charged)
}

// tier checks charging in peak time.
func (b *siteBooks) tier(d *site.Car, t int, q float64) {
	if d.OffPeak == nil || d.OffPeak[t] {
		return
	}

	if !d.PeakToo {
		b.checkBounds("the car's energy in peak time", t, q, 0, 0)
	}

	b.peak += q
}

func (b *siteBooks) discharge(d *site.Car, x []float64) {
	v := d.V2G
	stored := v.Arrival

	for t, q := range x {
		hours := d.Available[t]
		stored = level(stored, q, v.ChargeEff, v.Efficient)
		b.checkBounds("what the car stores", t, stored, 0, v.Max)
		b.item(max(-q, 0) * v.Wear)

		if q < -siteLimit {
			b.checkBounds(
				"what the car gives",
				t,
				-q,
				v.MinDischarge*hours,
				v.Discharge*hours,
			)

			b.checkBounds("what a car that gives stores", t, stored, v.Reserve, v.Max)
		}
	}

	b.short += max(0, v.Target-stored)
}

func (b *siteBooks) tank(x []bool) {
	d := b.p.Tank
	stored, before := d.Init, false

	for t, on := range x {
		heat := 0.0

		if on {
			heat = d.Element * b.p.Hours
		}

		if on && !before {
			b.item(d.StartCost)
		}

		stored += heat - d.Draw[t] - stored*d.Loss
		b.checkBounds("what the tank stores", t, stored, d.Min, d.Max)
		b.net[t] += heat
		b.own[t] += heat
		before = on
	}

	b.cost -= stored * d.Terminal
}

func (b *siteBooks) heat(x []float64) {
	d := b.p.Heat
	hours := b.p.Hours
	inside, before := d.Init, false

	for t, q := range x {
		on := q > siteLimit

		if on {
			b.checkBounds("the heat pump's energy", t, q, d.Min*hours, d.Max*hours)
		}

		b.checkBounds("the heat pump's energy", t, q, 0, d.Max*hours)

		if on && !before {
			b.item(d.StartCost)
		}

		lost := (inside - d.Outdoor[t]) / d.Resistance * hours
		inside += (q*d.COP[t] + d.Gain[t]*hours - lost) / d.Capacity
		b.item(d.Penalty * hours * max(0, d.Low[t]-inside, inside-d.High[t]))
		b.net[t] += q
		b.own[t] += q
		before = on
	}

	b.cost -= d.Terminal * (inside - d.Reference)
}

// meter checks the power through the main fuse, and prices it with the best curtailment.
func (b *siteBooks) meter() {
	p := b.p

	for t, net := range b.net {
		spare := 0.0

		if p.Curtailable {
			spare = p.PV[t]
		}

		fuse, limit := p.GridImport*p.Hours, p.GridExport*p.Hours
		b.checkBounds("import", t, net, -limit-spare, fuse)

		if p.NoBatteryToCar && b.cars[t] {
			b.checkBounds(
				"what batteries give while a car charges",
				t,
				b.fed[t],
				0,
				b.own[t],
			)
		}

		best := math.Inf(1)

		for _, curtailed := range []float64{
			0,
			spare,
			max(0, min(spare, -net)),
			max(0, min(spare, -limit-net)),
			max(0, min(spare, fuse-net)),
		} {
			grid := net + curtailed

			if grid < -limit-siteLimit || grid > fuse+siteLimit {
				continue
			}

			best = min(best, max(grid, 0)*p.Import[t]-max(-grid, 0)*p.Export[t])
		}

		b.item(best)
	}
}

// compare checks the figures of a result against the computed ones.
func (b *siteBooks) compare(r site.Result) error {
	off := siteMoney * max(1, b.gross)

	switch {
	case !(math.Abs(r.Cost-b.cost) <= off):
		return flex.Fail(
			flex.Internal,
			"the plan costs %v p, not %v",
			b.cost,
			r.Cost,
		)

	case !(r.Bound <= r.Cost+off):
		return flex.Fail(
			flex.Internal,
			"the bound of %v p is above the cost of %v",
			r.Bound,
			r.Cost,
		)

	case !(math.Abs(r.Shortfall-b.short) <= 10*siteLimit):
		return flex.Fail(
			flex.Internal,
			"the shortfall is %v kWh, not %v",
			b.short,
			r.Shortfall,
		)

	case !(math.Abs(r.Peak-b.peak) <= 10*siteLimit):
		return flex.Fail(
			flex.Internal,
			"the peak energy is %v kWh, not %v",
			b.peak,
			r.Peak,
		)
	}

	return nil
}
