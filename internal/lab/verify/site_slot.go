package verify

import "math"

// siteOption is one thing that a device can do in a slot: an energy from least to most, to the site or from it.
type siteOption struct {
	least, most float64
	sign        float64 // 1 gives to the site, -1 draws from it
	slope       float64 // what a kWh costs
	size        float64 // of what the slope was summed up from
	fixed       float64 // what the option costs besides
	ruled       float64 // 1 for what batteries give, -1 for what the building uses beside its load
	charges     bool    // a car charges
}

// siteSlot looks for the least that a slot can come to.
type siteSlot struct {
	devices [][]siteOption
	items   []siteOption
	net     float64 // that the site uses: given less drawn
	load    float64
	ruled   bool // batteries give no more than the building uses, whatever cars do
	rule    bool // the same while a car charges
	size    float64
	best    float64
}

// slotLeast adds the least that slot t can come to.
func (b *bounding) slotLeast(t int) {
	s := &b.slot
	p := b.p
	s.devices, s.items = s.devices[:0], s.items[:0]
	s.net, s.load = p.Load[t]-p.PV[t], p.Load[t]
	s.ruled, s.rule = b.branchCase.ruled[t], p.NoBatteryToCar

	modes := b.branchCase.modes[t*b.devices : (t+1)*b.devices]
	b.addMeter(t, modes[0])

	for k := range p.Batteries {
		b.addBattery(t, k, modes[1+k])
	}

	for k := range p.Cars {
		b.addCar(t, k, modes[1+len(p.Batteries)+k])
	}

	if p.Tank != nil {
		b.addTank(t, modes[b.tank])
	}

	if p.Heat != nil {
		b.addHeat(t, modes[b.heat])
	}

	s.measure()
	s.best = math.Inf(1)
	s.choose(0, 0, false)

	b.sum.value += s.best
	b.sum.size += s.size
	b.sum.parts++
}

// measure is the size of all that can be added up in a slot: prices are at most twice the steepest slope.
func (s *siteSlot) measure() {
	energy := math.Abs(s.net) + s.load
	steepest, fixed := 0.0, 0.0

	for _, options := range s.devices {
		for _, o := range options {
			energy += o.most
			steepest = max(steepest, o.size)
			fixed += math.Abs(o.fixed)
		}
	}

	s.size = 8*steepest*energy + fixed
}

func (s *siteSlot) add(options ...siteOption) { s.devices = append(s.devices, options) }

// either adds a device that draws or gives. Where both at once cannot pay, as is so where energy given costs at least
// what energy drawn earns, no choice is needed.
func (s *siteSlot) either(modes uint8, draw, discharge siteOption) {
	switch {
	case modes&(draws|gives) == 0:
		s.add(siteOption{sign: -1})
	case modes&draws == 0:
		s.add(discharge)

	case modes&gives == 0:
		s.add(draw)

	case draw.slope+discharge.slope >= 0:
		s.add(draw)
		s.add(discharge)
	default:
		s.add(draw, discharge)
	}
}

// addMeter adds the meter, which gives to the site what it draws from the grid, and what the roof may give less.
func (b *bounding) addMeter(t int, modes uint8) {
	p := b.p
	in, out := p.Import[t]*b.w.cost, p.Export[t]*b.w.cost
	b.slot.either(
		modes,
		siteOption{most: p.GridImport * p.Hours, sign: 1, slope: in, size: math.Abs(in)},
		siteOption{most: p.GridExport * p.Hours, sign: -1, slope: -out, size: math.Abs(out)},
	)

	if p.Curtailable && p.PV[t] > 0 {
		b.slot.add(siteOption{most: p.PV[t], sign: -1})
	}
}

func (b *bounding) addBattery(t, k int, modes uint8) {
	d, y := &b.p.Batteries[k], b.battery[k][t]
	in, out := y*d.ChargeEff, d.Wear*b.w.cost-y/d.Efficient
	b.slot.either(
		modes,
		siteOption{most: d.Charge * b.p.Hours, sign: -1, slope: in, size: math.Abs(in)},
		siteOption{
			most:  d.Discharge * b.p.Hours,
			sign:  1,
			slope: out,
			size:  d.Wear*b.w.cost + math.Abs(y)/d.Efficient,
			ruled: 1,
		},
	)
}

// addCar adds a car: it does nothing, charges, or discharges.
func (b *bounding) addCar(t, k int, modes uint8) {
	d := &b.p.Cars[k]
	var options []siteOption

	if modes&idles != 0 {
		options = append(options, siteOption{sign: -1})
	}

	if most := canCharge(d, t); most > 0 && modes&draws != 0 {
		options = append(options, b.charging(t, k, most))
	}

	if v := d.V2G; v != nil && modes&gives != 0 && v.Discharge*d.Available[t] > 0 {
		y := b.car[k][t] / v.Efficient
		options = append(options, siteOption{
			least: v.MinDischarge * d.Available[t],
			most:  v.Discharge * d.Available[t],
			sign:  1,
			slope: v.Wear*b.w.cost - y,
			size:  v.Wear*b.w.cost + math.Abs(y),
		})
	}

	b.slot.add(options...)
}

// charging is what a car does that charges.
func (b *bounding) charging(t, k int, most float64) siteOption {
	d := &b.p.Cars[k]
	o := siteOption{least: d.Min * d.Available[t], most: most, sign: -1, charges: true}
	o.fixed = after(b.start[k], t, 1) - b.start[k][t]

	o.slope = -b.need[k]
	if d.V2G != nil {
		o.slope = b.car[k][t] * d.V2G.ChargeEff
	}

	o.size = math.Abs(o.slope)

	if isPeak(d, t) {
		o.slope += b.w.peak - b.allPeak
		o.size += b.w.peak - b.allPeak
	}

	for i, option := range b.classes[k] {
		if option.energy == most && option.peak == isPeak(d, t) {
			o.slope -= b.class[k][i] / most
			o.size += math.Abs(b.class[k][i]) / most
		}
	}

	return o
}

func (b *bounding) addTank(t int, modes uint8) {
	k := b.p.Tank
	size := k.Element * b.p.Hours
	y := b.water[t] * size
	on := siteOption{least: size, most: size, sign: -1, ruled: -1}
	on.fixed = y + b.waterOn[t] - b.waterStart[t] + after(b.waterStart, t, 1)
	b.sum.size += math.Abs(y) + math.Abs(b.waterOn[t])
	b.addOnOff(modes, on)
}

func (b *bounding) addHeat(t int, modes uint8) {
	k := b.p.Heat
	y := b.warmth[t] * k.COP[t] / k.Capacity
	b.addOnOff(modes, siteOption{
		least: k.Min * b.p.Hours,
		most:  k.Max * b.p.Hours,
		sign:  -1,
		slope: y,
		size:  math.Abs(y),
		fixed: after(b.warmthStart, t, 1) - b.warmthStart[t],
		ruled: -1,
	})
}

// addOnOff adds a device that is off or on.
func (b *bounding) addOnOff(modes uint8, on siteOption) {
	var options []siteOption
	if modes&idles != 0 {
		options = append(options, siteOption{sign: -1})
	}

	if modes&draws != 0 {
		options = append(options, on)
	}

	b.slot.add(options...)
}

// choose goes through all that the devices from one on can do.
func (s *siteSlot) choose(from int, fixed float64, charges bool) {
	if from == len(s.devices) {
		s.best = min(s.best, fixed+s.cheapest(s.ruled || s.rule && charges))
		return
	}

	for _, o := range s.devices[from] {
		before := len(s.items)
		if o.most > 0 {
			s.items = append(s.items, o)
		}

		s.choose(from+1, fixed+o.fixed, charges || o.charges)
		s.items = s.items[:before]
	}
}

// cheapest is what energies that balance cost at least: the greatest bound by a price of energy, and one of the
// batteries' rule if it holds. The best prices are among those at which an energy costs nothing.
func (s *siteSlot) cheapest(rule bool) float64 {
	least, most := 0.0, 0.0
	size := math.Abs(s.net) + s.load
	fed, used := 0.0, s.load // the most that batteries give, the least that the building uses

	for _, o := range s.items {
		a, b := o.sign*o.least, o.sign*o.most
		least, most = least+min(a, b), most+max(a, b)
		size += o.most
		fed += max(0, o.ruled) * o.most
		used += max(0, -o.ruled) * o.least
	}

	if rule { // what the building uses more, batteries may give more
		most -= max(0, fed-used)
	}

	if s.net < least-inexact*size || s.net > most+inexact*size {
		return math.Inf(1)
	}

	best := math.Inf(-1)
	for _, o := range s.items {
		price := o.slope * o.sign
		best = max(best, s.at(price, 0))

		for _, r := range s.items {
			if !rule || r.ruled == 0 {
				continue
			}

			if extra := (price*r.sign - r.slope) / r.ruled; extra > 0 {
				best = max(best, s.at(price, extra))
			}
		}
	}

	return best
}

// at is the bound by a price of energy, and one of what batteries give beyond the building's use.
func (s *siteSlot) at(price, extra float64) float64 {
	sum := price*s.net - extra*s.load
	for _, o := range s.items {
		d := o.slope - price*o.sign + extra*o.ruled
		sum += min(d*o.least, d*o.most)
	}

	return sum
}
