package control

import (
	"context"
	"math"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Household has the plans at a site, as they are shown to its residents.
type Household struct {
	Now       time.Time
	Cars      []HouseholdCar
	Batteries []HouseholdBattery
	Heaters   []HouseholdHeat
}

// HouseholdCar is an asset that charges, with its plan and the reasons for it.
type HouseholdCar struct {
	Asset     flex.Asset
	PluggedIn bool
	// control ended while a car was plugged in, and no plug-out was reported since
	Freed bool
	// whether it may be planned: its site has consented, and is enrolled
	Controlled bool
	Excluded   bool // whether an operator has excluded it from control

	Need    flex.WattHours // the requested energy, including what was charged since
	ReadyBy time.Time
	Zone    *time.Location // of the tariff
	// the end of an absence, in which it needs nothing; zero for none
	Away   time.Time
	Leaves time.Time // the beginning of the absence
	// the end of charge-now; zero for none
	ChargeNow time.Time

	Planned       bool       // whether there is a schedule; the fields below are of it
	ConstrainedBy Constraint // what limited it
	OffPeak       bool       // whether only the off-peak hours of its tariff may be used
	ByMarket      bool       // whether only the market price decides when it charges
	Charging      []flex.Span
	Energy        flex.WattHours
	Shortfall     flex.WattHours
	Periods       []charge.Period // the time of the schedule, with its prices

	Discharging []flex.Span // when it discharges
	Reserve     int         // the least charge that then remains, in %
	// its expected state of charge by ready-by, in %; 0 if its present one or its capacity is
	// not known
	ReadyLevel int

	// Cost is the cost of the energy by the schedule, and AtOnce that of the same energy if it
	// were charged at full power from the schedule's beginning on, both at the prices that the
	// schedule was made with. They are comparable if every price was known.
	Cost   flex.MicroPounds
	AtOnce flex.MicroPounds
	Priced bool

	// Carbon is the carbon dioxide of the energy in grams, and CarbonAtOnce that of the same
	// energy charged at once, by the present data of the half-hours. They are comparable if
	// all of these are known.
	Carbon       float64
	CarbonAtOnce float64
	CarbonKnown  bool
}

// Constraint is what limits a plan.
type Constraint int

// The constraints.
const (
	Unconstrained     Constraint = iota
	ConstrainedBySite            // the main fuse of the home
	ConstrainedByGrid            // a cap of a group or of the fleet
)

// constraintOf returns what limited a plan; the home's own fuse first.
func constraintOf(caps []BindingCap) Constraint {
	if len(caps) == 0 {
		return Unconstrained
	}

	for _, c := range caps {
		if c.Site {
			return ConstrainedBySite
		}
	}

	return ConstrainedByGrid
}

// HouseholdBattery is a home battery with the next steps of its plan.
type HouseholdBattery struct {
	Asset flex.Asset
	Steps []BatteryStretch // none without a plan
	// the cost of its plan until its end, and the cost in self-use only
	Plan  BatteryCost
	Idle  BatteryCost
	Until time.Time

	why BatteryWhy
}

// HouseholdBill is what a home with several batteries is expected to pay by their plans.
type HouseholdBill struct {
	Pence float64 // less the value of the energy then stored in the batteries
	Until time.Time
}

// Bill returns what the home pays by the plans of its batteries, until the end of the plan
// that ends first. Each plan counts what the other batteries do, so its bill is the home's,
// less the value of the energy left in its own battery only. It is zero unless several
// batteries are planned.
func (h Household) Bill() HouseholdBill {
	var planned []*HouseholdBattery
	for i := range h.Batteries {
		if len(h.Batteries[i].Steps) > 0 {
			planned = append(planned, &h.Batteries[i])
		}
	}

	if len(planned) < 2 {
		return HouseholdBill{}
	}

	first := slices.MinFunc(planned, func(a, b *HouseholdBattery) int {
		return a.Until.Compare(b.Until)
	})
	bill := HouseholdBill{Pence: first.Plan.Bill, Until: first.Until}
	for _, b := range planned {
		if b != first {
			bill.Pence -= b.why.valueAt(bill.Until)
		}
	}

	return bill
}

// valueAt returns the value of the energy stored in a battery at an instant of its plan, in
// pence.
func (w *BatteryWhy) valueAt(t time.Time) float64 {
	remaining := w.Stored
	for i := range w.Periods {
		if !w.Periods[i].End().After(t) {
			remaining = w.Periods[i].Stored
		}
	}

	return remaining.KWh() * w.Residual
}

// householdBatterySteps is how much of a battery's plan is shown.
const householdBatterySteps = 6

// householdBattery returns a battery with the next steps of its plan.
func (s *Service) householdBattery(
	ctx context.Context,
	org flex.OrgID,
	a flex.Asset,
) (HouseholdBattery, error) {
	b := HouseholdBattery{Asset: a}
	why, _, err := s.WhyBattery(ctx, org, a.ID, nil)

	switch flex.KindOf(err) {
	case flex.NotFound, flex.Forbidden: // nothing is planned of it
		return b, nil
	}
	if err != nil {
		return b, err
	}

	steps := why.Stretches()
	b.Steps = steps[:min(len(steps), householdBatterySteps)]
	b.Plan, b.Idle = why.Plan, why.Idle
	b.why = why
	b.Until = why.Periods[len(why.Periods)-1].End()

	return b, nil
}

// Household returns the plans at a site. A site of another organisation is NotFound.
func (s *Service) Household(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) (Household, error) {
	var h Household
	assets, err := s.assetsOf(ctx, org, site, &h)
	if err != nil {
		return h, err
	}

	for _, a := range assets {
		if a.Type.Charges() {
			car, err := s.householdCar(ctx, org, a, h.Now)
			if err != nil {
				return h, err
			}

			h.Cars = append(h.Cars, car)
		} else if a.Type == flex.Battery {
			b, err := s.householdBattery(ctx, org, a)
			if err != nil {
				return h, err
			}

			h.Batteries = append(h.Batteries, b)
		} else if a.Type.Heats() {
			heater, err := s.householdHeat(ctx, org, a, h.Now)
			if err != nil {
				return h, err
			}

			h.Heaters = append(h.Heaters, heater)
		}
	}

	return h, nil
}

// householdCar returns one asset that charges, with its plan.
func (s *Service) householdCar(
	ctx context.Context,
	org flex.OrgID,
	a flex.Asset,
	now time.Time,
) (HouseholdCar, error) {
	car := HouseholdCar{Asset: a, Zone: flex.London}
	if err := s.readCharging(ctx, org, &car); err != nil {
		return car, err
	}

	x, err := s.Explanation(ctx, org, a.ID)
	if flex.KindOf(err) == flex.NotFound {
		return car, nil
	}
	if err != nil {
		return car, err
	}

	car.setPlan(&x, now)
	err = s.readCarbon(ctx, org, &car, x.From.Power)

	return car, err
}

// setPlan sets the fields that follow from an asset's schedule.
func (car *HouseholdCar) setPlan(x *Explanation, now time.Time) {
	car.Planned = true
	car.Zone = zoneOf(x.From.Tariff)
	car.Need = x.From.Need
	car.ReadyBy = x.From.ReadyBy
	if x.From.ChargeNow.To.After(now) {
		car.ChargeNow = x.From.ChargeNow.To
	}

	car.ConstrainedBy = constraintOf(x.Caps)
	car.OffPeak = x.From.Tariff.OffPeak != "" && !x.From.MayChargePeak
	chosen := x.From.Mode == flex.Minimise && !x.Discharges()
	car.ByMarket = chosen && !plannedAsOne(&x.From)
	car.Energy = x.Plan.Energy
	car.Shortfall = x.Plan.Shortfall
	car.Periods = x.Plan.Periods
	car.Cost, car.AtOnce, car.Priced = charge.AtOnce(
		x.Plan.Periods,
		x.From.Power,
	)

	car.Charging = openSpans(x.Charging())
	car.setDischarge(x.From.Discharge)
}

// setDischarge sets when a car is to discharge, and the charge that is to remain.
func (car *HouseholdCar) setDischarge(of *store.Discharge) {
	if of == nil || of.Capacity <= 0 {
		return
	}

	part := func(e flex.WattHours) int {
		return int((200*e + of.Capacity) / (2 * of.Capacity)) // rounded
	}

	car.Discharging = openSpans(of.Discharges)
	car.Reserve = part(of.Reserve)
	if car.Shortfall == 0 {
		car.ReadyLevel = part(of.Target)
	}
}

// readCarbon compares the carbon dioxide of a car's plan with that of charging at once.
func (s *Service) readCarbon(
	ctx context.Context,
	org flex.OrgID,
	car *HouseholdCar,
	power flex.Watts,
) error {
	if len(car.Periods) == 0 {
		return nil
	}

	span := flex.Span{
		From: flex.PeriodAt(car.Periods[0].From).Start(),
		To:   car.Periods[len(car.Periods)-1].To,
	}

	return s.DB.Read(ctx, org, func(tx *store.Tx) error {
		known, err := tx.Carbon(ctx, span)
		if err != nil {
			return err
		}

		grams := map[flex.Period]int{}
		for at, c := range known {
			grams[at] = c.Grams
		}

		car.Carbon, car.CarbonAtOnce, car.CarbonKnown = charge.CarbonAtOnce(
			car.Periods,
			power,
			grams,
		)
		return nil
	})
}

// openSpans returns the times in which steps let a car charge; adjacent ones are joined.
func openSpans(steps []flex.Step) []flex.Span {
	var spans []flex.Span
	for _, s := range steps {
		if s.Limit == 0 {
			continue
		}

		last := len(spans) - 1
		if last >= 0 && spans[last].To.Equal(s.From) {
			spans[last].To = s.To
			continue
		}

		spans = append(spans, s.Span)
	}

	return spans
}

// Wish is a request by a resident of a site for one of its cars; a field that is zero leaves
// things as they are.
type Wish struct {
	ChargeFor time.Duration  // charge at once for this time
	Stop      bool           // end charging at once
	ReadyBy   *flex.WallTime // of every day, in the zone of the tariff
	Need      *flex.WattHours
}

// The greatest values of a wish.
const (
	WishChargeMax = 24 * time.Hour
	WishNeedMax   = flex.WattHours(200_000)
)

// Wish carries out a wish as the event that an app would send for it. An asset of another
// site, or one that does not charge, is NotFound; a wish beyond the limits is Malformed.
func (s *Service) Wish(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	asset flex.AssetID,
	w Wish,
) error {
	var h Household

	assets, err := s.assetsOf(ctx, org, site, &h)
	if err != nil {
		return err
	}

	known := false
	for _, a := range assets {
		known = known || a.ID == asset && a.Type.Charges()
	}

	if !known {
		return flex.Fail(
			flex.NotFound,
			"no such car or charger is at this home",
		)
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockToPlan(ctx, asset); err != nil { // the rest of the intent is read and stays as it is
			return err
		}

		ev, err := eventOf(ctx, tx, asset, w, h.Now)
		if err == nil {
			err = ev.check()
		}
		if err != nil {
			return err
		}

		return s.event(ctx, tx, asset, ev)
	})
}

// eventOf returns the event for a wish.
func eventOf(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	w Wish,
	now time.Time,
) (Event, error) {
	if w.ChargeFor < 0 || w.ChargeFor > WishChargeMax {
		return Event{}, flex.Fail(
			flex.Malformed,
			"charge at once for %d hours at most",
			int(WishChargeMax.Hours()),
		)
	}

	if w.Need != nil && (*w.Need < 0 || *w.Need > WishNeedMax) {
		return Event{}, flex.Fail(
			flex.Malformed,
			"between 0 and %g kWh can be asked for",
			WishNeedMax.KWh(),
		)
	}

	if w.ChargeFor > 0 {
		return Event{
			Kind:  ChargeNow,
			EndAt: now.Add(w.ChargeFor),
		}, nil
	}

	if w.Stop {
		return Event{Kind: ChargeNowDeleted}, nil
	}

	if w.ReadyBy == nil && w.Need == nil {
		return Event{}, flex.Fail(
			flex.Malformed,
			"say what you wish: a time, an amount, or to charge now",
		)
	}

	in, err := intentNow(ctx, tx, asset)
	if err != nil {
		return Event{}, err
	}

	if w.ReadyBy != nil {
		in.ReadyByLocal, in.ReadyBy = w.ReadyBy, time.Time{}
	}

	if w.Need != nil {
		in.Need = *w.Need
	}

	in.ReceivedAt = time.Time{}

	return Event{Kind: IntentUpdate, Intent: &in}, nil
}

// assetsOf returns the assets of a site, and sets the instant by the organisation's clock.
func (s *Service) assetsOf(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	h *Household,
) ([]flex.Asset, error) {
	var assets []flex.Asset
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		h.Now = tx.Now()

		var err error
		assets, err = tx.AssetsOf(ctx, site)
		return err
	})

	return assets, err
}

// readCharging reads whether a car is plugged in at the asset, and when its household is away.
func (s *Service) readCharging(
	ctx context.Context,
	org flex.OrgID,
	car *HouseholdCar,
) error {
	return s.DB.Read(ctx, org, func(tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, car.Asset.ID)
		car.PluggedIn, car.Controlled = c.Open(), c.Controlled
		car.Excluded = !c.Excluded.IsZero()
		if c.Away.To.After(tx.Now()) {
			car.Leaves, car.Away = c.Away.From, c.Away.To
		}
		if err != nil {
			return err
		}

		if !c.Open() {
			car.Freed, err = endedByControl(
				ctx,
				tx,
				car.Asset.ID,
				c.Session,
			)
			return err
		}

		var level Level
		level.Expected, err = carLevels(ctx, tx, &c)
		value, _ := level.AtLast()
		car.ReadyLevel = int(math.Round(value))

		return err
	})
}

// intentNow returns the intent of an asset; if none was ever sent, the assumed one.
func intentNow(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (flex.Intent, error) {
	c, err := tx.PlanningState(ctx, asset)
	if err != nil {
		return flex.Intent{}, err
	}

	return assumedIntent(ctx, tx, &c)
}

// assumedIntent is intentNow for an asset that was read.
func assumedIntent(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (flex.Intent, error) {
	var in flex.Intent
	if c.Intent != nil {
		in = *c.Intent
		t, _ := tariffOf(c)
		in.ReadyByLocal = new(wallOf(in, zoneOf(t)))
		return in, nil
	}

	record, err := tx.OrgRecord(ctx)
	if err != nil {
		return in, err
	}

	e := effective(c, record.Settings, tx.Now())

	return flex.Intent{
		Need:          e.Need,
		ReadyByLocal:  new(DefaultReadyBy),
		MayChargePeak: e.MayChargePeak,
		Mode:          e.Mode,
	}, nil
}
