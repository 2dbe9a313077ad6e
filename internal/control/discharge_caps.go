package control

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/discharge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Cars that discharge under caps.
//
// The fleet is planned twice: once with all cars only charging, and once around the cars that
// discharge by their schedules in force. The second plan is used if nobody else falls short by
// more. Then each car that may discharge is planned on its own in the remaining headroom. What
// a car discharges makes no headroom for others, and what it charges again counts as any
// charge. Limits of a feeder's export apply to the sum of the feeder's batteries and cars.

// readDischargingCars reads what the cars of a constraint group may discharge. If a schedule
// of a car cannot be read, the car counts with its full power, so that the others can be
// planned.
func readDischargingCars(
	ctx context.Context,
	tx *store.Tx,
	group string,
) (map[flex.AssetID]loadBound, error) {
	found, unread, err := tx.CapDischargers(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("read which cars may discharge: %w", err)
	}

	from := tx.Now().Truncate(time.Second)
	cars := make(map[flex.AssetID]loadBound, len(found)+len(unread))

	for i := range found {
		car := siteCar{member: member{ScheduledAsset: &found[i], from: found[i].Current.From}}
		err := car.readPossibleSchedules(ctx, tx)
		if errors.Is(err, store.ErrUnreadable) { // one before its newest
			unread = append(unread, found[i].Current.AssetID)
			continue
		}
		if err != nil {
			return nil, err
		}

		cars[found[i].Current.AssetID] = car.possibleDischarge(from)
	}

	for _, id := range unread {
		cars[id], err = dischargeAtAnyTime(ctx, tx, id)
		if err != nil {
			return nil, err
		}
	}

	return cars, nil
}

// dischargeAtAnyTime returns the bound of a car of which it is not known when it discharges:
// its full power at any time. If it is no longer registered to discharge, that is the power of
// its charger.
func dischargeAtAnyTime(
	ctx context.Context,
	tx *store.Tx,
	car flex.AssetID,
) (loadBound, error) {
	a, err := tx.Asset(ctx, car)
	if err != nil {
		return loadBound{}, fmt.Errorf("read a car that may discharge: %w", err)
	}

	d := alwaysUpTo(cmp.Or(a.Discharge.Power, a.RatedPower()), tx.Now())
	d.wiring = a.Wiring()

	return d, nil
}

// alwaysUpTo is a load of which is not known when it moves: at any time, up to some power.
func alwaysUpTo(most flex.Watts, now time.Time) loadBound {
	always := flex.Span{To: now.AddDate(1, 0, 0)} // a plan is of days

	return loadBound{
		lists: [][]flex.Step{{{Span: always, Limit: most}}},
		power: flex.Unbounded,
	}
}

// maxCarExport is the most that the group's cars may discharge together in a half-hour.
func (g *groupExport) maxCarExport(p flex.Period) flex.Watts {
	var sum flex.Watts
	for _, may := range g.cars {
		sum += may.maxIn(p.Span())
	}

	return sum
}

// limitToCaps closes a car's problem for charging where caps leave it less than its full
// power, and for discharging in half-hours in which its feeder has no headroom for export. If
// that leaves no time to discharge, it returns the reason.
func limitToCaps(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	u *limits,
	alone *Candidate,
	q *discharge.Problem,
) (string, error) {
	if u.headroom == nil {
		return "", nil
	}

	limits := u.headroom.Limits(alone.Problem, u.headroom.cap)
	if q.Kept { // it charges as it does alone
		limits = nil
	}

	for _, l := range limits {
		if l.Limit < q.Charge {
			q.Open = instruct.Without(q.Open, []flex.Span{l.Span})
		}
	}

	feeder, err := u.feeders.read(ctx, tx, asset)
	if err != nil || feeder == nil {
		return "", err
	}

	if !feeder.limitDischarge(asset, q) {
		return dischargeFeeder, nil
	}

	return "", nil
}

// limitDischarge restricts a car to half-hours in which the limits of its feeder's export
// leave it enough. It compares two ways: full power where that is left, or the least power
// that is left in any usable half-hour, and takes the one that is worth more. It returns false
// if no half-hour is usable.
func (e *feederExport) limitDischarge(
	asset flex.AssetID,
	q *discharge.Problem,
) bool {
	remaining := make([]flex.Watts, len(q.Rates))
	least := q.Most
	open := false

	for i, r := range q.Rates {
		w, bounded := e.headroom(asset, r.Period)
		remaining[i] = q.Most
		if bounded {
			remaining[i] = min(q.Most, w)
		}

		if remaining[i] >= discharge.Least {
			least = min(least, remaining[i])
			open = true
		}
	}

	full := *q
	closeHalfHours(&full, remaining)
	if least < q.Most {
		weak := *q
		weak.Most = least
		closeHalfHours(&weak, remaining)

		more, less := discharge.Solve(&full), discharge.Solve(&weak)
		if less.Worth(&weak) > more.Worth(&full) {
			full = weak
		}
	}

	*q = full

	return open
}

// closeHalfHours closes the half-hours for discharging in which less than the car's power is
// left.
func closeHalfHours(q *discharge.Problem, remaining []flex.Watts) {
	q.Shut = slices.Clip(q.Shut)

	for i, r := range q.Rates {
		if remaining[i] < q.Most {
			q.Shut = append(q.Shut, r.Span())
		}
	}
}

// exceedsStartRate reports whether a plan with discharge breaks the caps' limit of starts per
// minute, because the car begins to charge again in a minute that is full.
func (u *limits) exceedsStartRate(alone *Candidate, plan *Discharging) bool {
	if u.headroom == nil || plan == nil || len(plan.Steps) == 0 {
		return false
	}

	return !u.headroom.Fits(alone.Problem, u.headroom.cap, plan.Steps)
}

// dischargeExceedsCaps reports whether a schedule in force with discharge charges more than
// the caps now permit, or has limits above the power that is counted, and the new plan
// differs. The fleet is planned around such schedules without these two checks.
func (u *limits) dischargeExceedsCaps(
	c *store.PlanningState,
	candidate *Candidate,
) bool {
	if u.headroom == nil || len(candidate.Discharges) == 0 {
		return false
	}

	fits := u.headroom.Fits(
		candidate.Problem,
		u.headroom.cap,
		candidate.Current,
	)

	if fits && !mayExceedCounted(&c.Current.From) {
		return false
	}

	return !sameAhead(candidate.Current, candidate.newSteps(), candidate.Problem.From)
}

// draftFleet plans the fleet in a transaction without committing anything; it returns nil if
// there are no caps. Cars keep discharging by their schedules in force if nobody else falls
// short by more because of that.
func (s *Service) draftFleet(
	ctx context.Context,
	tx *store.Tx,
) (*fleet, error) {
	alone, err := s.draftFleetAround(ctx, tx, nil)
	if err != nil || alone == nil {
		return nil, err
	}

	keep := alone.mayKeepDischarging()
	if len(keep) == 0 {
		return alone, nil
	}

	around, err := s.draftFleetAround(ctx, tx, keep)
	if err != nil {
		return nil, err
	}

	if around.meetsAsMuch(alone) {
		return around, nil
	}

	return alone, nil
}

// mayKeepDischarging returns the members that may keep discharging by their schedules in
// force.
func (f *fleet) mayKeepDischarging() map[flex.AssetID]bool {
	keep := map[flex.AssetID]bool{}
	if len(f.Position) > 0 {
		return keep
	}

	for i := range f.members {
		if m := &f.members[i]; m.mayKeepDischarging() {
			keep[m.Current.AssetID] = true
		}
	}

	return keep
}

// mayKeepDischarging reports whether a member discharges by its schedule in force, may still
// do so, and gets the energy that it needs by it.
func (m *member) mayKeepDischarging() bool {
	discharges := dischargeSteps(&m.Current, m.From)
	if len(discharges) == 0 || m.fuseCar != nil || plannedAsOne(&m.Current.From) {
		return false
	}
	if !m.from.ChargeNow.Empty() || len(m.from.Closed) > 0 {
		return false
	}

	sum := int64(0)
	for _, s := range discharges {
		sum += int64(s.Limit) * int64(s.Len()/time.Second)
	}

	again := gridSide(storedSide(flex.WattHours(sum / 3600)))
	charged := effectOf(m.Car.Problem, charge.AssumedPrice(m.Prices), m.current()).energy

	return flex.WattHours(charged/3600)-again >= m.Need-dischargeSlack
}

// meetsAsMuch reports whether a plan of the fleet meets as much of the needs as another one
// does, with no more peak time, and exceeds no cap unless the other one does too. Cars that
// keep discharging are left out of both.
func (f *fleet) meetsAsMuch(than *fleet) bool {
	_, _, over := f.Exceeded()
	_, _, wasOver := than.Exceeded()
	if over && !wasOver {
		return false
	}

	own, other := f.outcome(nil), than.outcome(f.keepDischarging)

	return own.shortfall-own.slack <= other.shortfall && own.peak-own.slack <= other.peak
}

// fleetOutcome is the sum of a fleet's plans, in watt-seconds.
type fleetOutcome struct {
	shortfall, peak int64
	slack           int64 // the greatest difference at which two plans count as equal
}

// outcome adds up the members' shortfalls and their energy in peak time, except for those in
// but.
func (f *fleet) outcome(but map[flex.AssetID]bool) fleetOutcome {
	var o fleetOutcome
	assumed := charge.AssumedPrice(f.prices)

	for i := range f.members {
		m := &f.members[i]
		if but[m.Current.AssetID] {
			continue
		}

		w := effectOf(m.Car.Problem, assumed, m.steps())
		need := int64(m.Need) * 3600
		shortfall := max(0, need-w.energy)
		slack := int64(m.Power)*int64(TurnSlack/time.Second) + need*SlackPercent/100

		o.shortfall += shortfall
		o.peak += w.peak
		o.slack += min(slack, max(shortfall, w.peak))
	}

	return o
}

// dischargingCars returns the cars of a fleet that may discharge, in order.
func (f *fleet) dischargingCars() []flex.AssetID {
	var found []flex.AssetID
	for id := range f.keepDischarging {
		found = append(found, id)
	}

	for i := range f.members {
		if m := &f.members[i]; m.from.Discharge != nil && m.fuseCar == nil {
			found = append(found, m.Current.AssetID)
		}
	}

	slices.SortFunc(found, func(a, b flex.AssetID) int {
		return bytes.Compare(a[:], b[:])
	})

	return found
}
