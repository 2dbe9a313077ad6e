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
// What one of them covers or stores is not there for another. So each is planned beside what the others are planned to move, and
// those of a site are planned in one transaction, the one that lasts longest at full power first. A first pass, in which each
// regards only those before it, is followed by passes in which each regards all others. The pass by which the home pays least
// is put in force, so that unequal batteries do not keep a plan that only no single one of them can improve. The passes depend on
// nothing of earlier plans but what was sent: where nothing has changed, the same plans result.

const (
	// sitePasses is the most passes in which the batteries of a site are planned.
	sitePasses = 4
	// siteMinSaving is what a later pass must save to be put in force, in pence.
	siteMinSaving = 0.01
	// roundedBeside is how far rounding may leave what a battery covers or stores from what the home draws, in watt-hours.
	roundedBeside = 2
	// intoBattery is what a pass counts for each kWh that one battery gives while another one draws, in pence.
	intoBattery = 100
)

// siteBattery is a battery that is planned with the others of its site, and is locked.
type siteBattery struct {
	*store.Battery
	device home.Battery
	next   store.BatteryPlan // with the guess that it is made of
	ahead  homeAhead
	powers []flex.Watts // by the last pass, from the first half-hour of ahead on
}

// expectedBeside is what another battery of a site is expected to move, from a half-hour on.
type expectedBeside struct {
	id      flex.AssetID
	first   flex.Period
	powers  []flex.Watts
	without []flex.Watts // by a plan at fixed rates, without dispatches
}

// lockBeside locks a battery and the others of its site that are planned, in the order of their ids. The list is empty if the battery
// was deleted since it was found. Another one whose record cannot be read is left out: the meter counts it.
func lockBeside(
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

// planTogether plans batteries of a site that are locked. One that is alone, or of which too little is known, is planned by itself.
func (s *Service) planTogether(
	ctx context.Context,
	tx *store.Tx,
	all []*siteBattery,
	kept *capsKept,
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
	kept *capsKept,
) error {
	slices.SortStableFunc(all, func(a, b *siteBattery) int {
		return cmp.Compare(b.lasts(), a.lasts())
	})

	for _, b := range all {
		if err := s.readJoint(ctx, tx, b); err != nil {
			return fmt.Errorf("read what battery %v is planned on: %w", b.Asset.ID, err)
		}
	}

	before := bestPass(all)
	for i, b := range all {
		var later []expectedBeside
		for k, o := range all[i+1:] {
			later = append(later, o.expected(before[i+1+k]))
		}

		if err := s.planBeside(ctx, tx, b, later, kept); err != nil {
			return err
		}
	}

	return nil
}

// lasts is how many hours a battery lasts at full power.
func (b *siteBattery) lasts() float64 {
	return float64(b.device.Capacity) / float64(b.device.Power)
}

// readJoint reads what a battery is planned on in all passes.
func (s *Service) readJoint(
	ctx context.Context,
	tx *store.Tx,
	b *siteBattery,
) error {
	var err error
	b.next, err = s.readGuess(ctx, tx, b.Battery)
	if err != nil {
		return err
	}

	next := b.next
	now := flex.PeriodAt(tx.Now())
	b.ahead, err = s.situationOf(ctx, tx, b.Battery, &next, b.device, now, nil)
	if err != nil {
		return err
	}

	if err := b.ahead.readCalls(ctx, tx, b.Asset.ID); err != nil {
		return err
	}

	return b.ahead.readSent(ctx, tx, b.Battery)
}

// bestPass plans batteries of a site in passes, in their order, until nothing changes. It returns the powers before the best of
// these: by what each regards of those after it, that pass can be made again.
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

// planPass plans each battery beside what the others are now planned to do. It reports whether that changed anything.
func planPass(all []*siteBattery) bool {
	changed := false
	for _, b := range all {
		for _, o := range all {
			if o != b {
				b.ahead.meter.expect(o.expected(o.powers))
			}
		}

		b.ahead.regardOthers(false)
		_, powers, err := planModes(&b.Plan, b.device, b.ahead)
		if err != nil {
			powers = nil // no plan of it is put in force: others do not count on it
		}

		changed = changed || !slices.Equal(b.powers, powers)
		b.powers = powers
	}

	return changed
}

// expected is what others of the site expect of a battery by powers from now on.
func (b *siteBattery) expected(powers []flex.Watts) expectedBeside {
	e := expectedBeside{id: b.Asset.ID}
	if powers != nil {
		e.first = b.ahead.periods[0]
		e.powers = b.ahead.countedOn(e.first, powers, &b.Plan)
	}

	return e
}

// siteCost is what a home pays with its batteries as they are planned, in pence, with their wear and less the worth of what is left in
// them. All is at the rates of the first one. What one discharges into another counts beside that.
func siteCost(all []*siteBattery) float64 {
	pence := 0.0
	s := &all[0].ahead
	for i := range s.periods {
		net := float64(s.load[i] - s.roof[i] + s.cars[i])
		drawn, given := 0.0, 0.0
		for _, b := range all {
			if i < len(b.powers) {
				drawn += float64(max(0, b.powers[i])) / 2
				given += float64(max(0, -b.powers[i])) / 2
			}
		}

		net += drawn - given
		rate := s.rates.buy[i]
		if net < 0 {
			rate = s.rates.sell[i]
		}
		pence += (net*rate + min(drawn, given)*intoBattery) / 1000
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

// addExpected adds what another battery of the site is planned to move.
func (m *meter) addExpected(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
) error {
	now := flex.PeriodAt(tx.Now())
	s := homeAhead{periods: periodsTo(now, lastPlanned(tx).End())}
	if err := s.readCalls(ctx, tx, b.Asset.ID); err != nil {
		return err
	}
	if err := s.readSent(ctx, tx, b); err != nil {
		return err
	}

	m.others = append(m.others, expectedBeside{
		id:      b.Asset.ID,
		first:   now,
		powers:  s.countedOn(b.Plan.StoredAt, b.Plan.Powers, &b.Plan),
		without: s.countedOn(b.Plan.StoredAt, b.Plan.Without, &b.Plan),
	})

	return nil
}

// countedOn is what of a battery's powers from a half-hour on others of its site count on: nothing where it does not follow what it
// was sent. Where an instruction calls it, it is what the battery was to do without, so that they do not counter the
// instruction.
func (s *homeAhead) countedOn(
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

	return s.keepWithout(inForce, out)
}

// expect replaces what another battery of the site is expected to move.
func (m *meter) expect(e expectedBeside) {
	same := func(o expectedBeside) bool { return o.id == e.id }
	m.others = append(slices.DeleteFunc(m.others, same), e)
}

// movedBeside is what the other batteries of the site are expected to draw in a half-hour; negative where they give.
func (m *meter) movedBeside(p flex.Period, without bool) flex.WattHours {
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

// regardOthers has a battery planned beside what the other batteries of its site move, by their plans or by those without dispatches.
// Where the home draws, what they give beyond that goes into the grid: no battery stores it.
func (s *homeAhead) regardOthers(without bool) {
	s.beside = nil
	s.exported = nil
	s.charges = nil
	if s.meter == nil || len(s.meter.others) == 0 {
		return
	}

	s.beside = make([]flex.WattHours, len(s.periods))
	s.exported = make([]flex.WattHours, len(s.periods))
	s.charges = make([]bool, len(s.periods))
	for i, p := range s.periods {
		moved := s.meter.movedBeside(p, without)
		net := s.load[i] - s.roof[i] + s.cars[i]

		rounded := flex.WattHours(roundedBeside * len(s.meter.others))
		if net > 0 && moved < -net {
			s.exported[i] = -moved - net
			moved = -net
		} else if moved != 0 && max(moved+net, -moved-net) <= rounded {
			moved = -net
		}

		s.beside[i] = moved
		s.charges[i] = moved > rounded && moved+net > rounded
	}
}

// restBeside has a battery give nothing in the half-hours in which another one draws from the grid: it would discharge into that one. What is
// fixed from the first half-hour on stays.
func (s *homeAhead) restBeside(
	p *battery.ModeProblem,
	first int,
	fixed map[int]battery.Mode,
) {
	if s.beside == nil {
		return
	}

	p.Allowed = slices.Clone(p.Allowed) // around has made it
	for i := range s.periods {
		_, settled := fixed[first+i]
		if s.kept != nil && s.kept[i] {
			settled = true
		}

		if s.charges[i] && !settled {
			p.Allowed[i] &= battery.Modes(battery.ModeCharge, battery.ModeLock)
		}
	}
}

// coverBeside has a battery cover the home in the place of LOCK where others are planned to cover it wholly: by the plan that moves
// nothing, and if another one fails it serves the load.
func (s *homeAhead) coverBeside(p *battery.ModeProblem, modes []battery.Mode) {
	if s.beside == nil {
		return
	}

	for i, m := range modes {
		served := s.beside[i] < 0 && p.Load[i] == p.PV[i]
		may := p.Allowed == nil || p.Allowed[i].Has(battery.ModeSelfUse)
		if served && may && m == battery.ModeLock {
			modes[i] = battery.ModeSelfUse
		}
	}
}

// coversBeside says of past half-hours what a battery with others at its site was planned to cover and to store: its load and roof as
// its own plan counted them. Where the plan says nothing, they stay.
func coversBeside(
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

// hasBeside reports whether there are other batteries at a battery's site.
func hasBeside(ctx context.Context, tx *store.Tx, b *store.Battery) (bool, error) {
	ids, err := batteriesAt(ctx, tx, b.Asset.SiteID)

	return len(ids) > 1, err
}

// powersOf returns the power of each half-hour from what the battery holds after each, and at
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

// addJoint notes the batteries that were planned with the last one, and returns how many of them are new.
func (run *batteryRun) addJoint(planned map[flex.AssetID]bool) int {
	n := 0
	for _, other := range run.joint {
		if !planned[other] {
			planned[other] = true
			n++
		}
	}

	return n
}

// find looks for batteries by a query, at most a number of them.
func (run *batteryRun) find(
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

// bind has a problem keep to what instructions call the battery for, to what is fixed from the first half-hour on, and to what the
// others of its site charge.
func (s *homeAhead) bind(
	p *battery.ModeProblem,
	old *store.BatteryPlan,
	first int,
	fixed map[int]battery.Mode,
) {
	s.keep(p, old)
	fix(p, first, fixed)
	s.restBeside(p, first, fixed)
}

// guessedBeside is the load and the roof that a battery was planned on in past half-hours, with what others of its site did.
func guessedBeside(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	past []flex.Period,
) ([]flex.WattHours, []flex.WattHours, error) {
	load, roof := guessed(&b.Plan, past)
	beside, err := hasBeside(ctx, tx, b)
	if beside {
		coversBeside(&b.Plan, past, load, roof)
	}

	return load, roof, err
}

// addOther adds another battery of the site. Only a battery regards what it is planned to move. Of one whose record cannot be read
// nothing is expected, and it counts with its full power.
func (m *meter) addOther(
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
	m.discharge = append(m.discharge, always)
	always.waits = true
	m.may = append(m.may, always)

	return err
}

// movesAlways is a battery whose record cannot be read, as what was sent to it is not known: at any time, all that it can.
func movesAlways(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (draws, error) {
	asset, err := tx.Asset(ctx, id)
	if err != nil {
		return draws{}, fmt.Errorf("read a battery: %w", err)
	}

	b := store.Battery{Asset: asset}
	if asset.Model != "" {
		b.Model, err = tx.Model(ctx, asset.Model)
	}

	d := alwaysUpTo(b.Power(), tx.Now())
	d.power = b.Power()
	d.wired = b.Wiring()

	return d, err
}
