package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"flexd/internal/engine/discharge"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// DischargeMinSaving is the least saving, in pence, for which a car is discharged at all,
	// or differently than by its schedule in force.
	DischargeMinSaving = 2.0
	// DischargeTurn is the cost of one more change from charging to discharging, in addition
	// to wear, in pence.
	DischargeTurn = 1.0
	// chargeReadBefore is how long before its plug-in a car's state of charge may have been
	// read.
	chargeReadBefore = 10 * time.Minute
)

// Reasons why a car that may discharge only charges. They are stored with the schedule and
// shown to operators.
const (
	dischargeNotPermitted   = "its user's consent, its endpoint or its charger does not permit it any more"
	dischargeNoReading      = "its state of charge was not read in the last two hours"
	dischargeChargeNow      = "it charges at once"
	dischargeInstruction    = "an instruction has called it"
	dischargeCaps           = "its fleet was planned together under caps, where this car leaves others what they need; what it may give beside them is worked out after that"
	dischargePosition       = "its organisation has traded a position, for which cars are charged alone"
	dischargeFeeder         = "what limits the export of its feeder leaves it less than 0.5 kW beside the batteries and the other cars there"
	dischargeStartRate      = "the starts per minute that its caps allow leave no way of giving and charging again"
	dischargeFuse           = "it shares its site's main fuse with other cars, beside which cars are charged alone"
	dischargeBattery        = "it shares its site with a home battery that is not planned, beside which cars are charged alone"
	dischargeHomeCaps       = "it shares its site with a home battery, beside which cars are charged alone under caps"
	dischargeBatteryHorizon = "its ready-by is after the last half-hour that its site's battery is planned for"
	dischargeHorizon        = "its ready-by is more than two days ahead"
	dischargeLowPower       = "it can give less than 0.5 kW, which is less than any car is asked to give"
	dischargeNoExport       = "its site may not export what it would give: less than 0.5 kW"
	dischargeOtherCars      = "other cars of its site may give what the site may export"
	dischargeNoPrices       = "no prices are known"
	dischargeNoTime         = "all the time in which it may charge is needed, so that nothing could be charged again"
	dischargeNoMargin       = "what it gives would earn less in each half-hour than the wear and charging it again, losses counted"
	dischargeReserve        = "what it holds is kept as its reserve"
	dischargeNoGain         = "no plan of giving and charging again was found that saves 2 p or more"
	dischargeNoGainCars     = "beside what the other cars of its site do no plan of giving and charging again was found that saves 2 p or more"
	dischargeNoGainHome     = "beside what its site's battery does no plan of giving and charging again was found that saves 2 p or more"
	dischargeCheckFailed    = "the plan by which it would give was refused by the check before sending"
)

// What was missing when a car was planned that is registered as one that discharges.
const (
	missingConsent  = "its site's user had not consented to it"
	missingEndpoint = "the endpoint for schedules took none with discharge"
	missingCapacity = "the capacity of its battery was not known"
)

// missingForDischarge is what is missing for a car to discharge that is registered with a
// discharge power. It is empty if nothing is missing, and for all other cars.
func missingForDischarge(c *store.PlanningState) string {
	switch {
	case c.Asset.Discharge.Power <= 0:
		return ""
	case c.Asset.Capacity == nil || *c.Asset.Capacity <= 0:
		return missingCapacity

	case !c.DischargeConsent:
		return missingConsent
	case !c.MayDischarge:
		return missingEndpoint
	}

	return ""
}

// dischargeable reports whether a car may discharge: its discharge power and capacity are
// known, and its user and its endpoint permit it.
func dischargeable(c *store.PlanningState) bool {
	known := c.Asset.Discharge.Power > 0 && c.Asset.Capacity != nil

	return known && *c.Asset.Capacity > 0 && c.MayDischarge
}

// readDischarge sets how much energy a car's battery stores that may be discharged, and how
// much it is to store by ready-by. Energy that it has discharged since its need was stated is
// needed again, even if it may not discharge any more. A car that cannot discharge gets the
// reason instead.
func readDischarge(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	e *store.PlanInputs,
	g *progress,
	from time.Time,
	same bool, // the deadline is that of the schedule in force
) error {
	next := dischargeOf(c)

	if next == nil {
		e.ChargesOnly = missingForDischarge(c)

		return nil
	}

	last, err := lastCharge(ctx, tx, c, next.Capacity)
	if err != nil {
		return err
	}

	e.Discharge = next
	unread := last.at.IsZero() || from.Sub(last.readAt) > ChargeFresh

	if unread && next.Why == "" {
		next.Why = dischargeNoReading
	}

	if last.at.IsZero() {
		return nil
	}

	since := flex.Span{From: last.at, To: from}
	charged := g.delivered(since)
	next.ReadAt = last.readAt
	next.Stored = storedAfter(next, last.level, charged, possibleDischarge(c, g, since))
	next.Held = storedAfter(next, last.withoutDischarge, charged, 0)

	next.Target = targetCharge(e, c, same)
	limitDelivered(e, rechargeEnergy(c, g, from))

	return nil
}

// limitDelivered reduces the energy that counts as delivered to what is still in the battery.
// Again is the part of that reduction which is due to discharging, at most back.
func limitDelivered(e *store.PlanInputs, back flex.WattHours) {
	d := e.Discharge
	missing := d.Target - d.Stored
	counted := min(e.Delivered, e.Need-gridSide(missing))
	d.Again = min(e.Delivered-counted, back)
	e.Delivered = counted
}

// rechargeEnergy is the energy that a car must take from the grid to replace all that it may
// have discharged during its stay. It bounds the recharge need: a car whose charger loses more
// than is assumed needs more energy too, but not because it discharged.
func rechargeEnergy(
	c *store.PlanningState,
	g *progress,
	until time.Time,
) flex.WattHours {
	stay := flex.Span{From: c.Session.PluggedInAt, To: until}

	return gridSide(storedSide(possibleDischarge(c, g, stay)))
}

// dischargeOf returns the parameters of a car's discharge. For a car that may not discharge
// any more it returns those of its schedule in force, with the reason; for a car that never
// could, nil.
func dischargeOf(c *store.PlanningState) *store.Discharge {
	if dischargeable(c) {
		own, capacity := &c.Asset.Discharge, *c.Asset.Capacity

		return &store.Discharge{
			Power:    own.Power,
			Capacity: capacity,
			Reserve:  own.ReserveOf(capacity),
			Wear:     own.WearCost(),
		}
	}

	before := c.Current.From.Discharge

	if !c.Open() || before == nil {
		return nil
	}

	ended := before.ChargedAlone()
	ended.Why = dischargeNotPermitted

	return ended
}

// storedAfter is the energy in a car's battery after it took some energy from the grid and
// discharged some to it.
func storedAfter(
	d *store.Discharge,
	level, charged, discharged flex.WattHours,
) flex.WattHours {
	more := flex.WattHours(float64(charged) * discharge.Efficiency)

	return max(0, min(d.Capacity, level+more-storedSide(discharged)))
}

// storedSide is the stored energy that is used to discharge an energy.
func storedSide(discharged flex.WattHours) flex.WattHours {
	return flex.WattHours(float64(discharged) / discharge.Efficiency)
}

// gridSide is the energy that is taken from the grid to store an energy.
func gridSide(stored flex.WattHours) flex.WattHours {
	charged := float64(max(0, stored)) / discharge.Efficiency

	return flex.WattHours(math.Ceil(charged))
}

// targetCharge is the energy that a car is to store by ready-by. While the deadline is the
// same, it stays what it was. After a new intent it is the need in addition to what the car
// would store had it discharged nothing since its state of charge was read: the user could not
// know of that discharge.
func targetCharge(e *store.PlanInputs, c *store.PlanningState, same bool) flex.WattHours {
	d := e.Discharge
	before := c.Current.From.Discharge

	if same && before != nil && before.Target > 0 {
		return min(before.Target, d.Capacity)
	}

	needed := float64(max(0, e.Need-e.Delivered)) * discharge.Efficiency

	return min(d.Capacity, d.Held+flex.WattHours(needed))
}

// possibleDischarge is the most that a car may have discharged in a span: by its schedule in
// force, accepted or not, and by those that it followed before.
func possibleDischarge(
	c *store.PlanningState,
	g *progress,
	since flex.Span,
) flex.WattHours {
	sum := flex.WattHours(0)

	if c.Open() && c.Current.Generation > 0 {
		made := flex.Span{From: c.Current.Steps[0].From, To: since.To}
		sum += dischargeEnergy(&c.Current, since.Meet(made))
	}

	for _, f := range g.followed {
		if f.schedule.EventID != c.Current.EventID {
			sum += dischargeEnergy(f.schedule, since.Meet(f.Span))
		}
	}

	return sum
}

// dischargeEnergy is the energy that a schedule has its car discharge in a span.
func dischargeEnergy(s *store.Schedule, in flex.Span) flex.WattHours {
	sum := int64(0)

	for _, step := range dischargeSteps(s, in.From) {
		seconds := max(0, step.Meet(in).Len()) / time.Second
		sum += int64(step.Limit) * int64(seconds)
	}

	return flex.WattHours(sum / 3600)
}

// carCharge is the state of charge of a car's battery at an instant.
type carCharge struct {
	level            flex.WattHours
	withoutDischarge flex.WattHours // what it would store had it discharged nothing since readAt
	at               time.Time      // zero if it is not known
	readAt           time.Time
}

// lastCharge is the last known state of charge of a car: the newest reading of this stay, if
// there is one since the schedule in force was made, and else what that schedule was planned
// with.
func lastCharge(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	capacity flex.WattHours,
) (carCharge, error) {
	if !c.Open() {
		return carCharge{}, nil
	}

	level, at, known, err := readCharge(
		ctx,
		tx,
		&store.Battery{Asset: c.Asset},
		home.Battery{Capacity: capacity},
	)
	if err != nil {
		return carCharge{}, err
	}

	last := carCharge{}
	before := c.Current.From.Discharge

	if before != nil && !before.ReadAt.IsZero() {
		last.level, last.readAt = before.Stored, before.ReadAt
		last.withoutDischarge = max(before.Stored, before.Held)
		last.at = c.Current.Steps[0].From
	}

	stay := c.Session.PluggedInAt.Add(-chargeReadBefore)

	if known && !at.Before(stay) && at.After(last.readAt) {
		last.level, last.readAt = min(level, capacity), at
		last.withoutDischarge, last.at = last.level, at
	}

	return last, nil
}

// dischargeSteps returns the discharge steps of a schedule from an instant on.
func dischargeSteps(s *store.Schedule, from time.Time) []flex.Step {
	var discharges []flex.Step
	if s.From.Discharge == nil {
		return nil
	}

	for _, step := range s.From.Discharge.Discharges {
		step.Span = step.Meet(flex.Span{From: from, To: step.To})

		if !step.Empty() {
			discharges = append(discharges, step)
		}
	}

	return discharges
}

// chargeOnlyReason says why a car only charges from now on; empty if it may discharge. sharing
// is the reason that follows from what its site or organisation is shared with, which
// sharedReason and the method of a site's plan find.
func chargeOnlyReason(
	e *store.PlanInputs,
	sharing string,
	from time.Time,
) string {
	switch {
	case e.Discharge.Why != "":
		return e.Discharge.Why
	case sharing != "":
		return sharing

	case !e.ChargeNow.Empty():
		return dischargeChargeNow
	case len(e.Closed) > 0:
		return dischargeInstruction
	case e.ReadyBy.Sub(from) > planHorizon:
		return dischargeHorizon
	}

	return ""
}

// sharedReason says why a car that is planned on its own only charges, because of what it
// shares its site or its organisation with; empty for no such reason.
func sharedReason(c *store.PlanningState, u *limits) string {
	switch {
	case u.headroom != nil && len(u.headroom.Position) > 0:
		return dischargePosition
	case u.headroom != nil && c.Battery:
		return dischargeHomeCaps
	case c.Battery:
		return dischargeBattery
	case u.site != nil:
		return dischargeFuse
	}

	return ""
}

// dropDischarge removes the discharge from the inputs of a schedule that is planned with a
// fleet, from an instant on. What the schedule in force has discharged until then is needed
// again.
func dropDischarge(e *store.PlanInputs, p *store.ScheduledAsset, from time.Time) {
	before := &p.Current
	d := e.Discharge.ChargedAlone()

	if d == nil {
		return
	}

	since := flex.Span{From: before.Steps[0].From, To: from}
	discharged := dischargeEnergy(before, since)
	charged := deliveredBy(p, from)

	d.Held = storedAfter(d, max(d.Stored, d.Held), charged, 0)
	d.Stored = storedAfter(d, d.Stored, charged, discharged)
	d.Why = dischargeCaps
	e.Discharge = d
	e.Delivered -= gridSide(storedSide(discharged))
}

// readPossibleSchedules reads the schedules that a car's charger may be following, if one of
// them discharges: the newest, and those before it down to the last one that was accepted and
// has not failed since. If they are not all known, possibleSchedules stays nil, and the charger
// may also draw its full power at any time.
func (c *siteCar) readPossibleSchedules(ctx context.Context, tx *store.Tx) error {
	c.possibleSteps = [][]flex.Step{c.Current.Steps}
	chain := []*store.Schedule{&c.Current}
	before := c.Current.EventID
	accepted := c.Followed()

	for len(chain) < chainMax && !accepted {
		s, err := tx.Schedule(ctx, before)
		if flex.KindOf(err) == flex.NotFound { // deleted after its retention: unknown
			c.addUnknownSteps(tx.Now())
			return nil
		}
		if err != nil {
			return err
		}

		if s.EventID != c.Current.EventID {
			chain = append(chain, &s)
			c.possibleSteps = append(c.possibleSteps, s.Steps)
		}

		before = s.Before
		if before.IsZero() {
			break
		}

		up, err := tx.TakenUp(ctx, []store.Schedule{s})
		if err != nil {
			return err
		}

		_, accepted = up[s.EventID]
	}

	if len(chain) == chainMax { // the earlier ones are not read
		c.addUnknownSteps(tx.Now())
		return nil
	}

	c.possibleSchedules = chain

	return nil
}

// possibleDischarge is the most that a car may discharge from an instant on, by any of the
// schedules that its charger may be following and by the one that it is about to be sent. If
// these are not all known, it is the car's full discharge power until its last possible end.
func (c *siteCar) possibleDischarge(from time.Time) loadBound {
	var may loadBound
	d := c.Current.From.Discharge
	may.power, may.wiring = flex.Unbounded, c.wiring()

	if len(c.discharges) > 0 {
		may.lists = append(may.lists, c.discharges)
	}

	if d != nil && c.possibleSchedules == nil {
		whole := flex.Span{From: from, To: c.lastEnd(from)}
		may.lists = append(may.lists, []flex.Step{{Span: whole, Limit: d.Power}})
	}

	for _, s := range c.possibleSchedules {
		if ahead := dischargeSteps(s, from); len(ahead) > 0 {
			may.lists = append(may.lists, ahead)
		}
	}

	return may
}

// lastEnd is the latest end of a car's charging by any schedule that its charger may be
// following, and by the next one.
func (c *siteCar) lastEnd(from time.Time) time.Time {
	end := flex.Later(c.end(from), c.Current.From.ReadyBy)

	for _, s := range c.possibleSchedules {
		end = flex.Later(end, flex.Later(s.From.ReadyBy, s.From.ChargeNow.To))
	}

	return end
}

// uncontrolledCarsAt returns what those cars of a site may still discharge that flexd no
// longer controls, and that were plugged in when control ended. Until its charger has accepted
// that, such a car may go on by its last schedule.
func uncontrolledCarsAt(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) ([]loadBound, error) {
	found, err := tx.FreedAt(ctx, site)
	if err != nil {
		return nil, fmt.Errorf("read what was freed at the site: %w", err)
	}

	from := tx.Now().Truncate(time.Second)
	var uncontrolled []loadBound

	for i := range found {
		may, err := uncontrolledCarDischarge(ctx, tx, &found[i], from)
		if err != nil {
			return nil, err
		}

		uncontrolled = append(uncontrolled, may)
	}

	return uncontrolled, nil
}

// uncontrolledCarDischarge is what one such car may still discharge. If none of its schedules
// can be read, it counts with its full power, so that the other cars of the site can be
// planned.
func uncontrolledCarDischarge(
	ctx context.Context,
	tx *store.Tx,
	p *store.ScheduledAsset,
	from time.Time,
) (loadBound, error) {
	if p.Unread != nil {
		return dischargeAtAnyTime(ctx, tx, p.Current.AssetID)
	}

	car := siteCar{member: member{ScheduledAsset: p, from: p.Current.From}}
	if car.from.Discharge == nil {
		return loadBound{}, nil
	}

	err := car.readPossibleSchedules(ctx, tx)
	if errors.Is(err, store.ErrUnreadable) { // a schedule before the newest: possibleDischarge counts full power
		err = nil
	}

	return car.possibleDischarge(from), err
}

// exportHeadroom is the most that a car may discharge beside the other cars of its site,
// whichever of their schedules they follow. The site is locked if the result is to be sent.
func exportHeadroom(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (flex.Watts, error) {
	found, err := tx.PlannedAt(ctx, c.Asset.SiteID)
	if err != nil {
		return 0, fmt.Errorf("read the site's schedules: %w", err)
	}

	o := dischargeLoad{phaseLoad: phaseLoad{phases: c.FusePhases}, fuse: c.Fuse, export: c.Export}

	for i := range found {
		s := &found[i].Current
		other := s.From.Discharge

		if s.AssetID == c.Asset.ID || other == nil {
			continue
		}

		if len(other.Discharges) > 0 || !found[i].Followed() {
			o.addDischarge(other.Power, flex.Wiring{Phases: s.From.Phases, Phase: s.From.Phase})
		}
	}

	uncontrolled, err := uncontrolledCarsAt(ctx, tx, c.Asset.SiteID)
	for i := range uncontrolled {
		ahead := flex.Span{From: tx.Now(), To: tx.Now().Add(TailTime)}
		o.addDischarge(uncontrolled[i].maxIn(ahead), uncontrolled[i].wiring)
	}

	return o.exportHeadroom(c.Asset.Wiring()), err
}
