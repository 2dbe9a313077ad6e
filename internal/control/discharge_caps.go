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
// The fleet is planned twice: once with every car charging alone, and once around the cars
// that discharge by their schedules in force. The second plan is taken if nobody else lacks
// more by it. After that each car that may discharge is planned by itself, in the headroom
// that is left. What a car gives makes no headroom for others; what it charges again is
// counted like any charge. A limit of a feeder's export binds it beside the feeder's batteries
// and other cars.

// readDischargers reads what the cars of a constraint group may give. A car of which a
// schedule cannot be read holds up no other: it counts with all that it can give.
func readDischargers(
	ctx context.Context,
	tx *store.Tx,
	group string,
) (map[flex.AssetID]draws, error) {
	found, unread, err := tx.CapDischargers(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("read which cars may discharge: %w", err)
	}

	from := tx.Now().Truncate(time.Second)
	cars := make(map[flex.AssetID]draws, len(found)+len(unread))

	for i := range found {
		car := siteCar{member: member{ScheduledAsset: &found[i], from: found[i].Current.From}}
		err := car.readDischarging(ctx, tx)
		if errors.Is(err, store.ErrUnreadable) { // one before its newest
			unread = append(unread, found[i].Current.AssetID)
			continue
		}
		if err != nil {
			return nil, err
		}

		cars[found[i].Current.AssetID] = car.mayDischarge(from)
	}

	for _, id := range unread {
		cars[id], err = dischargesAlways(ctx, tx, id)
		if err != nil {
			return nil, err
		}
	}

	return cars, nil
}

// dischargesAlways is a car of which is not known when it gives: at any time, all that it can.
// That is the power of its charger where it is not registered to discharge any more.
func dischargesAlways(
	ctx context.Context,
	tx *store.Tx,
	car flex.AssetID,
) (draws, error) {
	a, err := tx.Asset(ctx, car)
	if err != nil {
		return draws{}, fmt.Errorf("read a car that may discharge: %w", err)
	}

	d := alwaysUpTo(cmp.Or(a.Discharge.Power, a.RatedPower()), tx.Now())
	d.wired = a.Wiring()

	return d, nil
}

// alwaysUpTo is a load of which is not known when it moves: at any time, up to some power.
func alwaysUpTo(most flex.Watts, now time.Time) draws {
	always := flex.Span{To: now.AddDate(1, 0, 0)} // a plan is of days

	return draws{
		lists: [][]flex.Step{{{Span: always, Limit: most}}},
		power: flex.Unbounded,
	}
}

// mostOfCars is the most that the group's cars give in a half-hour.
func (g *groupExport) mostOfCars(p flex.Period) flex.Watts {
	var sum flex.Watts
	for _, may := range g.cars {
		sum += may.mostIn(p.Span())
	}

	return sum
}

// confineToCaps closes the time in which caps do not leave a car its full power, and the
// half-hours in which its feeder takes nothing from it. It says why the car cannot discharge,
// if so.
func confineToCaps(
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

	if !feeder.confine(asset, q) {
		return dischargeFeeder, nil
	}

	return "", nil
}

// confine has a car discharge only where what limits its feeder leaves it enough: at its full
// power where that is left, or with the least that is left in any half-hour, whichever is
// worth more. It is false if there is no time in which it may discharge.
func (e *feederExport) confine(
	asset flex.AssetID,
	q *discharge.Problem,
) bool {
	left := make([]flex.Watts, len(q.Rates))
	least := q.Most
	open := false

	for i, r := range q.Rates {
		w, bounded := e.headroom(asset, r.Period)
		left[i] = q.Most
		if bounded {
			left[i] = min(q.Most, w)
		}

		if left[i] >= discharge.Least {
			least = min(least, left[i])
			open = true
		}
	}

	full := *q
	shutIn(&full, left)
	if least < q.Most {
		weak := *q
		weak.Most = least
		shutIn(&weak, left)

		more, less := discharge.Solve(&full), discharge.Solve(&weak)
		if less.Worth(&weak) > more.Worth(&full) {
			full = weak
		}
	}

	*q = full

	return open
}

// shutIn has a car discharge nothing in the half-hours that leave it less than its power.
func shutIn(q *discharge.Problem, left []flex.Watts) {
	q.Shut = slices.Clip(q.Shut)

	for i, r := range q.Rates {
		if left[i] < q.Most {
			q.Shut = append(q.Shut, r.Span())
		}
	}
}

// paced reports whether a car would begin to charge again in a minute in which the caps let no
// more begin.
func (u *limits) paced(alone *Candidate, given *Discharging) bool {
	if u.headroom == nil || given == nil || len(given.Steps) == 0 {
		return false
	}

	return !u.headroom.Fits(alone.Problem, u.headroom.cap, given.Steps)
}

// outgrown reports whether a schedule in force by which a car discharges draws what caps do
// not leave it, or leaves it free to draw more than is counted, where the plan is another. The
// fleet is planned around such a schedule, and looks at neither.
func (u *limits) outgrown(
	c *store.PlanningState,
	candidate *Candidate,
) bool {
	if u.headroom == nil || len(candidate.Given) == 0 {
		return false
	}

	fits := u.headroom.Fits(
		candidate.Problem,
		u.headroom.cap,
		candidate.Current,
	)

	if fits && !mayDrawMore(&c.Current.From) {
		return false
	}

	return !sameAhead(candidate.Current, candidate.newSteps(), candidate.Problem.From)
}

// draftFleet plans the fleet as it is in a transaction. It is nil if there are no caps. Cars
// go on discharging if nobody else lacks more by that.
func (s *Service) draftFleet(
	ctx context.Context,
	tx *store.Tx,
) (*fleet, error) {
	alone, err := s.draftAround(ctx, tx, nil)
	if err != nil || alone == nil {
		return nil, err
	}

	going := alone.mayGoOn()
	if len(going) == 0 {
		return alone, nil
	}

	around, err := s.draftAround(ctx, tx, going)
	if err != nil {
		return nil, err
	}

	if around.serves(alone) {
		return around, nil
	}

	return alone, nil
}

// mayGoOn finds the members that may go on by their schedules in force, by which they
// discharge.
func (f *fleet) mayGoOn() map[flex.AssetID]bool {
	going := map[flex.AssetID]bool{}
	if len(f.Position) > 0 {
		return going
	}

	for i := range f.members {
		if m := &f.members[i]; m.mayGoOn() {
			going[m.Current.AssetID] = true
		}
	}

	return going
}

// mayGoOn reports whether a member discharges by its schedule in force, may do so still, and
// comes to what it needs by it.
func (m *member) mayGoOn() bool {
	given := dischargesAhead(&m.Current, m.From)
	if len(given) == 0 || m.fuseCar != nil || plannedAsOne(&m.Current.From) {
		return false
	}
	if !m.from.ChargeNow.Empty() || len(m.from.Closed) > 0 {
		return false
	}

	sum := int64(0)
	for _, s := range given {
		sum += int64(s.Limit) * int64(s.Len()/time.Second)
	}

	again := gridSide(storedSide(flex.WattHours(sum / 3600)))
	taken := effectOf(m.Car.Problem, charge.AssumedPrice(m.Prices), m.current()).energy

	return flex.WattHours(taken/3600)-again >= m.Need-dischargeSlack
}

// serves reports whether the members of a fleet meet as much of their needs as by another plan
// of it, with as little peak time, and keep the caps if they do so by that.
func (f *fleet) serves(than *fleet) bool {
	_, _, over := f.Exceeded()
	_, _, wasOver := than.Exceeded()
	if over && !wasOver {
		return false
	}

	own, other := f.served(nil), than.served(f.going)

	return own.lacks-own.slack <= other.lacks && own.peak-own.slack <= other.peak
}

// fleetOutcome is what the plans of a fleet come to, in watt-seconds.
type fleetOutcome struct {
	lacks, peak int64
	slack       int64 // how far two plans may differ that count as one
}

// served is what the members lack and take in peak time, but for some.
func (f *fleet) served(but map[flex.AssetID]bool) fleetOutcome {
	var o fleetOutcome
	assumed := charge.AssumedPrice(f.prices)

	for i := range f.members {
		m := &f.members[i]
		if but[m.Current.AssetID] {
			continue
		}

		w := effectOf(m.Car.Problem, assumed, m.steps())
		need := int64(m.Need) * 3600
		lacks := max(0, need-w.energy)
		slack := int64(m.Power)*int64(TurnSlack/time.Second) + need*SlackPercent/100

		o.lacks += lacks
		o.peak += w.peak
		o.slack += min(slack, max(lacks, w.peak))
	}

	return o
}

// dischargers are the cars of a fleet that may discharge.
func (f *fleet) dischargers() []flex.AssetID {
	var found []flex.AssetID
	for id := range f.going {
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
