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
	// DischargeMinSaving is what discharging must save, in pence, for a car to be discharged
	// at all, or otherwise than before.
	DischargeMinSaving = 2.0
	// DischargeTurn is the cost of one more change from charging to discharging, in addition
	// to wear, in pence.
	DischargeTurn = 1.0
	// chargeReadBefore is how long before its plug-in a car's state of charge may have been
	// read.
	chargeReadBefore = 10 * time.Minute
)

// Why a car that may discharge is charged alone.
const (
	dischargeEnded      = "its user's consent, its endpoint or its charger does not permit it any more"
	dischargeUnread     = "its state of charge was not read in the last two hours"
	dischargeNow        = "it charges at once"
	dischargeCalled     = "an instruction has called it"
	dischargeCapped     = "its fleet was planned together under caps, where this car leaves others what they need; what it may give beside them is worked out after that"
	dischargePooled     = "its organisation has traded a position, for which cars are charged alone"
	dischargeFeeder     = "what limits the export of its feeder leaves it less than 0.5 kW beside the batteries and the other cars there"
	dischargePaced      = "the starts per minute that its caps allow leave no way of giving and charging again"
	dischargeFuse       = "it shares its site's main fuse with other cars, beside which cars are charged alone"
	dischargeBattery    = "it shares its site with a home battery that is not planned, beside which cars are charged alone"
	dischargeHomeCapped = "it shares its site with a home battery, beside which cars are charged alone under caps"
	dischargePrices     = "its ready-by is after the last half-hour that its site's battery is planned for"
	dischargeTooFar     = "its ready-by is more than two days ahead"
	dischargeWeak       = "it can give less than 0.5 kW, which is less than any car is asked to give"
	dischargeNoExport   = "its site may not export what it would give: less than 0.5 kW"
	dischargeOthers     = "other cars of its site may give what the site may export"
	dischargeUnpriced   = "no prices are known"
	dischargeNoTime     = "all the time in which it may charge is needed, so that nothing could be charged again"
	dischargeNoMargin   = "what it gives would earn less in each half-hour than the wear and charging it again, losses counted"
	dischargeReserve    = "what it holds is kept as its reserve"
	dischargeNoGain     = "no plan of giving and charging again was found that saves 2 p or more"
	dischargeNoGainCars = "beside what the other cars of its site do no plan of giving and charging again was found that saves 2 p or more"
	dischargeNoGainHome = "beside what its site's battery does no plan of giving and charging again was found that saves 2 p or more"
	dischargeRefused    = "the plan by which it would give was refused by the check before sending"
)

// What a car that was said to discharge lacked when it was planned.
const (
	lacksConsent  = "its site's user had not consented to it"
	lacksEndpoint = "the endpoint for schedules took none with discharge"
	lacksCapacity = "the capacity of its battery was not known"
)

// lacksToDischarge is what a car that was said to discharge lacks for that; empty if it lacks
// nothing, and for all other cars.
func lacksToDischarge(c *store.PlanningState) string {
	switch {
	case c.Asset.Discharge.Power <= 0:
		return ""
	case c.Asset.Capacity == nil || *c.Asset.Capacity <= 0:
		return lacksCapacity

	case !c.DischargeConsent:
		return lacksConsent
	case !c.MayDischarge:
		return lacksEndpoint
	}

	return ""
}

// dischargeable reports whether everything was stated and agreed that is needed to discharge a
// car.
func dischargeable(c *store.PlanningState) bool {
	known := c.Asset.Discharge.Power > 0 && c.Asset.Capacity != nil

	return known && *c.Asset.Capacity > 0 && c.MayDischarge
}

// readDischarge works out what a car holds that may be discharged, and what it is to hold by
// ready-by. What it has given since its need was said is needed again, also where it may not
// be discharged any more.
func readDischarge(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	e *store.PlanInputs,
	g *progress,
	from time.Time,
	same bool, // the deadline of the schedule in force holds
) error {
	next := dischargeOf(c)

	if next == nil {
		e.ChargesOnly = lacksToDischarge(c)

		return nil
	}

	last, err := lastCharge(ctx, tx, c, next.Capacity)
	if err != nil {
		return err
	}

	e.Discharge = next
	unread := last.at.IsZero() || from.Sub(last.readAt) > ChargeFresh

	if unread && next.Why == "" {
		next.Why = dischargeUnread
	}

	if last.at.IsZero() {
		return nil
	}

	since := flex.Span{From: last.at, To: from}
	taken := g.delivered(since)
	next.ReadAt = last.readAt
	next.Stored = storedAfter(next, last.level, taken, dischargedIn(c, g, since))
	next.Held = storedAfter(next, last.held, taken, 0)

	next.Target = heldByReady(e, c, same)
	limitDelivered(e, takenBack(c, g, from))

	return nil
}

// limitDelivered reduces what counts as delivered to what a car still holds. Again notes how
// much of the reduction is due to what it may have discharged; back is the most that can be.
func limitDelivered(e *store.PlanInputs, back flex.WattHours) {
	d := e.Discharge
	missing := d.Target - d.Stored
	counted := min(e.Delivered, e.Need-gridSide(missing))
	d.Again = min(e.Delivered-counted, back)
	e.Delivered = counted
}

// takenBack is the energy that a car must take again for all that it may have discharged in
// its stay. A car whose charger loses more than is assumed needs more energy too, but has
// discharged nothing.
func takenBack(
	c *store.PlanningState,
	g *progress,
	until time.Time,
) flex.WattHours {
	stay := flex.Span{From: c.Session.PluggedInAt, To: until}

	return gridSide(storedSide(dischargedIn(c, g, stay)))
}

// dischargeOf is what is known of how a car is discharged, or why it is not any more; nil for
// a car that never was to be.
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
	ended.Why = dischargeEnded

	return ended
}

// storedAfter is what a car stores after it took one energy and discharged another, both on
// the grid's side.
func storedAfter(
	d *store.Discharge,
	level, taken, discharged flex.WattHours,
) flex.WattHours {
	more := flex.WattHours(float64(taken) * discharge.Efficiency)

	return max(0, min(d.Capacity, level+more-storedSide(discharged)))
}

// storedSide is the stored energy that is used to discharge an energy.
func storedSide(discharged flex.WattHours) flex.WattHours {
	return flex.WattHours(float64(discharged) / discharge.Efficiency)
}

// gridSide is the energy that is taken from the grid to store an energy.
func gridSide(stored flex.WattHours) flex.WattHours {
	taken := float64(max(0, stored)) / discharge.Efficiency

	return flex.WattHours(math.Ceil(taken))
}

// heldByReady is what a car is to hold by ready-by: what it was to hold before, while the
// deadline is the same. After a new intent it is the need on top of what the car would hold
// had it discharged nothing since its state of charge was read: the user could not know of
// that discharge.
func heldByReady(e *store.PlanInputs, c *store.PlanningState, same bool) flex.WattHours {
	d := e.Discharge
	before := c.Current.From.Discharge

	if same && before != nil && before.Target > 0 {
		return min(before.Target, d.Capacity)
	}

	needed := float64(max(0, e.Need-e.Delivered)) * discharge.Efficiency

	return min(d.Capacity, d.Held+flex.WattHours(needed))
}

// dischargedIn is what a car may have given in a time: by its schedule in force, accepted or
// not, and by those that it followed before.
func dischargedIn(
	c *store.PlanningState,
	g *progress,
	since flex.Span,
) flex.WattHours {
	sum := flex.WattHours(0)

	if c.Open() && c.Current.Generation > 0 {
		made := flex.Span{From: c.Current.Steps[0].From, To: since.To}
		sum += dischargedBy(&c.Current, since.Meet(made))
	}

	for _, f := range g.followed {
		if f.schedule.EventID != c.Current.EventID {
			sum += dischargedBy(f.schedule, since.Meet(f.Span))
		}
	}

	return sum
}

// dischargedBy is what a schedule has its car discharge in a time.
func dischargedBy(s *store.Schedule, in flex.Span) flex.WattHours {
	sum := int64(0)

	for _, step := range dischargesAhead(s, in.From) {
		seconds := max(0, step.Meet(in).Len()) / time.Second
		sum += int64(step.Limit) * int64(seconds)
	}

	return flex.WattHours(sum / 3600)
}

// carCharge is what a car's battery held, when, and when that was read last.
type carCharge struct {
	level  flex.WattHours
	held   flex.WattHours // what it would hold had it discharged nothing since readAt
	at     time.Time      // zero if it is not known
	readAt time.Time
}

// lastCharge is what a car's battery was last known to hold: as it was read in this stay since
// the schedule in force was made, else as that was made from.
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
		last.held = max(before.Stored, before.Held)
		last.at = c.Current.Steps[0].From
	}

	stay := c.Session.PluggedInAt.Add(-chargeReadBefore)

	if known && !at.Before(stay) && at.After(last.readAt) {
		last.level, last.readAt = min(level, capacity), at
		last.held, last.at = last.level, at
	}

	return last, nil
}

// dischargesAhead is what a schedule has its car discharge from an instant on.
func dischargesAhead(s *store.Schedule, from time.Time) []flex.Step {
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

// chargesOnly is why a car is charged alone from now on, beside what it shares its site or its
// organisation with; empty if it may discharge.
func chargesOnly(
	e *store.PlanInputs,
	beside string,
	from time.Time,
) string {
	switch {
	case e.Discharge.Why != "":
		return e.Discharge.Why
	case beside != "":
		return beside

	case !e.ChargeNow.Empty():
		return dischargeNow
	case len(e.Closed) > 0:
		return dischargeCalled
	case e.ReadyBy.Sub(from) > planHorizon:
		return dischargeTooFar
	}

	return ""
}

// besideAlone is why a car that is planned by itself is charged alone, beside what it shares
// its site or its organisation with.
func besideAlone(c *store.PlanningState, u *limits) string {
	switch {
	case u.headroom != nil && len(u.headroom.Position) > 0:
		return dischargePooled
	case u.headroom != nil && c.Battery:
		return dischargeHomeCapped
	case c.Battery:
		return dischargeBattery
	case u.site != nil:
		return dischargeFuse
	}

	return ""
}

// chargeAlone has a schedule that is planned with a fleet discharge nothing from an instant
// on. What the one before has given until then is needed again.
func chargeAlone(e *store.PlanInputs, p *store.ScheduledAsset, from time.Time) {
	before := &p.Current
	d := e.Discharge.ChargedAlone()

	if d == nil {
		return
	}

	since := flex.Span{From: before.Steps[0].From, To: from}
	discharged := dischargedBy(before, since)
	taken := deliveredBy(p, from)

	d.Held = storedAfter(d, max(d.Stored, d.Held), taken, 0)
	d.Stored = storedAfter(d, d.Stored, taken, discharged)
	d.Why = dischargeCapped
	e.Discharge = d
	e.Delivered -= gridSide(storedSide(discharged))
}

// readDischarging reads the schedules that the charger of a car may be following that may
// discharge: its newest, and those before it down to the one that was taken and not refused
// since.
func (c *siteCar) readDischarging(ctx context.Context, tx *store.Tx) error {
	c.sent = [][]flex.Step{c.Current.Steps}
	chain := []*store.Schedule{&c.Current}
	before := c.Current.EventID
	taken := c.Followed()

	for len(chain) < chainMax && !taken {
		s, err := tx.Schedule(ctx, before)
		if flex.KindOf(err) == flex.NotFound { // deleted after its retention: it may discharge all that it can
			return nil
		}
		if err != nil {
			return err
		}

		if s.EventID != c.Current.EventID {
			chain = append(chain, &s)
			c.sent = append(c.sent, s.Steps)
		}

		before = s.Before
		if before.IsZero() {
			break
		}

		up, err := tx.TakenUp(ctx, []store.Schedule{s})
		if err != nil {
			return err
		}

		_, taken = up[s.EventID]
	}

	if len(chain) < chainMax { // else there are more
		c.discharging = chain
	}

	return nil
}

// mayDischarge is what a car may discharge from an instant on, by any of the schedules that
// its charger may be following and by what it is about to be sent. If those are not known, it
// may discharge all that it can until it ends.
func (c *siteCar) mayDischarge(from time.Time) draws {
	var may draws
	d := c.Current.From.Discharge
	may.power, may.wired = flex.Unbounded, c.wiring()

	if len(c.discharges) > 0 {
		may.lists = append(may.lists, c.discharges)
	}

	if d != nil && c.discharging == nil {
		whole := flex.Span{From: from, To: c.lastEnd(from)}
		may.lists = append(may.lists, []flex.Step{{Span: whole, Limit: d.Power}})
	}

	for _, s := range c.discharging {
		if ahead := dischargesAhead(s, from); len(ahead) > 0 {
			may.lists = append(may.lists, ahead)
		}
	}

	return may
}

// lastEnd is when a car is done by the last of the schedules that its charger may be
// following, and by the next.
func (c *siteCar) lastEnd(from time.Time) time.Time {
	end := flex.Later(c.end(from), c.Current.From.ReadyBy)

	for _, s := range c.discharging {
		end = flex.Later(end, flex.Later(s.From.ReadyBy, s.From.ChargeNow.To))
	}

	return end
}

// freedAt is what the cars may discharge from now on that were freed at a site while they were
// plugged in: until a charger has accepted that, it may go on by the schedule before.
func freedAt(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) ([]draws, error) {
	found, err := tx.FreedAt(ctx, site)
	if err != nil {
		return nil, fmt.Errorf("read what was freed at the site: %w", err)
	}

	from := tx.Now().Truncate(time.Second)
	var freed []draws

	for i := range found {
		may, err := freedMayDischarge(ctx, tx, &found[i], from)
		if err != nil {
			return nil, err
		}

		freed = append(freed, may)
	}

	return freed, nil
}

// freedMayDischarge is what one that was freed may discharge. Where a schedule of it cannot be
// read, it holds up no other of its site: it counts with all that it can give.
func freedMayDischarge(
	ctx context.Context,
	tx *store.Tx,
	p *store.ScheduledAsset,
	from time.Time,
) (draws, error) {
	if p.Unread != nil {
		return dischargesAlways(ctx, tx, p.Current.AssetID)
	}

	car := siteCar{member: member{ScheduledAsset: p, from: p.Current.From}}
	if car.from.Discharge == nil {
		return draws{}, nil
	}

	err := car.readDischarging(ctx, tx)
	if errors.Is(err, store.ErrUnreadable) { // one before its newest: what it may discharge until it ends is not known
		err = nil
	}

	return car.mayDischarge(from), err
}

// exportLeft is what a car may discharge at most beside the other cars of its site, whichever
// of their schedules they follow. Where it is planned to be sent something, the site is
// locked.
func exportLeft(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (flex.Watts, error) {
	found, err := tx.PlannedAt(ctx, c.Asset.SiteID)
	if err != nil {
		return 0, fmt.Errorf("read the site's schedules: %w", err)
	}

	o := outflow{phaseLoad: phaseLoad{phases: c.FusePhases}, fuse: c.Fuse, export: c.Export}

	for i := range found {
		s := &found[i].Current
		other := s.From.Discharge

		if s.AssetID == c.Asset.ID || other == nil {
			continue
		}

		if len(other.Discharges) > 0 || !found[i].Followed() {
			o.give(other.Power, flex.Wiring{Phases: s.From.Phases, Phase: s.From.Phase})
		}
	}

	freed, err := freedAt(ctx, tx, c.Asset.SiteID)
	for i := range freed {
		ahead := flex.Span{From: tx.Now(), To: tx.Now().Add(TailTime)}
		o.give(freed[i].mostIn(ahead), freed[i].wired)
	}

	return o.leaves(c.Asset.Wiring()), err
}
