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

// BatteryWhy is the plan of a battery from the running half-hour on, with its inputs and its
// expected result.
type BatteryWhy struct {
	Power    flex.Watts
	Capacity flex.WattHours
	Stored   flex.WattHours // when the running half-hour began
	Periods  []BatteryPeriod
	// the rates of a fixed tariff that it was planned with, and their origins; none under
	// market prices
	Rates []Input
	// the result of the plan over Periods
	Plan BatteryCost
	// the result in self-use only
	Idle BatteryCost
	// the value of a kWh that is left at the end, in pence: both bills are reduced by it
	Residual float64
}

// BatteryCost is the cost of half-hours of a battery, in pence. A plan minimises the sum, and
// changes of mode in addition.
type BatteryCost struct {
	Bill float64 // what the home is expected to pay, less the value of the energy left in the battery
	Wear float64 // the cost that the plan counts for wear of the battery; nobody is billed for it
}

// Powers returns the mean power of the battery in each period, with losses; negative for
// discharge.
func (w *BatteryWhy) Powers() []flex.Watts {
	levels := make([]int, len(w.Periods))
	for i := range levels {
		levels[i] = int(w.Periods[i].Stored)
	}

	return powersOf(levels, int(w.Stored))
}

// BatteryPeriod is one half-hour of a battery's plan: prices in pence per kWh, energies, and
// the stored energy at its end.
type BatteryPeriod struct {
	flex.Period
	Mode   battery.Mode
	Buy    float64
	Sell   float64
	Load   flex.WattHours
	Roof   flex.WattHours
	Stored flex.WattHours
	// the power of an operator's dispatch; nil without one
	Ordered *flex.Watts
	// why the battery may not use some modes
	Waits Waits
	// when what it waits for ends; zero if it does not wait
	Until time.Time

	cars carActivity // what the cars of its site may do
}

// WaitsFor returns why the battery does nothing; empty if it does something, or if any mode
// was possible.
func (p *BatteryPeriod) WaitsFor() Waits {
	if p.Mode != battery.ModeLock {
		return WaitsNot
	}
	return p.Waits
}

// WaitsForOther reports whether a battery is to do nothing because of another device of its
// site.
func (p *BatteryPeriod) WaitsForOther() bool {
	others := []Waits{WaitsForCar, WaitsForFuse, WaitsForDischarging}
	other := slices.Contains(others, p.Waits)
	return p.Mode == battery.ModeLock && other && !p.Until.IsZero()
}

// Sent returns the action of the half-hour as the interface and dispatches have it.
func (p *BatteryPeriod) Sent() battery.Action {
	action, _ := p.cars.stepOf(p.Mode, p.Load-p.Roof)
	return action
}

// BatteryQuestion has the suppositions of a what-if question about a battery; a zero field
// stays as it is.
type BatteryQuestion struct {
	Power    flex.Watts
	Capacity flex.WattHours
	Stored   *flex.WattHours // now
}

// modesFrom returns the modes of a plan in consecutive periods, up to the first without one.
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

// supposedBattery returns the battery of the question; what the question leaves out is taken
// from the device.
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

// answer plans the battery of the question in place of the device.
func (q *BatteryQuestion) answer(
	s batteryInputs,
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

	w := s.explain(other, supposed)

	return &w, nil
}

// WhyBattery explains the plan of a battery; with a question, it also returns the plan of the
// supposed battery. Nothing is stored. A battery whose power or capacity is not known, or that
// was never planned, is NotFound.
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
	_, p, err := batteryPlanAhead(ctx, tx, asset)
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

	ahead, err := s.readBatteryInputs(
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
	current := ahead.explain(device, modes)
	if q == nil {
		return current, nil, nil
	}

	supposed, err := q.answer(ahead, device)

	return current, supposed, err
}

// batteryInputs has the inputs of a battery's plan, by half-hour.
type batteryInputs struct {
	periods  []flex.Period
	settings flex.OrgSettings
	rates    ratings
	load     []flex.WattHours
	roof     []flex.WattHours
	stored   flex.WattHours
	wear     float64 // pence for each kWh that the battery discharges

	// only for a battery that shares its site, by period
	cars       []flex.WattHours // energy of cars in addition to the load; negative for discharge
	allowed    []battery.ModeSet
	waits      []Waits
	waitsUntil []time.Time
	// only with other batteries at the site, by period: their energy, negative for discharge,
	// and the part of it that goes into the grid
	otherBatteries []flex.WattHours
	otherExport    []flex.WattHours
	otherDraws     []bool // whether another battery draws from the grid

	meter         *meter             // nil for a battery that shares its site with nothing
	feeder        *feederExport      // nil if nothing limits its export
	caps          *batteryCaps       // nil if no cap limits power
	orders        []dispatchedPeriod // operators' dispatches, by period; nil for none
	ownDispatches []ownDispatch      // what its own plan was sent, by period; nil for nothing

	// only for a battery that instructions call, by period
	fixed     []bool    // whether its mode is fixed
	callValue []float64 // what instructions add to the cost of drawing, in pence per kWh
	services  []string  // the services of the instructions
}

// readBatteryInputs reads the inputs of a plan from now on, with the effect of the site's cars
// and other batteries, of its feeder and of caps.
func (s *Service) readBatteryInputs(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	plan *store.BatteryPlan,
	home home.Battery,
	now flex.Period,
	kept *headroomCache,
) (batteryInputs, error) {
	ahead, err := s.readOwnInputs(ctx, tx, b, plan, home, now)
	if err != nil {
		return ahead, err
	}

	m, err := s.readMeter(ctx, tx, &b.Asset, b.Wiring())
	if err != nil {
		return ahead, fmt.Errorf("read what the site's cars do: %w", err)
	}

	ahead.limitBySite(m, home.Power)
	e, err := kept.feederCache().read(ctx, tx, b.Asset.ID)
	if err != nil {
		return ahead, fmt.Errorf("read what limits the feeder's export: %w", err)
	}

	ahead.limitExport(e, b.Asset.ID, home.Power)

	caps, err := kept.read(ctx, tx, &b.Asset, home.Power)
	if err != nil {
		return ahead, fmt.Errorf("read what caps leave: %w", err)
	}

	ahead.limitByCaps(caps, home.Power)

	return ahead, nil
}

// readOwnInputs is readBatteryInputs without the site's cars. The guess is in the plan.
func (s *Service) readOwnInputs(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	plan *store.BatteryPlan,
	home home.Battery,
	now flex.Period,
) (batteryInputs, error) {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return batteryInputs{}, err
	}

	var ahead batteryInputs
	ahead.settings = org.Settings
	ahead.wear = wearOf(b, org.Settings)
	ahead.periods = periodsTo(now, flex.DayAt(tx.Now()).Add(2).Start())
	ahead.rates, err = periodRates(ctx, tx, b, org.Settings, ahead.periods)
	if err != nil {
		return ahead, err
	}

	ahead.periods = ahead.periods[:len(ahead.rates.buy)]
	ahead.load, ahead.roof = parseForecast(plan, ahead.periods)
	ahead.stored, err = stored(ctx, tx, b, home, now)
	if err != nil {
		return ahead, fmt.Errorf("read what is stored: %w", err)
	}

	ahead.orders, err = dispatchesOf(ctx, tx, b.Asset.ID, plan, ahead.periods)

	return ahead, err
}

// wearOf is what a kWh that a battery discharges counts as wear, in pence: its own figure,
// else its organisation's.
func wearOf(b *store.Battery, s flex.OrgSettings) float64 {
	if own := b.Asset.Discharge.Wear; own != nil {
		return *own
	}
	return s.Rates.BatteryWear.Value
}

// first is the situation in its first n half-hours.
func (s batteryInputs) first(n int) batteryInputs {
	s.periods = s.periods[:n]
	if s.allowed != nil {
		s.cars, s.allowed = s.cars[:n], s.allowed[:n]
		s.waits, s.waitsUntil = s.waits[:n], s.waitsUntil[:n]
	}
	if s.otherBatteries != nil {
		s.otherBatteries, s.otherExport = s.otherBatteries[:n], s.otherExport[:n]
		s.otherDraws = s.otherDraws[:n]
	}

	if s.fixed != nil {
		s.fixed, s.callValue = s.fixed[:n], s.callValue[:n]
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
func (s batteryInputs) from(n int) batteryInputs {
	s.periods = s.periods[n:]
	if s.allowed != nil {
		s.cars, s.allowed = s.cars[n:], s.allowed[n:]
		s.waits, s.waitsUntil = s.waits[n:], s.waitsUntil[n:]
	}
	if s.otherBatteries != nil {
		s.otherBatteries, s.otherExport = s.otherBatteries[n:], s.otherExport[n:]
		s.otherDraws = s.otherDraws[n:]
	}

	if s.fixed != nil {
		s.fixed, s.callValue = s.fixed[n:], s.callValue[n:]
		s.services = s.services[n:]
	}

	if s.orders != nil {
		s.orders = s.orders[n:]
	}

	s.load, s.roof = s.load[n:], s.roof[n:]
	s.rates.buy, s.rates.sell = s.rates.buy[n:], s.rates.sell[n:]

	return s
}

// problem returns the planning problem of a battery with a stored energy, and the mode before
// the first half-hour.
func (s *batteryInputs) problem(
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
	for i := range s.otherBatteries {
		p.Load[i] += int(max(0, s.otherBatteries[i]))
		p.PV[i] += int(max(0, -s.otherBatteries[i]))
	}

	s.applyDispatches(&p)

	return p
}

// explain explains a plan by its inputs.
func (s batteryInputs) explain(home home.Battery, modes []battery.Mode) BatteryWhy {
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

// cost returns the energy stored after each half-hour of a plan, and the cost of the plan. The
// energy that is left is worth what it saves. The plan may value it lower, because discharging
// it later causes wear: the difference is counted as wear.
func (s *batteryInputs) cost(p *battery.ModeProblem, modes []battery.Mode) ([]int, BatteryCost) {
	var c BatteryCost
	levels, each := p.Run(modes)
	before := p.Init
	for i, pence := range each {
		discharged := float64(max(0, before-levels[i])) * p.DischargeEff
		wear := discharged * p.Wear / 1000
		c.Wear += wear
		c.Bill += pence - wear
		if s.otherExport != nil { // by the other batteries
			c.Bill -= s.otherExport[i].KWh() * s.rates.sell[i]
		}

		before = levels[i]
	}

	remaining := float64(before) / 1000
	c.Bill -= s.rates.residual * remaining
	c.Wear += (s.rates.residual - p.Terminal) * remaining

	return levels, c
}

// period returns a half-hour of a plan with its inputs.
func (s *batteryInputs) period(
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
		p.Waits, p.Until = s.waits[i], s.waitsUntil[i]
	}

	if s.isDispatched(i) {
		p.Ordered, p.Mode = new(s.orders[i].power), s.orders[i].mode()
	}

	return p
}

// idle returns the modes of a battery in self-use only: LOCK while a car or another battery
// charges.
func (s *batteryInputs) idle(n int) []battery.Mode {
	modes := slices.Repeat([]battery.Mode{battery.ModeSelfUse}, n)
	for i := range min(n, len(s.allowed)) {
		if !s.allowed[i].Has(battery.ModeSelfUse) {
			modes[i] = battery.ModeLock
		}
	}

	for i := range modes {
		if s.isDispatched(i) || s.otherDraws != nil && s.otherDraws[i] {
			modes[i] = battery.ModeLock
		}
	}

	return modes
}
