package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// correction is which assets are to be called in addition, or released.
type correction struct {
	call    []called
	release []flex.AssetID
	halted  bool // nothing is changed while no push is sent
	// sites that could be called, but have had all the calls they agreed to
	spentSites int
	spent      string
}

// remainder is an instruction from now on, and what assets contribute to it.
type remainder struct {
	*Preview // of the rest of its window, for assets that may be called in addition
	scope    *scoped
	target   []charge.Joules
	back     *instruct.Rebound // of the called assets
	assets   []flex.AssetID    // the called assets
	brings   []instruct.Candidate
	// the same, without cars that have neither accepted their newest schedule nor been
	// metered: others that follow are not released because of them
	sure   []instruct.Candidate
	before map[flex.AssetID]bool // assets that are called, or were released
}

// readCalled reads an instruction's scope, and the assets that it calls or has called.
func readCalled(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) (scoped, []store.Called, error) {
	s, err := readScope(ctx, tx, in)

	var was []store.Called
	if err == nil {
		was, err = tx.CalledBy(ctx, in.ID)
	}

	return s, was, err
}

// remainderOf computes what each called asset contributes from now on, and what is asked for.
func remainderOf(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) (*remainder, error) {
	s, was, err := readCalled(ctx, tx, in)
	if err != nil {
		return nil, err
	}

	// The target and what others can contribute are counted over the same time: in a half-hour
	// that is nearly over, nobody can contribute the part of the target that lies before now.
	rest := *in
	rest.Span = orderOf(in, s.now).Window
	l := &remainder{
		Preview: &Preview{Instruction: rest, At: s.now},
		scope:   &s,
		before:  map[flex.AssetID]bool{},
	}

	slots := instruct.Slots(rest.Span)
	planned := s.drawn(slots)

	shares, err := meteredShares(ctx, tx, in, was)
	if err != nil {
		return nil, err
	}

	inForce := s.plannedByAsset()
	l.addAll(was, inForce, slots, planned, shares)
	l.target = targetOf(&rest, planned)
	l.back = reboundOf(in, slots, l.target)
	addReturning(l.back, was, inForce)

	return l, nil
}

// addAll counts the called assets, and records which are or were called.
func (l *remainder) addAll(
	was []store.Called,
	inForce map[flex.AssetID]*store.ScheduledAsset,
	slots []flex.Span,
	planned []charge.Joules,
	shares map[flex.AssetID]instruct.Percent,
) {
	devices := l.scope.devicesByAsset()
	for i := range was {
		c := &was[i]
		l.before[c.AssetID] = true

		switch {
		case !c.ReleasedAt.IsZero():
		case c.Battery || c.Heater:
			l.addDevice(c, devices[c.AssetID], slots, planned, shares)
		default:
			l.add(c, inForce[c.AssetID], slots, planned, shares)
		}
	}
}

// addReturning adds the called assets to a rebound.
func addReturning(
	back *instruct.Rebound,
	was []store.Called,
	inForce map[flex.AssetID]*store.ScheduledAsset,
) {
	for i := range was {
		c := &was[i]
		at := inForce[c.AssetID]
		if at != nil && c.ReleasedAt.IsZero() {
			back.Add(at.Current.Charging(), c.Baseline, c.Power)
		}
	}
}

// plannedByAsset returns the scheduled cars of a scope by asset.
func (s *scoped) plannedByAsset() map[flex.AssetID]*store.ScheduledAsset {
	inForce := make(map[flex.AssetID]*store.ScheduledAsset, len(s.planned))
	for i := range s.planned {
		inForce[s.planned[i].Current.AssetID] = &s.planned[i]
	}

	return inForce
}

// add counts a called car, and what is planned in each slot as if it were not called. A car
// that is no longer plugged in draws nothing. For others their quality counts: how far they
// are known to follow.
func (l *remainder) add(
	c *store.Called,
	at *store.ScheduledAsset,
	slots []flex.Span,
	planned []charge.Joules,
	shares map[flex.AssetID]instruct.Percent,
) {
	quality, sure := instruct.Percent(100), true
	if at != nil {
		share, metered := shares[c.AssetID]
		sure = metered || at.Followed()
		quality = instruct.Followed{
			Since:    l.At.Sub(flex.Later(c.CalledAt, at.Current.Steps[0].From)), // a later plan counts from its beginning
			Accepted: at.Followed(),
			Metered:  metered,
			Share:    share,
		}.Counts()
	}

	l.bring(c, changeOf(c, at, slots), quality, planned)
	if !sure {
		l.sure[len(l.sure)-1].Quality = 0
	}
}

// bring counts what a called asset draws less, and what is planned as if it were not called.
func (l *remainder) bring(
	c *store.Called,
	less []charge.Joules,
	quality instruct.Percent,
	planned []charge.Joules,
) {
	for t := range less {
		planned[t] += less[t]
		if l.Change > 0 {
			less[t] = -less[t]
		}
	}

	l.assets = append(l.assets, c.AssetID)
	brings := instruct.Candidate{
		Cost:    c.Cost,
		Quality: quality,
		Change:  less,
	}
	l.brings, l.sure = append(l.brings, brings), append(l.sure, brings)
}

// changeOf returns what a called car draws less in each slot by its schedule in force than by
// the one before; without a schedule it draws nothing.
func changeOf(
	c *store.Called,
	at *store.ScheduledAsset,
	slots []flex.Span,
) []charge.Joules {
	change := make([]charge.Joules, len(slots))
	for t, slot := range slots {
		change[t] = instruct.Drawn(c.Baseline, c.Power, slot)
		if at != nil {
			change[t] -= instruct.Drawn(
				at.Current.Charging(),
				at.Current.From.Power,
				slot,
			)
		}
	}

	return change
}

// correct returns which assets are to be called in addition, if something is missing, or
// released. It is nil if nothing is to be changed. Without assets it says that something is
// missing which nobody can contribute.
func (s *Service) correct(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) (*correction, error) {
	l, err := remainderOf(ctx, tx, in)
	if err != nil {
		return nil, err
	}

	missing, short := instruct.Missing(l.target, l.brings)
	if !short {
		return l.release(in), nil
	}

	if err := l.scope.readCallables(ctx, tx, in); err != nil {
		return nil, err
	}

	for t := range missing {
		missing[t] = max(0, missing[t])
		l.Slots = append(l.Slots, InstructedSlot{})
	}

	l.leaveOutCalled()
	if err := s.choose(ctx, tx, l.Preview, l.scope, missing, l.back); err != nil {
		return nil, err
	}

	return &correction{
		call:       l.calls,
		spentSites: l.SpentSites,
		spent:      l.Spent,
	}, nil
}

// leaveOutCalled removes the assets that are or were called from the scope.
func (l *remainder) leaveOutCalled() {
	l.scope.planned = slices.DeleteFunc(l.scope.planned, func(p store.ScheduledAsset) bool {
		return l.before[p.Current.AssetID]
	})

	wasCalled := func(d device) bool { return l.before[d.id] }
	l.scope.batteries = slices.DeleteFunc(l.scope.batteries, wasCalled)
	l.scope.heaters = slices.DeleteFunc(l.scope.heaters, wasCalled)
}

// release returns the assets that can be released; nil for none.
func (l *remainder) release(in *flex.Instruction) *correction {
	c := &correction{}
	_, release := instruct.Correct(l.target, l.sure, nil, !in.Unfair)
	for _, i := range release {
		c.release = append(c.release, l.assets[i])
	}

	if len(release) == 0 {
		return nil
	}

	return c
}

// meteredLately is how far back registers are used for what called assets contribute now.
const meteredLately = 15 * time.Minute

// settled is how long after its call the register of an asset is first used.
const settled = time.Minute

// meteredShares returns how much of its change each called asset brought lately, in per cent:
// by its charger's register in the last quarter of an hour, else in the latest metered
// half-hour of the instruction since its call.
func meteredShares(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
	was []store.Called,
) (map[flex.AssetID]instruct.Percent, error) {
	shares, err := halfHourShares(ctx, tx, in, was)
	if err != nil {
		return nil, err
	}

	now := tx.Now()
	marks, err := tx.CalledMarks(ctx, in.ID, flex.Span{
		From: flex.Later(in.From, now.Add(-meteredLately)),
		To:   now,
	}, 0)
	if err != nil {
		return nil, err
	}

	for i := range was {
		c := &was[i]
		list := marks[c.AssetID]
		for len(list) > 0 && list[0].At.Before(c.CalledAt.Add(settled)) {
			list = list[1:]
		}

		share, known := instruct.Share(list, c.Baseline, c.Expected, c.Power)
		if known {
			shares[c.AssetID] = share
		}
	}

	return shares, nil
}

// halfHourShares returns how much of its change each called asset brought in the latest
// metered half-hour of the instruction since its call, in per cent.
func halfHourShares(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
	was []store.Called,
) (map[flex.AssetID]instruct.Percent, error) {
	shares := map[flex.AssetID]instruct.Percent{}
	last := flex.PeriodAt(tx.Now()).Add(-1)
	if last.Start().Before(in.From) {
		return shares, nil // no whole half-hour of it is over
	}

	metered, err := meteredOf(
		ctx,
		tx,
		was,
		flex.Span{From: in.From, To: last.End()},
	)
	if err != nil {
		return nil, err
	}

	for _, c := range was {
		for p := last; !p.Start().Before(in.From) && !p.Start().Before(c.CalledAt); p = p.Add(-1) {
			e, ok := metered[c.AssetID][p]
			base := drawnOf(&c, c.Baseline, p.Span())
			change := base - drawnOf(&c, c.Expected, p.Span())
			if ok && isEvidence(&c, change) {
				shares[c.AssetID] = instruct.Percent(100 * (base -
					charge.Joules(e)*3600) / change)
				break
			}
		}
	}

	return shares, nil
}

// isEvidence reports whether a half-hour in which an asset was to change by an energy shows
// how far it follows. For a heater the draw is only an expectation: where it was to change
// next to nothing, the measured draw differs by many times that.
func isEvidence(c *store.Called, change charge.Joules) bool {
	if c.Heater {
		return max(change, -change) >= charge.Joules(leastTakenBack)*charge.Joules(flex.HalfHour/time.Second)
	}

	return change != 0
}

// meteredOf returns the metered energies of called assets in the half-hours that a span
// touches.
func meteredOf(
	ctx context.Context,
	tx *store.Tx,
	was []store.Called,
	span flex.Span,
) (map[flex.AssetID]map[flex.Period]flex.WattHours, error) {
	q := halfHoursOf(
		was,
		span,
		flex.ChargerEnergy,
		flex.BatteryInverterPower,
		flex.HeatPower,
	)
	readings, err := tx.Readings(ctx, q)
	if err != nil {
		return nil, err
	}

	return halfHoursBy(readings), nil
}

// halfHoursOf returns the query for readings of called assets in the half-hours that a span
// touches.
func halfHoursOf(was []store.Called, span flex.Span, labels ...flex.Label) store.ReadingQuery {
	q := store.ReadingQuery{Labels: labels}
	for _, c := range was {
		q.Assets = append(q.Assets, c.AssetID)
	}

	last := flex.PeriodAt(span.To.Add(-1))
	q.Within = flex.Span{From: flex.PeriodAt(span.From).Start(), To: last.End()}

	for day := flex.DayAt(q.Within.From); day.Start().Before(q.Within.To); day = day.Add(1) {
		q.Days = append(q.Days, day)
	}

	return q
}

// addRegistered adds the half-hours that only a charger's register gives, as settlement counts
// them: it was read at both ends. A register may count in large steps, so it is not used for
// how far an asset follows.
func addRegistered(
	ctx context.Context,
	tx *store.Tx,
	was []store.Called,
	span flex.Span,
	metered map[flex.AssetID]map[flex.Period]flex.WattHours,
) error {
	readings, err := tx.Readings(ctx, halfHoursOf(was, span, flex.ChargerRegister))
	if err != nil {
		return err
	}

	for id, own := range readingsByAsset(readings) {
		known := metered[id]
		if known == nil {
			known = map[flex.Period]flex.WattHours{}
			metered[id] = known
		}

		for p, e := range seriesOf(settle.HalfHours(settle.Asset, own)) {
			if _, is := known[p]; !is {
				known[p] = e
			}
		}
	}

	return nil
}

// halfHoursBy returns the energies of half-hours that readings give: a charger's own, and
// those from the power of a battery's inverter or a heater.
func halfHoursBy(readings []flex.Reading) map[flex.AssetID]map[flex.Period]flex.WattHours {
	found := map[flex.AssetID]map[flex.Period]flex.WattHours{}
	powers := map[flex.AssetID][]flex.Reading{}
	for _, r := range readings {
		if r.Label == flex.BatteryInverterPower || r.Label == flex.HeatPower {
			powers[r.AssetID] = append(powers[r.AssetID], r)
			continue
		}

		if found[r.AssetID] == nil {
			found[r.AssetID] = map[flex.Period]flex.WattHours{}
		}

		found[r.AssetID][flex.PeriodAt(r.From)] = flex.WattHours(
			r.Value / 1000,
		) // from millionths of a kWh
	}

	for id, own := range powers {
		found[id] = energies(own, own[0].Label)
	}

	return found
}

// drawnOf returns what a called asset draws by some steps in a span; negative if a battery
// gives.
func drawnOf(
	c *store.Called,
	steps []flex.Step,
	span flex.Span,
) charge.Joules {
	if c.Battery {
		return instruct.Moved(steps, c.Power, span)
	}

	return instruct.Drawn(steps, c.Power, span)
}
