package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// lockInstructions has whoever changes an organisation's instructions, or its caps, wait for each
// other.
func lockInstructions(ctx context.Context, tx *store.Tx) error {
	if err := tx.LockOrg(ctx); err != nil {
		return err
	}
	_, _, err := tx.LockCaps(ctx)
	return err
}

// call puts the schedules of assets that are called in force, and keeps who they are. One that
// another instruction has called since they were chosen is left out.
func (d *Service) call(ctx context.Context, tx *store.Tx, id flex.InstructionID, calls []called) error {
	next := make([]store.Replacement, 0, len(calls))
	kept := make([]store.Called, 0, len(calls))
	busy, err := tx.CalledNow(ctx)
	if err != nil {
		return err
	}

	for i := range calls {
		c := &calls[i]
		r, ok := d.replacement(ctx, tx.Now(), c.Planned, c.from, &c.offer.Problem, &c.offer.Plan)
		if !ok || busy[c.Standing.AssetID] {
			continue
		}

		next = append(next, r)
		kept = append(kept, c.record(r.Next.Steps))
	}

	if err := tx.AddCalled(ctx, id, kept); err != nil {
		return fmt.Errorf("keep who is called: %w", err)
	}
	return replaceInParts(ctx, tx, next)
}

// record is an asset that is called, with what stood before and what is sent.
func (c *called) record(sent []flex.Step) store.Called {
	return store.Called{
		AssetID: c.Standing.AssetID, SiteID: c.SiteID, Power: c.from.Power, Cost: c.offer.Cost,
		Baseline: within(c.Standing.Steps, flex.Span{From: c.offer.Problem.From, To: c.Standing.End()}), Expected: sent,
	}
}

// replacement is the schedule that an instruction, or its end, gives an asset; false if it breaks
// a law.
func (d *Service) replacement(ctx context.Context, now time.Time, at *store.Planned, from store.Effective, p *charge.Problem, plan *charge.Plan) (r store.Replacement, ok bool) {
	decision := d.decide(ctx, at.Standing.AssetID, &Candidate{
		Ground: ByEvent, Required: true, Now: now, Current: at.Standing.Steps, Problem: p, Plan: plan,
	})
	s := store.Schedule{Cause: store.CauseCalled, From: from, Value: store.Urgent}
	s.Steps = plan.Steps
	return store.Replacement{Planned: at, Next: s}, decision.Replace
}

// replaceInParts commits schedules, so many by a statement, and has a fleet under caps planned
// together at once.
func replaceInParts(ctx context.Context, tx *store.Tx, next []store.Replacement) error {
	if len(next) == 0 {
		return nil
	}

	ps, err := prices(ctx, tx, tx.Now())
	if err != nil {
		return err
	}

	for part := range slices.Chunk(next, replaceMax) {
		if _, err := replaceAll(ctx, tx, ps, part); err != nil {
			return err
		}
	}

	return tx.CapsUsed(ctx, tx.Now())
}

// StopInstruction stops an instruction: who is called returns to the plan without it, at once. To
// stop one that is over or stopped already changes nothing, and is no failure.
func (d *Service) StopInstruction(ctx context.Context, org flex.OrgID, id flex.InstructionID, who string) (in store.Instruction, err error) {
	err = d.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := d.stop(ctx, tx, id, who); err != nil {
			return err
		}

		in, err = tx.Instruction(ctx, id)
		return err
	})
	return in, err
}

// StopInstructions stops all instructions of an organisation that are active, and returns how many.
func (d *Service) StopInstructions(ctx context.Context, org flex.OrgID, who string) (n int, err error) {
	err = d.DB.Write(ctx, org, func(tx *store.Tx) error {
		active, err := tx.ActiveInstructions(ctx)
		if err != nil {
			return err
		}

		n = len(active)
		for _, in := range active {
			if err := d.stop(ctx, tx, in.ID, who); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// stop stops an instruction within a transaction.
func (d *Service) stop(ctx context.Context, tx *store.Tx, id flex.InstructionID, who string) error {
	if err := lockInstructions(ctx, tx); err != nil {
		return err
	}

	stopped, err := tx.StopInstruction(ctx, id, who)
	if err != nil || !stopped {
		return err
	}

	called, err := tx.CalledBy(ctx, id)
	if err != nil {
		return err
	}

	var assets []flex.AssetID
	for _, c := range called {
		if c.ReleasedAt.IsZero() {
			assets = append(assets, c.AssetID)
		}
	}

	return d.release(ctx, tx, assets)
}

// release plans assets without the time that an instruction closed.
func (d *Service) release(ctx context.Context, tx *store.Tx, assets []flex.AssetID) error {
	found, err := tx.ClosedAssets(ctx, assets)
	if err != nil {
		return err
	}

	ps, err := prices(ctx, tx, tx.Now())
	if err != nil {
		return err
	}

	from := tx.Now().Truncate(time.Second)
	var s charge.Solver
	var next []store.Replacement
	for i := range found {
		p := &found[i]
		if !p.Standing.From.ReadyBy.After(from) {
			continue
		}

		e := inputsAt(p, from)
		e.Closed = nil
		e.Ramp = kept(e.Ramp, true) // many cars come back at once
		problem := problemOf(e, from, ps)
		plan := s.Solve(&problem)
		if r, ok := d.replacement(ctx, tx.Now(), p, e, &problem, &plan); ok {
			next = append(next, r)
		}
	}

	return replaceInParts(ctx, tx, next)
}

// FollowInstructions compares what every instruction that binds is brought with its target: what
// falls short is made up for by others, and where there is more than enough some are let go. It
// is safe to run twice and on several machines at once.
func (d *Service) FollowInstructions(ctx context.Context) (worker.Report, error) {
	var orgs []flex.OrgID
	err := d.DB.ReadAll(ctx, func(all *store.All) (err error) {
		orgs, err = all.InstructedOrgs(ctx)
		return err
	})

	var r worker.Report
	for i := 0; i < len(orgs) && err == nil; i++ {
		var of worker.Report
		of, err = d.FollowInstructionsOf(ctx, orgs[i])
		r.Did += of.Did
	}

	return r, err
}

// FollowInstructionsOf is FollowInstructions for one organisation.
func (d *Service) FollowInstructionsOf(ctx context.Context, org flex.OrgID) (r worker.Report, err error) {
	var active []store.Instruction
	err = d.DB.Read(ctx, org, func(tx *store.Tx) (err error) {
		active, err = tx.ActiveInstructions(ctx)
		return err
	})

	for k := 0; k < len(active) && err == nil; k++ {
		var n int
		n, err = d.follow(ctx, org, &active[k])
		r.Did += n
	}

	return r, err
}

// How often what an instruction is brought is looked at.
const (
	// InstructionRest is the least time from one change of who is called to the next look.
	InstructionRest = 4 * time.Second
	// InstructionTired is the same after a look that found something missing and nobody to call.
	InstructionTired = 30 * time.Second
)

// follow compares an instruction with what it is brought on a snapshot of the store, and changes
// who is called if that is to be. It returns how many assets were called or let go.
func (d *Service) follow(ctx context.Context, org flex.OrgID, in *store.Instruction) (changed int, err error) {
	var c *correction
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		if tx.Now().Before(in.LookedAt.Add(InstructionRest)) {
			return nil
		}

		c, err = correct(ctx, tx, in)
		return err
	})
	if err != nil || c == nil {
		return 0, err
	}

	err = d.DB.Write(ctx, org, func(tx *store.Tx) (err error) {
		changed, err = d.apply(ctx, tx, in, c)
		return err
	})
	return changed, err
}

// apply calls assets and lets some go, unless somebody was faster or the instruction was stopped.
func (d *Service) apply(ctx context.Context, tx *store.Tx, in *store.Instruction, c *correction) (changed int, err error) {
	if err := lockInstructions(ctx, tx); err != nil {
		return 0, err
	}

	looked := tx.Now()
	changed = len(c.call) + len(c.release)
	if changed == 0 {
		looked = looked.Add(InstructionTired - InstructionRest)
	}

	mine, err := tx.LookAtInstruction(ctx, in, looked)
	if err != nil || !mine {
		return 0, err
	}
	if err := tx.ReleaseCalled(ctx, in.ID, c.release); err != nil {
		return 0, err
	}
	if err := d.release(ctx, tx, c.release); err != nil {
		return 0, err
	}

	return changed, d.call(ctx, tx, in.ID, c.call)
}

// correction is who is to be called beside, or let go.
type correction struct {
	call    []called
	release []flex.AssetID
}

// looked is an instruction from now on, beside what it is brought.
type looked struct {
	*Preview // of the rest of its window, for who may be called beside
	scope    *scoped
	target   []charge.Joules
	assets   []flex.AssetID // who is called
	brings   []instruct.Candidate
	before   map[flex.AssetID]bool // who is called, or was let go
}

// readCalled reads an instruction's scope and who it calls, or called.
func readCalled(ctx context.Context, tx *store.Tx, in *store.Instruction) (s scoped, was []store.Called, err error) {
	s, err = readScope(ctx, tx, in.Scope)
	if err == nil {
		was, err = tx.CalledBy(ctx, in.ID)
	}
	return s, was, err
}

// look works out what each called asset brings from now on, and what is asked for.
func look(ctx context.Context, tx *store.Tx, in *store.Instruction) (*looked, error) {
	s, was, err := readCalled(ctx, tx, in)
	if err != nil {
		return nil, err
	}

	rest := *in
	rest.Span = orderOf(in, s.now.Truncate(time.Minute)).Window
	l := &looked{Preview: &Preview{Instruction: rest, At: s.now}, scope: &s, before: map[flex.AssetID]bool{}}
	slots := instruct.Slots(rest.Span)
	planned := s.drawn(slots)

	shares, err := meteredShares(ctx, tx, in, was)
	if err != nil {
		return nil, err
	}

	standing := s.byAsset()
	for i := range was {
		c := &was[i]
		l.before[c.AssetID] = true
		if !c.ReleasedAt.IsZero() {
			continue
		}

		change := changeOf(c, standing[c.AssetID], slots)
		for t := range slots {
			planned[t] += change[t] // as if it were not called
		}
		l.add(c, standing[c.AssetID], change, shares)
	}

	l.target = targetOf(&rest, planned)
	return l, nil
}

// byAsset are the assets of a scope by their ids.
func (s *scoped) byAsset() map[flex.AssetID]*store.Planned {
	standing := make(map[flex.AssetID]*store.Planned, len(s.planned))
	for i := range s.planned {
		standing[s.planned[i].Standing.AssetID] = &s.planned[i]
	}
	return standing
}

// add counts a called asset. One that is no more plugged in draws nothing; of another counts what
// it is known to follow.
func (l *looked) add(c *store.Called, at *store.Planned, change []charge.Joules, shares map[flex.AssetID]instruct.Percent) {
	if l.Change > 0 {
		for t := range change {
			change[t] = -change[t]
		}
	}

	b := instruct.Candidate{Cost: c.Cost, Quality: 100, Change: change}
	if at != nil {
		share, metered := shares[c.AssetID]
		b.Quality = instruct.Followed{Since: l.At.Sub(c.CalledAt), Accepted: at.Taken, Metered: metered, Share: share}.Counts()
	}

	l.assets, l.brings = append(l.assets, c.AssetID), append(l.brings, b)
}

// changeOf is what a called asset draws less in each slot by its schedule in force than by the
// one that stood before; without a schedule it draws nothing.
func changeOf(c *store.Called, at *store.Planned, slots []flex.Span) []charge.Joules {
	change := make([]charge.Joules, len(slots))
	for t, slot := range slots {
		change[t] = instruct.Drawn(c.Baseline, c.Power, slot)
		if at != nil {
			change[t] -= instruct.Drawn(at.Standing.Steps, at.Standing.From.Power, slot)
		}
	}
	return change
}

// correct says who is to be called beside where something is missing, or let go. It is nil where
// nothing is to be changed; without anybody, something is missing that nobody can bring.
func correct(ctx context.Context, tx *store.Tx, in *store.Instruction) (*correction, error) {
	l, err := look(ctx, tx, in)
	if err != nil {
		return nil, err
	}

	missing, short := instruct.Missing(l.target, l.brings)
	if !short {
		return l.spare(in), nil
	}
	if err := l.scope.readCallables(ctx, tx, in.Scope); err != nil {
		return nil, err
	}

	for t := range missing {
		missing[t] = max(0, missing[t])
		l.Slots = append(l.Slots, InstructedSlot{})
	}

	l.scope.planned = slices.DeleteFunc(l.scope.planned, func(p store.Planned) bool { return l.before[p.Standing.AssetID] })
	l.choose(l.scope, missing)
	return &correction{call: l.calls}, nil
}

// spare says who can be let go; nil for nobody.
func (l *looked) spare(in *store.Instruction) *correction {
	c := &correction{}
	_, release := instruct.Correct(l.target, l.brings, nil, !in.Unfair)
	for _, i := range release {
		c.release = append(c.release, l.assets[i])
	}

	if len(release) == 0 {
		return nil
	}
	return c
}

// meteredShares is how much of its change each called asset brought in the latest half-hour of an
// instruction that was metered, as far as one was since it was called.
func meteredShares(ctx context.Context, tx *store.Tx, in *store.Instruction, was []store.Called) (map[flex.AssetID]instruct.Percent, error) {
	shares := map[flex.AssetID]instruct.Percent{}
	last := flex.PeriodAt(tx.Now()).Add(-1)
	if last.Start().Before(in.From) {
		return shares, nil // no whole half-hour of it is over
	}

	metered, err := meteredOf(ctx, tx, was, in.Span)
	if err != nil {
		return nil, err
	}

	for _, c := range was {
		for p := last; !p.Start().Before(in.From) && !p.Start().Before(c.CalledAt); p = p.Add(-1) {
			e, ok := metered[c.AssetID][p]
			base := instruct.Drawn(c.Baseline, c.Power, p.Span())
			change := base - instruct.Drawn(c.Expected, c.Power, p.Span())
			if ok && change != 0 {
				shares[c.AssetID] = instruct.Percent(100 * (base - charge.Joules(e)*3600) / change)
				break
			}
		}
	}

	return shares, nil
}

// meteredOf is what the meters of called assets say of the half-hours of a span.
func meteredOf(ctx context.Context, tx *store.Tx, was []store.Called, span flex.Span) (map[flex.AssetID]map[flex.Period]flex.WattHours, error) {
	q := store.ReadingQuery{Labels: []flex.Label{flex.ChargerEnergy}}
	for _, c := range was {
		q.Assets = append(q.Assets, c.AssetID)
	}
	for day := flex.DayAt(span.From); day.Start().Before(span.To); day = day.Add(1) {
		q.Days = append(q.Days, day)
	}

	readings, err := tx.Readings(ctx, q)
	if err != nil {
		return nil, err
	}

	found := map[flex.AssetID]map[flex.Period]flex.WattHours{}
	for _, r := range readings {
		if found[r.AssetID] == nil {
			found[r.AssetID] = map[flex.Period]flex.WattHours{}
		}
		found[r.AssetID][flex.PeriodAt(r.From)] = flex.WattHours(r.Value / 1000) // from millionths of a kWh
	}
	return found, nil
}
