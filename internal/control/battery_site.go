package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Several batteries of a site.
//
// The load that one of them covers, and the surplus that it stores, is not available to
// another. So each is planned with what the others are planned to do, and those of a site are
// planned in one transaction, the one that lasts longest at full power first. In a first pass
// each takes only those before it into account, and in the following passes all others. The
// pass with the lowest cost for the home is put in force, because passes can end in a plan
// that no single battery can improve on its own. The passes depend on earlier plans only by
// what was already sent: if nothing has changed, the same plans result.

const (
	// sitePasses is the greatest number of passes in which the batteries of a site are
	// planned.
	sitePasses = 4
	// siteMinSaving is what a later pass must save to be put in force, in pence.
	siteMinSaving = 0.01
	// roundingTolerance is by how many watt-hours, due to rounding, what a battery covers or
	// stores may differ from what the home draws.
	roundingTolerance = 2
	// exchangePenalty is the cost that a pass counts for each kWh that one battery discharges
	// while another one charges, in pence.
	exchangePenalty = 100
)

// siteBattery is a locked battery that is planned with the others of its site.
type siteBattery struct {
	*store.Battery
	device home.Battery
	next   store.BatteryPlan // with the forecast that it is made with
	ahead  batteryInputs
	powers []flex.Watts // by the last pass, from the first half-hour of ahead on
}

// expectedPowers is what another battery of a site is expected to do, from a half-hour on.
type expectedPowers struct {
	id      flex.AssetID
	first   flex.Period
	powers  []flex.Watts
	without []flex.Watts // by a plan at fixed rates, without dispatches
}

// lockWithOthers locks a battery and the other planned batteries of its site, in the order of
// their ids. The list is empty if the battery was deleted since it was found. Another one whose
// record cannot be read is left out: the meter counts it.
func lockWithOthers(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (*siteBattery, []*siteBattery, error) {
	var own *siteBattery
	var all []*siteBattery
	asset, err := tx.Asset(ctx, id)
	if flex.KindOf(err) == flex.NotFound {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}

	ids, err := batteriesAt(ctx, tx, asset.SiteID)
	if err != nil {
		return nil, nil, err
	}

	for _, at := range ids {
		b, device, err := lockBattery(ctx, tx, at)
		if at != id && errors.Is(err, store.ErrUnreadable) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if b == nil {
			continue
		}

		found := &siteBattery{Battery: b, device: device}
		if at == id {
			own = found
		}
		if at == id || isPlanned(b) {
			all = append(all, found)
		}
	}

	if own == nil {
		return nil, nil, nil
	}

	return own, all, nil
}

// planTogether plans locked batteries of a site. A battery that has no others, or of which too
// little is known, is planned on its own.
func (s *Service) planTogether(
	ctx context.Context,
	tx *store.Tx,
	all []*siteBattery,
	kept *headroomCache,
) error {
	var joint []*siteBattery
	for _, b := range all {
		if isPlanned(b.Battery) {
			joint = append(joint, b)
			continue
		}

		if err := s.planLocked(ctx, tx, b.Battery, b.device, kept); err != nil {
			return err
		}
	}

	switch len(joint) {
	case 0:
		return nil
	case 1:
		return s.planLocked(ctx, tx, joint[0].Battery, joint[0].device, kept)
	}

	return s.planJointly(ctx, tx, joint, kept)
}

// planJointly plans several batteries of a site, and puts the best of the passes in force.
func (s *Service) planJointly(
	ctx context.Context,
	tx *store.Tx,
	all []*siteBattery,
	kept *headroomCache,
) error {
	slices.SortStableFunc(all, func(a, b *siteBattery) int {
		return cmp.Compare(b.hoursAtFullPower(), a.hoursAtFullPower())
	})

	for _, b := range all {
		if err := s.readJoint(ctx, tx, b); err != nil {
			return fmt.Errorf("read what battery %v is planned on: %w", b.Asset.ID, err)
		}
	}

	before := bestPass(all)
	for i, b := range all {
		var later []expectedPowers
		for k, o := range all[i+1:] {
			later = append(later, o.expected(before[i+1+k]))
		}

		if err := s.planWithOthers(ctx, tx, b, later, kept); err != nil {
			return err
		}
	}

	return nil
}

// hoursAtFullPower returns how many hours a battery can discharge at full power.
func (b *siteBattery) hoursAtFullPower() float64 {
	return float64(b.device.Capacity) / float64(b.device.Power)
}

// readJoint reads the inputs of a battery's plan for all passes.
func (s *Service) readJoint(
	ctx context.Context,
	tx *store.Tx,
	b *siteBattery,
) error {
	var err error
	b.next, err = s.readForecast(ctx, tx, b.Battery)
	if err != nil {
		return err
	}

	next := b.next
	now := flex.PeriodAt(tx.Now())
	b.ahead, err = s.readBatteryInputs(ctx, tx, b.Battery, &next, b.device, now, nil)
	if err != nil {
		return err
	}

	if err := b.ahead.readCalls(ctx, tx, b.Asset.ID); err != nil {
		return err
	}

	return b.ahead.readOwnDispatches(ctx, tx, b.Battery)
}

// bestPass plans batteries of a site in passes, in their order, until nothing changes. It
// returns the powers from before the best pass, from which that pass can be repeated.
func bestPass(all []*siteBattery) [][]flex.Watts {
	var best [][]flex.Watts
	least := math.Inf(1)
	for range sitePasses {
		before := make([][]flex.Watts, len(all))
		for i, b := range all {
			before[i] = b.powers
		}

		changed := planPass(all)
		if pence := siteCost(all); best == nil || pence < least-siteMinSaving {
			best, least = before, pence
		}
		if !changed {
			break
		}
	}

	return best
}

// planPass plans each battery with what the others are now planned to do, and reports whether
// that changed anything.
func planPass(all []*siteBattery) bool {
	changed := false
	for _, b := range all {
		for _, o := range all {
			if o != b {
				b.ahead.meter.setExpected(o.expected(o.powers))
			}
		}

		b.ahead.includeOtherBatteries(false)
		_, powers, err := planModes(&b.Plan, b.device, b.ahead)
		if err != nil {
			powers = nil // no plan of it is put in force: others do not count on it
		}

		changed = changed || !slices.Equal(b.powers, powers)
		b.powers = powers
	}

	return changed
}

// expected returns what the other batteries of the site expect of a battery with some powers.
func (b *siteBattery) expected(powers []flex.Watts) expectedPowers {
	e := expectedPowers{id: b.Asset.ID}
	if powers != nil {
		e.first = b.ahead.periods[0]
		e.powers = b.ahead.reliablePowers(e.first, powers, &b.Plan)
	}

	return e
}

// siteCost is what a home pays with its batteries as planned, in pence, with wear and less the
// value of the energy left in them, by the rates of the first one. Energy that one discharges
// into another has an additional cost.
func siteCost(all []*siteBattery) float64 {
	pence := 0.0
	s := &all[0].ahead
	for i := range s.periods {
		net := float64(s.load[i] - s.roof[i] + s.cars[i])
		drawn, discharged := 0.0, 0.0
		for _, b := range all {
			if i < len(b.powers) {
				drawn += float64(max(0, b.powers[i])) / 2
				discharged += float64(max(0, -b.powers[i])) / 2
			}
		}

		net += drawn - discharged
		rate := s.rates.buy[i]
		if net < 0 {
			rate = s.rates.sell[i]
		}
		pence += (net*rate + min(drawn, discharged)*exchangePenalty) / 1000
	}

	for _, b := range all {
		for _, power := range b.powers {
			moved := float64(power) / 2000
			if power > 0 {
				pence -= s.rates.residual * moved * home.Efficiency
				continue
			}

			pence -= s.rates.residual*moved/home.Efficiency + b.ahead.wear*moved
		}
	}

	return pence
}

// addExpected adds what another battery of the site is planned to do.
func (m *meter) addExpected(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
) error {
	now := flex.PeriodAt(tx.Now())
	s := batteryInputs{periods: periodsTo(now, lastPlanned(tx).End())}
	if err := s.readCalls(ctx, tx, b.Asset.ID); err != nil {
		return err
	}
	if err := s.readOwnDispatches(ctx, tx, b); err != nil {
		return err
	}

	m.others = append(m.others, expectedPowers{
		id:      b.Asset.ID,
		first:   now,
		powers:  s.reliablePowers(b.Plan.StoredAt, b.Plan.Powers, &b.Plan),
		without: s.reliablePowers(b.Plan.StoredAt, b.Plan.Without, &b.Plan),
	})

	return nil
}

// reliablePowers returns the part of a battery's powers that the others of its site may rely
// on: none in half-hours in which it does not follow what it was sent. If an instruction calls
// it, they are its powers without the instruction, so that the others do not counteract it.
func (s *batteryInputs) reliablePowers(
	first flex.Period,
	powers []flex.Watts,
	inForce *store.BatteryPlan,
) []flex.Watts {
	out := make([]flex.Watts, len(s.periods))
	for i, p := range s.periods {
		k := p.Sub(first)
		if k >= 0 && k < len(powers) && !s.isRefused(i) {
			out[i] = powers[k]
		}
	}

	return s.keepBaselines(inForce, out)
}

// setExpected replaces what another battery of the site is expected to do.
func (m *meter) setExpected(e expectedPowers) {
	same := func(o expectedPowers) bool { return o.id == e.id }
	m.others = append(slices.DeleteFunc(m.others, same), e)
}

// otherBatteryEnergy returns the energy that the other batteries of the site are expected to
// draw in a half-hour; negative if they discharge.
func (m *meter) otherBatteryEnergy(p flex.Period, without bool) flex.WattHours {
	var sum flex.Watts
	for _, o := range m.others {
		powers := o.powers
		if without {
			powers = o.without
		}

		if k := p.Sub(o.first); k >= 0 && k < len(powers) {
			sum += powers[k]
		}
	}

	return flex.WattHours(sum / 2)
}

// includeOtherBatteries includes what the other batteries of the site do in a battery's
// inputs, by their plans or by those without dispatches. What they discharge beyond the home's
// load goes into the grid: no battery stores it.
func (s *batteryInputs) includeOtherBatteries(without bool) {
	s.otherBatteries = nil
	s.otherExport = nil
	s.otherDraws = nil
	if s.meter == nil || len(s.meter.others) == 0 {
		return
	}

	s.otherBatteries = make([]flex.WattHours, len(s.periods))
	s.otherExport = make([]flex.WattHours, len(s.periods))
	s.otherDraws = make([]bool, len(s.periods))
	for i, p := range s.periods {
		moved := s.meter.otherBatteryEnergy(p, without)
		net := s.load[i] - s.roof[i] + s.cars[i]

		rounded := flex.WattHours(roundingTolerance * len(s.meter.others))
		if net > 0 && moved < -net {
			s.otherExport[i] = -moved - net
			moved = -net
		} else if moved != 0 && max(moved+net, -moved-net) <= rounded {
			moved = -net
		}

		s.otherBatteries[i] = moved
		s.otherDraws[i] = moved > rounded && moved+net > rounded
	}
}

// avoidMutualCharge has a battery not discharge in half-hours in which another one draws from
// the grid, as it would discharge into that one. Fixed half-hours stay.
func (s *batteryInputs) avoidMutualCharge(
	p *battery.ModeProblem,
	first int,
	fixed map[int]battery.Mode,
) {
	if s.otherBatteries == nil {
		return
	}

	p.Allowed = slices.Clone(p.Allowed) // around has made it
	for i := range s.periods {
		_, settled := fixed[first+i]
		if s.fixed != nil && s.fixed[i] {
			settled = true
		}

		if s.otherDraws[i] && !settled {
			p.Allowed[i] &= battery.Modes(battery.ModeCharge, battery.ModeLock)
		}
	}
}

// coverInsteadOfLock replaces LOCK by a mode that covers the home where others are planned to
// cover it wholly. By the plan that moves nothing, and the battery supplies the load if
// another one fails.
func (s *batteryInputs) coverInsteadOfLock(p *battery.ModeProblem, modes []battery.Mode) {
	if s.otherBatteries == nil {
		return
	}

	for i, m := range modes {
		served := s.otherBatteries[i] < 0 && p.Load[i] == p.PV[i]
		may := p.Allowed == nil || p.Allowed[i].Has(battery.ModeSelfUse)
		if served && may && m == battery.ModeLock {
			modes[i] = battery.ModeSelfUse
		}
	}
}

// coveredShare returns what a battery with others at its site was planned to cover and to
// store in past half-hours: load and solar generation as its own plan counted them. They stay
// where the plan has nothing.
func coveredShare(
	p *store.BatteryPlan,
	past []flex.Period,
	load, roof []flex.WattHours,
) {
	for i, at := range past {
		k := at.Sub(p.StoredAt)
		if k >= 0 && k < len(p.Powers) {
			moved := flex.WattHours(p.Powers[k] / 2)
			load[i], roof[i] = max(0, -moved), max(0, moved)
		}
	}
}

// hasOtherBatteries reports whether there are other batteries at a battery's site.
func hasOtherBatteries(ctx context.Context, tx *store.Tx, b *store.Battery) (bool, error) {
	ids, err := batteriesAt(ctx, tx, b.Asset.SiteID)

	return len(ids) > 1, err
}

// powersOf returns the power of each half-hour from the stored energy after each, and at
// first.
func powersOf(levels []int, at int) []flex.Watts {
	powers := make([]flex.Watts, len(levels))
	for i, l := range levels {
		moved := float64(l - at)
		if moved > 0 {
			moved /= home.Efficiency
		} else {
			moved *= home.Efficiency
		}

		powers[i], at = flex.Watts(2*moved), l
	}

	return powers
}

func periodsTo(from flex.Period, to time.Time) []flex.Period {
	var ps []flex.Period
	for p := from; p.Start().Before(to); p = p.Add(1) {
		ps = append(ps, p)
	}
	return ps
}

// addJoint adds the batteries that were planned with the last one, and returns how many of
// them are new.
func (run *plannerRun) addJoint(planned map[flex.AssetID]bool) int {
	n := 0
	for _, other := range run.joint {
		if !planned[other] {
			planned[other] = true
			n++
		}
	}

	return n
}

// find reads batteries by a query, at most a number of them.
func (run *plannerRun) find(
	ctx context.Context,
	org flex.OrgID,
	most int,
	query func(*store.Tx, context.Context, int) ([]flex.AssetID, error),
) ([]flex.AssetID, error) {
	var found []flex.AssetID
	err := run.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		found, err = query(tx, ctx, most)
		return err
	})

	return found, err
}

// bindProblem adds to a problem the modes of instructions, those that are fixed from the first
// half-hour on, and the charging of the site's other batteries.
func (s *batteryInputs) bindProblem(
	p *battery.ModeProblem,
	old *store.BatteryPlan,
	first int,
	fixed map[int]battery.Mode,
) {
	s.fixCalledModes(p, old)
	fixModes(p, first, fixed)
	s.avoidMutualCharge(p, first, fixed)
}

// pastNetLoad returns the load and the solar generation that a battery was planned with in
// past half-hours, with what the others of its site did.
func pastNetLoad(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	past []flex.Period,
) ([]flex.WattHours, []flex.WattHours, error) {
	load, roof := parseForecast(&b.Plan, past)
	hasOthers, err := hasOtherBatteries(ctx, tx, b)
	if hasOthers {
		coveredShare(&b.Plan, past, load, roof)
	}

	return load, roof, err
}

// addOtherBattery adds another battery of the site. What it is planned to do only concerns
// batteries. Of one whose record cannot be read nothing is expected, and it counts with its
// full power.
func (m *meter) addOtherBattery(
	ctx context.Context,
	tx *store.Tx,
	own flex.AssetType,
	id flex.AssetID,
) error {
	o, err := tx.Battery(ctx, id)
	if errors.Is(err, store.ErrUnreadable) {
		return m.addUnread(ctx, tx, id)
	}
	if err == nil {
		err = m.addBattery(ctx, tx, &o)
	}
	if err != nil || own != flex.Battery || !isPlanned(&o) {
		return err
	}

	return m.addExpected(ctx, tx, &o)
}

// addUnread adds another battery of the site whose record cannot be read.
func (m *meter) addUnread(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	always, err := movesAlways(ctx, tx, id)
	m.batteryDischarges = append(m.batteryDischarges, always)
	always.movable = true
	m.possibleDraws = append(m.possibleDraws, always)

	return err
}

// movesAlways is a battery whose record cannot be read, as what was sent to it is not known: at any time, all that it can.
func movesAlways(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (loadBound, error) {
	asset, err := tx.Asset(ctx, id)
	if err != nil {
		return loadBound{}, fmt.Errorf("read a battery: %w", err)
	}

	b := store.Battery{Asset: asset}
	if asset.Model != "" {
		b.Model, err = tx.Model(ctx, asset.Model)
	}

	d := alwaysUpTo(b.Power(), tx.Now())
	d.power = b.Power()
	d.wiring = b.Wiring()

	return d, err
}
