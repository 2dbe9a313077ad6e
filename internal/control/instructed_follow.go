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

// correction has the assets to call in addition, or to release.
type correction struct {
	call    []callableAsset
	release []flex.AssetID
	halted  bool // nothing is changed while pushes are halted
	// sites that could be called, but have had all the calls that they agreed to
	spentSites int
	spent      string
}

// remainingWindow is the rest of an instruction's window, with what the called assets
// contribute to it.
type remainingWindow struct {
	*Preview   // for assets that may be called in addition
	scope      *scopeAssets
	target     []charge.Joules
	rebound    *instruct.Rebound // the return of the called assets
	assets     []flex.AssetID    // the called assets
	candidates []instruct.Candidate
	// the same, without cars that have neither accepted their newest schedule nor been
	// metered: others that follow are not released because of them
	certain    []instruct.Candidate
	everCalled map[flex.AssetID]bool // assets that are called or were released
}

// readCalled reads an instruction's scope, and the assets that it calls or has called.
func readCalled(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) (scopeAssets, []store.Called, error) {
	s, err := readScope(ctx, tx, in)

	var called []store.Called
	if err == nil {
		called, err = tx.CalledBy(ctx, in.ID)
	}

	return s, called, err
}

// readRemaining computes what each called asset contributes from now on, and the target.
func readRemaining(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) (*remainingWindow, error) {
	s, called, err := readCalled(ctx, tx, in)
	if err != nil {
		return nil, err
	}

	// The target and what others can contribute are counted over the same time: in a half-hour
	// that is nearly over, nobody can contribute the part of the target that lies before now.
	rest := *in
	rest.Span = orderFrom(in, s.now).Window
	l := &remainingWindow{
		Preview:    &Preview{Instruction: rest, At: s.now},
		scope:      &s,
		everCalled: map[flex.AssetID]bool{},
	}

	slots := instruct.Slots(rest.Span)
	planned := s.plannedEnergy(slots)

	shares, err := meteredShares(ctx, tx, in, called)
	if err != nil {
		return nil, err
	}

	inForce := s.plannedByAsset()
	l.addAll(called, inForce, slots, planned, shares)
	l.target = targetOf(&rest, planned)
	l.rebound = reboundOf(in, slots, l.target)
	addReturning(l.rebound, called, inForce)

	return l, nil
}

// addAll counts the called assets, and records all that are or were called.
func (l *remainingWindow) addAll(
	called []store.Called,
	inForce map[flex.AssetID]*store.ScheduledAsset,
	slots []flex.Span,
	planned []charge.Joules,
	shares map[flex.AssetID]instruct.Percent,
) {
	devices := l.scope.devicesByAsset()
	for i := range called {
		c := &called[i]
		l.everCalled[c.AssetID] = true

		switch {
		case !c.ReleasedAt.IsZero():
		case c.Battery || c.Heater:
			l.addDevice(c, devices[c.AssetID], slots, planned, shares)
		default:
			l.addCar(c, inForce[c.AssetID], slots, planned, shares)
		}
	}
}

// addReturning adds the called assets to a rebound.
func addReturning(
	back *instruct.Rebound,
	called []store.Called,
	inForce map[flex.AssetID]*store.ScheduledAsset,
) {
	for i := range called {
		c := &called[i]
		at := inForce[c.AssetID]
		if at != nil && c.ReleasedAt.IsZero() {
			back.Add(at.Current.Charging(), c.Baseline, c.Power)
		}
	}
}

// plannedByAsset returns the scheduled cars of a scope by asset.
func (s *scopeAssets) plannedByAsset() map[flex.AssetID]*store.ScheduledAsset {
	inForce := make(map[flex.AssetID]*store.ScheduledAsset, len(s.planned))
	for i := range s.planned {
		inForce[s.planned[i].Current.AssetID] = &s.planned[i]
	}

	return inForce
}

// addCar counts a called car, and adds its contribution to planned, which is then as if it
// were not called. A car that is no longer plugged in draws nothing, and counts in full. Other
// cars count by their quality: how far they are known to follow.
func (l *remainingWindow) addCar(
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

	l.addCandidate(c, changeOf(c, at, slots), quality, planned)
	if !sure {
		l.certain[len(l.certain)-1].Quality = 0
	}
}

// addCandidate counts what a called asset draws less, and adds that to planned, which is then
// as if the asset were not called.
func (l *remainingWindow) addCandidate(
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
	candidate := instruct.Candidate{
		Cost:    c.Cost,
		Quality: quality,
		Change:  less,
	}
	l.candidates, l.certain = append(l.candidates, candidate), append(l.certain, candidate)
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

// correctionFor returns the assets to call in addition, if something is missing, or those to
// release. It is nil if nothing is to be changed. A correction without assets means that
// something is missing which nobody can contribute.
func (s *Service) correctionFor(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) (*correction, error) {
	l, err := readRemaining(ctx, tx, in)
	if err != nil {
		return nil, err
	}

	missing, short := instruct.Missing(l.target, l.candidates)
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

	l.excludeCalled()
	if err := s.choose(ctx, tx, l.Preview, l.scope, missing, l.rebound); err != nil {
		return nil, err
	}

	return &correction{
		call:       l.calls,
		spentSites: l.SpentSites,
		spent:      l.Spent,
	}, nil
}

// excludeCalled removes the assets that are or were called from the scope.
func (l *remainingWindow) excludeCalled() {
	l.scope.planned = slices.DeleteFunc(l.scope.planned, func(p store.ScheduledAsset) bool {
		return l.everCalled[p.Current.AssetID]
	})

	wasCalled := func(d device) bool { return l.everCalled[d.id] }
	l.scope.batteries = slices.DeleteFunc(l.scope.batteries, wasCalled)
	l.scope.heaters = slices.DeleteFunc(l.scope.heaters, wasCalled)
}

// release returns the assets that can be released; nil for none.
func (l *remainingWindow) release(in *flex.Instruction) *correction {
	c := &correction{}
	_, release := instruct.Correct(l.target, l.certain, nil, !in.Unfair)
	for _, i := range release {
		c.release = append(c.release, l.assets[i])
	}

	if len(release) == 0 {
		return nil
	}

	return c
}

// registerAge is the greatest age of register readings from which the present contribution
// of called assets is computed.
const registerAge = 15 * time.Minute

// registerDelay is how long after a call the register of an asset is first used.
const registerDelay = time.Minute

// meteredShares returns the percentage of its change that each called asset made recently: by
// its charger's register in the last quarter of an hour, or else in the latest metered
// half-hour of the instruction since its call.
func meteredShares(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
	called []store.Called,
) (map[flex.AssetID]instruct.Percent, error) {
	shares, err := halfHourShares(ctx, tx, in, called)
	if err != nil {
		return nil, err
	}

	now := tx.Now()
	marks, err := tx.CalledMarks(ctx, in.ID, flex.Span{
		From: flex.Later(in.From, now.Add(-registerAge)),
		To:   now,
	}, 0)
	if err != nil {
		return nil, err
	}

	for i := range called {
		c := &called[i]
		list := marks[c.AssetID]
		for len(list) > 0 && list[0].At.Before(c.CalledAt.Add(registerDelay)) {
			list = list[1:]
		}

		share, known := instruct.Share(list, c.Baseline, c.Expected, c.Power)
		if known {
			shares[c.AssetID] = share
		}
	}

	return shares, nil
}

// halfHourShares returns the percentage of its change that each called asset made in the
// latest metered half-hour of the instruction since its call.
func halfHourShares(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
	called []store.Called,
) (map[flex.AssetID]instruct.Percent, error) {
	shares := map[flex.AssetID]instruct.Percent{}
	last := flex.PeriodAt(tx.Now()).Add(-1)
	if last.Start().Before(in.From) {
		return shares, nil // no whole half-hour of it is over
	}

	metered, err := meteredOf(
		ctx,
		tx,
		called,
		flex.Span{From: in.From, To: last.End()},
	)
	if err != nil {
		return nil, err
	}

	for _, c := range called {
		for p := last; !p.Start().Before(in.From) && !p.Start().Before(c.CalledAt); p = p.Add(-1) {
			e, ok := metered[c.AssetID][p]
			base := drawnOf(&c, c.Baseline, p.Span())
			change := base - drawnOf(&c, c.Expected, p.Span())
			if ok && showsResponse(&c, change) {
				shares[c.AssetID] = instruct.Percent(100 * (base -
					charge.Joules(e)*3600) / change)
				break
			}
		}
	}

	return shares, nil
}

// showsResponse reports whether a half-hour with an expected change shows how far an asset
// follows. What a heater draws is only expected: if its change was small, the measured energy
// may differ by many times that.
func showsResponse(c *store.Called, change charge.Joules) bool {
	if c.Heater {
		return max(change, -change) >= charge.Joules(minWithdrawn)*charge.Joules(flex.HalfHour/time.Second)
	}

	return change != 0
}

// meteredOf returns the metered energies of called assets in the half-hours that a span
// touches.
func meteredOf(
	ctx context.Context,
	tx *store.Tx,
	called []store.Called,
	span flex.Span,
) (map[flex.AssetID]map[flex.Period]flex.WattHours, error) {
	q := halfHoursOf(
		called,
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
func halfHoursOf(called []store.Called, span flex.Span, labels ...flex.Label) store.ReadingQuery {
	q := store.ReadingQuery{Labels: labels}
	for _, c := range called {
		q.Assets = append(q.Assets, c.AssetID)
	}

	last := flex.PeriodAt(span.To.Add(-1))
	q.Within = flex.Span{From: flex.PeriodAt(span.From).Start(), To: last.End()}

	for day := flex.DayAt(q.Within.From); day.Start().Before(q.Within.To); day = day.Add(1) {
		q.Days = append(q.Days, day)
	}

	return q
}

// addRegistered adds the half-hours that only a charger's register gives, read at both ends,
// as settlement counts them. A register may count in large steps, so it is not used to find
// how far an asset follows.
func addRegistered(
	ctx context.Context,
	tx *store.Tx,
	called []store.Called,
	span flex.Span,
	metered map[flex.AssetID]map[flex.Period]flex.WattHours,
) error {
	readings, err := tx.Readings(ctx, halfHoursOf(called, span, flex.ChargerRegister))
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

// halfHoursBy returns the energies of half-hours by asset: those that a charger reports, and
// those computed from the power of a battery's inverter or a heater.
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

// drawnOf returns the energy of a called asset by some steps in a span; negative if a battery
// discharges.
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
