package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// BatteryWhy is the plan of a battery from the running half-hour on, beside what it was made
// of and what it is expected to come to.
type BatteryWhy struct {
	Power    flex.Watts
	Capacity flex.WattHours
	Stored   flex.WattHours // when the running half-hour began
	Periods  []BatteryPeriod
	// the rates of a fixed tariff by which it was planned, and where each is from; none where the market's prices were used
	Rates []Input
	// what the plan comes to over Periods
	Plan BatteryCost
	// the same if the battery only covered the home, and stored its surplus
	Idle BatteryCost
	// the worth of a kWh that is left at the end, in pence: both bills are reduced by it
	Residual float64
}

// BatteryCost is what half-hours of a battery come to, in pence. A plan weighs the sum, and changes of mode beside it.
type BatteryCost struct {
	Bill float64 // what the home is expected to pay, less the worth of what is left in the battery
	Wear float64 // the cost that the plan counts for wear of the battery; nobody is billed for it
}

// Powers returns what the battery draws in each period on average, its losses counted; below zero it gives.
func (w *BatteryWhy) Powers() []flex.Watts {
	levels := make([]int, len(w.Periods))
	for i := range levels {
		levels[i] = int(w.Periods[i].Stored)
	}

	return powersOf(levels, int(w.Stored))
}

// BatteryPeriod is one half-hour of a battery's plan: pence per kWh, energies of the
// half-hour, and what is stored at its end.
type BatteryPeriod struct {
	flex.Period
	Mode   battery.Mode
	Buy    float64
	Sell   float64
	Load   flex.WattHours
	Roof   flex.WattHours
	Stored flex.WattHours
	// the power that an operator's dispatch asks for; nil where the plan counts
	Ordered *flex.Watts
	// why other devices of the site keep the battery from some modes
	Waits Waits
	// when what it waits for ends; zero if it does not wait
	Until time.Time

	cars carsIn // what the cars of its site do
}

// WaitsFor is why the battery does nothing; empty if it does something, or if any mode was possible.
func (p *BatteryPeriod) WaitsFor() Waits {
	if p.Mode != battery.ModeLock {
		return WaitsNot
	}
	return p.Waits
}

// WaitsForOther reports whether a battery is to do nothing where something else of its site does.
func (p *BatteryPeriod) WaitsForOther() bool {
	others := []Waits{WaitsForCar, WaitsForFuse, WaitsForDischarging}
	other := slices.Contains(others, p.Waits)
	return p.Mode == battery.ModeLock && other && !p.Until.IsZero()
}

// Sent is the word of the battery's schedule for the half-hour, as the interface and dispatches have it.
func (p *BatteryPeriod) Sent() battery.Action {
	action, _ := p.cars.stepOf(p.Mode, p.Load-p.Roof)
	return action
}

// BatteryQuestion supposes another battery; a zero field stays as the battery has it.
type BatteryQuestion struct {
	Power    flex.Watts
	Capacity flex.WattHours
	Stored   *flex.WattHours // now
}

// modesFrom is what a plan says of periods in their order, up to the first of which it says nothing.
func modesFrom(
	p *store.BatteryPlan,
	periods []flex.Period,
) []battery.Mode {
	var modes []battery.Mode
	for _, at := range periods {
		m, ok := modeAt(p, at)
		if !ok {
			break
		}
		modes = append(modes, m)
	}

	return modes
}

// supposedBattery is the battery that is asked about; what the question leaves out is taken from the device.
func (q *BatteryQuestion) supposedBattery(device home.Battery) home.Battery {
	other := home.Battery{
		Power:    max(q.Power, 0),
		Capacity: max(q.Capacity, 0),
	}
	if other.Power == 0 {
		other.Power = device.Power
	}

	if other.Capacity == 0 {
		other.Capacity = device.Capacity
	}

	return other
}

// answer plans the battery that is asked about, in the place of the device.
func (q *BatteryQuestion) answer(
	s homeAhead,
	device home.Battery,
) (*BatteryWhy, error) {
	other := q.supposedBattery(device)
	if q.Stored != nil {
		s.stored = *q.Stored
	}

	s.stored = min(s.stored, other.Capacity)
	supposed, _, err := planModes(&store.BatteryPlan{}, other, s)
	if err != nil {
		return nil, err
	}

	w := s.why(other, supposed)

	return &w, nil
}

// WhyBattery explains the plan of a battery under control; and if it is asked, what would be
// planned of another battery in its place. Nothing is stored. A battery whose power or
// capacity is not known, or that was never planned, is a NotFound failure.
func (s *Service) WhyBattery(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
	q *BatteryQuestion,
) (BatteryWhy, *BatteryWhy, error) {
	var (
		is    BatteryWhy
		would *BatteryWhy
	)

	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		is, would, err = s.whyBattery(ctx, tx, asset, q)
		return err
	})

	return is, would, err
}

// whyBattery is WhyBattery within a transaction.
func (s *Service) whyBattery(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	q *BatteryQuestion,
) (BatteryWhy, *BatteryWhy, error) {
	_, p, err := batteryAhead(ctx, tx, asset)
	if err != nil {
		return BatteryWhy{}, nil, err
	}

	b, err := tx.Battery(ctx, asset)
	if err != nil {
		return BatteryWhy{}, nil, err
	}

	device := home.Battery{Power: b.Power(), Capacity: b.Capacity()}
	if device.Power <= 0 || device.Capacity <= 0 {
		return BatteryWhy{}, nil, flex.Fail(
			flex.NotFound,
			"nothing can be planned: the battery's power and capacity are not both known; PATCH /entities/asset/%v with power_kw and capacity_kwh",
			asset,
		)
	}

	ahead, err := s.situationOf(
		ctx,
		tx,
		&b,
		&b.Plan,
		device,
		flex.PeriodAt(tx.Now()),
		nil,
	)
	if err != nil {
		return BatteryWhy{}, nil, err
	}

	modes := modesFrom(p, ahead.periods)
	if len(modes) == 0 {
		return BatteryWhy{}, nil, flex.Fail(
			flex.NotFound,
			"no plan yet: one is made within the half-hour in which prices or rates are known",
		)
	}

	ahead = ahead.first(len(modes))
	is := ahead.why(device, modes)
	if q == nil {
		return is, nil, nil
	}

	would, err := q.answer(ahead, device)

	return is, would, err
}

// homeAhead is what a battery's plan is made of.
type homeAhead struct {
	periods  []flex.Period
	settings flex.OrgSettings
	rates    ratings
	load     []flex.WattHours
	roof     []flex.WattHours
	stored   flex.WattHours
	wear     float64 // pence for each kWh that the battery discharges

	// Of a battery that shares its site, by period; nil of others.
	cars    []flex.WattHours // what cars take beside the load; negative where they give
	allowed []battery.ModeSet
	waits   []Waits
	until   []time.Time
	// of one that has others beside it, by period: what these draw, negative where they give, and what of that goes into the grid
	beside   []flex.WattHours
	exported []flex.WattHours
	charges  []bool // whether one of these draws from the grid

	meter  *meter        // nil of a battery that shares its site with nothing
	feeder *feederExport // nil where nothing limits its export
	caps   *capsAhead    // nil where no cap binds a power
	orders []order       // what operators' dispatches ask, by period; nil: nothing
	sent   []ownSent     // by period, of a plan that is made; nil where nothing ahead was sent

	// of a battery that instructions call, by period; nil of others
	kept     []bool    // whether its mode stays
	worth    []float64 // what instructions add to the cost of drawing, in pence per kWh
	services []string  // the services of the instructions
}

// situationOf reads what a plan is made of from now on, with what the site's cars and other batteries
// do, and those of its feeder.
func (s *Service) situationOf(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	plan *store.BatteryPlan,
	home home.Battery,
	now flex.Period,
	kept *capsKept,
) (homeAhead, error) {
	ahead, err := s.situationAlone(ctx, tx, b, plan, home, now)
	if err != nil {
		return ahead, err
	}

	m, err := s.meterBeside(ctx, tx, &b.Asset, b.Wiring())
	if err != nil {
		return ahead, fmt.Errorf("read what the site's cars do: %w", err)
	}

	ahead.around(m, home.Power)
	e, err := kept.feedersOf().read(ctx, tx, b.Asset.ID)
	if err != nil {
		return ahead, fmt.Errorf("read what limits the feeder's export: %w", err)
	}

	ahead.limitExport(e, b.Asset.ID, home.Power)

	caps, err := kept.read(ctx, tx, &b.Asset, home.Power)
	if err != nil {
		return ahead, fmt.Errorf("read what caps leave: %w", err)
	}

	ahead.underCaps(caps, home.Power)

	return ahead, nil
}

// situationAlone is situationOf without the site's cars. The guess is in the plan.
func (s *Service) situationAlone(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	plan *store.BatteryPlan,
	home home.Battery,
	now flex.Period,
) (homeAhead, error) {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return homeAhead{}, err
	}

	var ahead homeAhead
	ahead.settings = org.Settings
	ahead.wear = wearOf(b, org.Settings)
	ahead.periods = periodsTo(now, flex.DayAt(tx.Now()).Add(2).Start())
	ahead.rates, err = periodRates(ctx, tx, b, org.Settings, ahead.periods)
	if err != nil {
		return ahead, err
	}

	ahead.periods = ahead.periods[:len(ahead.rates.buy)]
	ahead.load, ahead.roof = guessed(plan, ahead.periods)
	ahead.stored, err = stored(ctx, tx, b, home, now)
	if err != nil {
		return ahead, fmt.Errorf("read what is stored: %w", err)
	}

	ahead.orders, err = ordersOf(ctx, tx, b.Asset.ID, plan, ahead.periods)

	return ahead, err
}

// wearOf is what a kWh that a battery discharges counts as wear, in pence: its own figure, else its organisation's.
func wearOf(b *store.Battery, s flex.OrgSettings) float64 {
	if own := b.Asset.Discharge.Wear; own != nil {
		return *own
	}
	return s.Rates.BatteryWear.Value
}

// first is the situation in its first n half-hours.
func (s homeAhead) first(n int) homeAhead {
	s.periods = s.periods[:n]
	if s.allowed != nil {
		s.cars, s.allowed = s.cars[:n], s.allowed[:n]
		s.waits, s.until = s.waits[:n], s.until[:n]
	}
	if s.beside != nil {
		s.beside, s.exported = s.beside[:n], s.exported[:n]
		s.charges = s.charges[:n]
	}

	if s.kept != nil {
		s.kept, s.worth = s.kept[:n], s.worth[:n]
		s.services = s.services[:n]
	}

	if s.orders != nil {
		s.orders = s.orders[:n]
	}

	s.load, s.roof = s.load[:n], s.roof[:n]
	s.rates.buy, s.rates.sell = s.rates.buy[:n], s.rates.sell[:n]

	return s
}

// from is the situation without its first n half-hours.
func (s homeAhead) from(n int) homeAhead {
	s.periods = s.periods[n:]
	if s.allowed != nil {
		s.cars, s.allowed = s.cars[n:], s.allowed[n:]
		s.waits, s.until = s.waits[n:], s.until[n:]
	}
	if s.beside != nil {
		s.beside, s.exported = s.beside[n:], s.exported[n:]
		s.charges = s.charges[n:]
	}

	if s.kept != nil {
		s.kept, s.worth = s.kept[n:], s.worth[n:]
		s.services = s.services[n:]
	}

	if s.orders != nil {
		s.orders = s.orders[n:]
	}

	s.load, s.roof = s.load[n:], s.roof[n:]
	s.rates.buy, s.rates.sell = s.rates.buy[n:], s.rates.sell[n:]

	return s
}

// problem is the planning problem of a battery that holds an energy and comes from a mode.
func (s *homeAhead) problem(
	device home.Battery,
	stored flex.WattHours,
	before battery.Mode,
) battery.ModeProblem {
	device.Wear = s.wear
	p := device.Problem(
		s.rates.buy,
		s.rates.sell,
		s.load,
		s.roof,
		stored,
		before,
		s.rates.residual,
	)

	p.Allowed = s.allowed

	for i := range s.cars {
		p.Load[i] += int(max(0, s.cars[i]))
		p.PV[i] += int(max(0, -s.cars[i]))
	}
	for i := range s.beside {
		p.Load[i] += int(max(0, s.beside[i]))
		p.PV[i] += int(max(0, -s.beside[i]))
	}

	s.applyOrders(&p)

	return p
}

// why lays a plan beside what it was made of.
func (s homeAhead) why(home home.Battery, modes []battery.Mode) BatteryWhy {
	w := BatteryWhy{
		Power:    home.Power,
		Capacity: home.Capacity,
		Stored:   s.stored,
		Rates:    s.rates.fixed,
		Residual: s.rates.residual,
	}

	p := s.problem(home, s.stored, battery.ModeSelfUse)
	var levels []int
	_, w.Idle = s.cost(&p, s.idle(len(modes)))
	levels, w.Plan = s.cost(&p, modes)

	for i := range s.periods {
		w.Periods = append(w.Periods, s.period(i, modes[i], levels[i]))
	}

	return w
}

// cost is what is stored after each half-hour of a plan, and what the plan comes to. What is left is worth what it saves. The plan may
// count it for less, because discharging it later wears the battery: the difference is counted as wear.
func (s *homeAhead) cost(p *battery.ModeProblem, modes []battery.Mode) ([]int, BatteryCost) {
	var c BatteryCost
	levels, each := p.Run(modes)
	before := p.Init
	for i, pence := range each {
		given := float64(max(0, before-levels[i])) * p.DischargeEff
		wear := given * p.Wear / 1000
		c.Wear += wear
		c.Bill += pence - wear
		if s.exported != nil { // by the other batteries
			c.Bill -= s.exported[i].KWh() * s.rates.sell[i]
		}

		before = levels[i]
	}

	left := float64(before) / 1000
	c.Bill -= s.rates.residual * left
	c.Wear += (s.rates.residual - p.Terminal) * left

	return levels, c
}

// period is a half-hour of a plan beside what it was made of.
func (s *homeAhead) period(
	i int,
	m battery.Mode,
	level int,
) BatteryPeriod {
	p := BatteryPeriod{
		Period: s.periods[i],
		Mode:   m,
		Buy:    s.rates.buy[i],
		Sell:   s.rates.sell[i],
		Load:   s.load[i],
		Roof:   s.roof[i],
		Stored: flex.WattHours(level),
		cars:   s.meter.carsIn(s.periods[i]),
	}

	if s.waits != nil {
		p.Waits, p.Until = s.waits[i], s.until[i]
	}

	if s.ordered(i) {
		p.Ordered, p.Mode = new(s.orders[i].power), s.orders[i].mode()
	}

	return p
}

// idle is what a battery does that only covers the home: nothing while a car or another battery charges.
func (s *homeAhead) idle(n int) []battery.Mode {
	modes := slices.Repeat([]battery.Mode{battery.ModeSelfUse}, n)
	for i := range min(n, len(s.allowed)) {
		if !s.allowed[i].Has(battery.ModeSelfUse) {
			modes[i] = battery.ModeLock
		}
	}

	for i := range modes {
		if s.ordered(i) || s.charges != nil && s.charges[i] {
			modes[i] = battery.ModeLock
		}
	}

	return modes
}
