package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// LockInstructions locks an organisation's instructions and caps against other changes.
func LockInstructions(ctx context.Context, tx *store.Tx) error {
	// Assets are planned between two statements, which may take long.
	if err := tx.MayPause(ctx, store.PlanPause); err != nil {
		return err
	}

	if err := tx.LockOrg(ctx); err != nil {
		return err
	}
	_, _, err := tx.LockCaps(ctx)

	return err
}

// call puts the schedules of called assets in force, and records the calls. It leaves out
// assets that were called for the same half-hours by another instruction since they were
// chosen, and those of sites that have had the calls that they agreed to since.
func (s *Service) call(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
	calls []callableAsset,
) error {
	mayNotCall, err := notCallableNow(ctx, tx, by)
	if err != nil {
		return err
	}

	var cars, batteries, heaters []*callableAsset
	for i := range calls {
		c := &calls[i]

		switch {
		case mayNotCall(c):
		case c.isBattery():
			batteries = append(batteries, c)
		case c.isHeater():
			heaters = append(heaters, c)
		default:
			cars = append(cars, c)
		}
	}

	if err := s.callCars(ctx, tx, by, cars); err != nil {
		return err
	}

	if err := s.callBatteries(ctx, tx, by, batteries); err != nil {
		return err
	}

	return callHeaters(ctx, tx, by, heaters)
}

// heatersIn returns the ids of the heaters among called assets.
func heatersIn(calls []callableAsset) []flex.AssetID {
	var heaters []flex.AssetID
	for i := range calls {
		if calls[i].isHeater() {
			heaters = append(heaters, calls[i].id)
		}
	}

	return heaters
}

// callCars is call for cars.
func (s *Service) callCars(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
	calls []*callableAsset,
) error {
	next := make([]store.Replacement, 0, len(calls))
	of := make([]*callableAsset, 0, len(calls))
	for _, c := range calls {
		r, ok := s.replacementFor(
			ctx,
			tx.Now(),
			c.ScheduledAsset,
			c.from,
			&c.offer.Problem,
			&c.offer.Plan,
		)

		if ok {
			next = append(next, r)
			of = append(of, c)
		}
	}

	if err := s.replaceInParts(ctx, tx, next); err != nil {
		return err
	}

	inForce, err := tx.JustCalled(ctx, carIDs(of))
	if err != nil {
		return fmt.Errorf("read which schedules are in force: %w", err)
	}

	// The expected steps are those that the main fuses permit. A car that an event has planned
	// since it was chosen is not called.
	records := make([]store.Called, 0, len(of))
	for i, c := range of {
		if inForce[c.id] {
			records = append(records, c.record(next[i].Next.Charging()))
		}
	}

	if err := tx.AddCalled(ctx, by.ID, records); err != nil {
		return fmt.Errorf("store the calls: %w", err)
	}

	return nil
}

// carIDs returns the ids of called cars.
func carIDs(calls []*callableAsset) []flex.AssetID {
	ids := make([]flex.AssetID, len(calls))
	for i, c := range calls {
		ids[i] = c.id
	}

	return ids
}

// record returns the record of a called car, with the schedule before the call and the one
// that is sent.
func (c *callableAsset) record(steps []flex.Step) store.Called {
	return store.Called{
		AssetID: c.Current.AssetID,
		SiteID:  c.SiteID,
		Power:   c.from.Power,
		Cost:    c.offer.Cost,
		Closed:  c.offer.Closed,
		Baseline: stepsWithin(c.Current.Steps, flex.Span{
			From: c.offer.Problem.From,
			To:   c.Current.End(),
		}),
		Expected: steps,
	}
}

// replacementFor returns the schedule that an instruction, or its end, requires; false if it
// breaks a rule of engine/check.
func (s *Service) replacementFor(
	ctx context.Context,
	now time.Time,
	at *store.ScheduledAsset,
	from store.PlanInputs,
	p *charge.Problem,
	plan *charge.Plan,
) (store.Replacement, bool) {
	decision := s.decide(ctx, at.Current.AssetID, &Candidate{
		Trigger:  ByEvent,
		Required: true,
		Now:      now,
		Current:  at.Current.Steps,
		Problem:  p,
		Plan:     plan,
	})

	schedule := store.Schedule{
		Cause: store.CauseCalled,
		From:  from,
		Value: store.Urgent,
	}

	schedule.Steps = plan.Steps

	return store.Replacement{ScheduledAsset: at, Next: schedule}, decision.Replace
}

// replaceInParts commits schedules, a limited number by each statement, and marks a fleet
// under caps to be planned as one at once.
func (s *Service) replaceInParts(
	ctx context.Context,
	tx *store.Tx,
	next []store.Replacement,
) error {
	if len(next) == 0 {
		return nil
	}

	ps, err := prices(ctx, tx, tx.Now())
	if err != nil {
		return err
	}

	for part := range slices.Chunk(next, replaceMax) {
		if _, err := s.replaceAll(ctx, tx, ps, part); err != nil {
			return err
		}
	}

	return tx.RecordCapsUsed(ctx, tx.Now())
}

// StopInstruction stops an instruction: the called assets return to the plan without it at
// once. Stopping one that is over or stopped already changes nothing and is no error.
func (s *Service) StopInstruction(
	ctx context.Context,
	org flex.OrgID,
	id flex.InstructionID,
	who string,
) (flex.Instruction, error) {
	var in flex.Instruction
	var released []flex.AssetID
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		released, err = s.stopWithin(ctx, tx, id, who)
		if err == nil {
			in, err = tx.Instruction(ctx, id)
		}

		return err
	})

	if err == nil {
		s.planMarked(ctx, org, released)
	}

	return in, err
}

// StopInstructions stops all active instructions of an organisation, and returns how many.
func (s *Service) StopInstructions(
	ctx context.Context,
	org flex.OrgID,
	who string,
) (int, error) {
	var n int
	var released []flex.AssetID
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := LockInstructions(ctx, tx); err != nil {
			return err
		}

		active, err := tx.ActiveInstructions(ctx)
		if err != nil {
			return err
		}

		n = len(active)
		released, err = s.stopAll(ctx, tx, active, who)
		tx.SetMadeRecord(n)

		return err
	})

	if err == nil {
		s.planMarked(ctx, org, released)
	}

	return n, err
}

// stopAll stops instructions, and then releases all assets that they call, so that each
// battery is planned once. It returns these assets.
func (s *Service) stopAll(
	ctx context.Context,
	tx *store.Tx,
	active []flex.Instruction,
	who string,
) ([]flex.AssetID, error) {
	assets := map[flex.AssetID]bool{}
	for i := range active {
		called, err := stopInstruction(ctx, tx, active[i].ID, who)
		if err != nil {
			return nil, err
		}

		for _, id := range called {
			assets[id] = true
		}
	}

	ordered := slices.SortedFunc(maps.Keys(assets), func(a, b flex.AssetID) int {
		return bytes.Compare(a[:], b[:])
	})

	return ordered, s.ReleaseWithin(ctx, tx, ordered)
}

// StopWithin stops an instruction within a transaction. The heaters that it called are planned
// by their job.
func (s *Service) StopWithin(
	ctx context.Context,
	tx *store.Tx,
	id flex.InstructionID,
	who string,
) error {
	_, err := s.stopWithin(ctx, tx, id, who)
	return err
}

// stopWithin is StopWithin, and returns the assets that the instruction called.
func (s *Service) stopWithin(
	ctx context.Context,
	tx *store.Tx,
	id flex.InstructionID,
	who string,
) ([]flex.AssetID, error) {
	if err := LockInstructions(ctx, tx); err != nil {
		return nil, err
	}

	assets, err := stopInstruction(ctx, tx, id, who)
	if err != nil {
		return nil, err
	}

	return assets, s.ReleaseWithin(ctx, tx, assets)
}

// stopInstruction stops an instruction if it is active, and returns the assets that it calls.
func stopInstruction(
	ctx context.Context,
	tx *store.Tx,
	id flex.InstructionID,
	who string,
) ([]flex.AssetID, error) {
	stopped, err := tx.StopInstruction(ctx, id, who)
	if err != nil || !stopped {
		return nil, err
	}

	called, err := tx.CalledBy(ctx, id)
	if err != nil {
		return nil, err
	}

	var assets []flex.AssetID
	for i := range called {
		if called[i].ReleasedAt.IsZero() {
			assets = append(assets, called[i].AssetID)
		}
	}

	return assets, nil
}

// ReleaseWithin plans assets again that an instruction no longer calls: the time that it
// closed is open again. Time that other instructions closed stays closed. Heaters are marked,
// and planned after the transaction.
func (s *Service) ReleaseWithin(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) error {
	if len(assets) == 0 {
		return nil
	}

	if err := s.releaseBatteries(ctx, tx, assets); err != nil {
		return err
	}

	if err := tx.MarkFreed(ctx, assets); err != nil {
		return fmt.Errorf("release heaters: %w", err)
	}

	return s.releaseCars(ctx, tx, assets)
}

// FollowInstructions compares what assets contribute to each active instruction with its
// target. If they fall short, others are called; if they contribute more than enough, some are
// released. It is safe to run twice, and on several machines at once.
func (s *Service) FollowInstructions(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).InstructedOrgs), s.FollowInstructionsOf)
}

// FollowInstructionsOf is FollowInstructions for one organisation.
func (s *Service) FollowInstructionsOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	return s.followEach(ctx, org, s.follow)
}

// LookAtInstructionsOf is FollowInstructionsOf for an advance of a sandbox clock, which calls
// it only if something has changed. It records each comparison, so that the result does not
// depend on how far the clock is advanced at once.
func (s *Service) LookAtInstructionsOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	return s.followEach(ctx, org, s.followAndRecord)
}

// followEach follows each active instruction of an organisation, and returns how many assets
// were called or released.
func (s *Service) followEach(
	ctx context.Context,
	org flex.OrgID,
	follow func(context.Context, flex.OrgID, *flex.Instruction) (int, error),
) (worker.Report, error) {
	var active []flex.Instruction
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		active, err = tx.ActiveInstructions(ctx)
		return err
	})

	var r worker.Report
	for k := 0; k < len(active) && ctx.Err() == nil; k++ {
		if active[k].Dispatched {
			continue // no others are called for a dispatch
		}

		n, failed := follow(ctx, org, &active[k]) // an error does not delay the others
		r.Count += n
		err = errors.Join(err, failed)
	}

	return r, err
}

// Intervals between the comparisons of what assets contribute to an instruction.
const (
	// InstructionInterval is the least time from a change of the called assets to the next
	// comparison.
	InstructionInterval = 4 * time.Second
	// InstructionRetry is the least time to the next comparison after one that found something
	// missing and no asset to call.
	InstructionRetry = 30 * time.Second
	// instructionRetryAfterHalt is the least time to the next comparison after one while
	// pushes were halted. That comparison is at most five seconds before the halt ends, so
	// chargers then have the time to accept the pushes that were delayed.
	instructionRetryAfterHalt = 5*time.Second + instruct.Patience
)

// follow compares an instruction with what assets contribute, unless it was compared a moment
// ago.
func (s *Service) follow(
	ctx context.Context,
	org flex.OrgID,
	in *flex.Instruction,
) (int, error) {
	c, err := s.correctionFrom(ctx, org, in, in.LookedAt.Add(InstructionInterval))
	if err != nil || c == nil {
		return 0, err
	}

	if c.halted {
		return 0, s.recordCompared(ctx, org, in, instructionRetryAfterHalt-InstructionInterval)
	}

	return s.applyCorrection(ctx, org, in, c)
}

// followAndRecord compares an instruction with what assets contribute, and records that it was
// compared.
func (s *Service) followAndRecord(
	ctx context.Context,
	org flex.OrgID,
	in *flex.Instruction,
) (int, error) {
	c, err := s.correctionFrom(ctx, org, in, time.Time{})
	if err != nil {
		return 0, err
	}

	if c != nil && !c.halted {
		return s.applyCorrection(ctx, org, in, c)
	}

	return 0, s.recordCompared(ctx, org, in, 0)
}

// recordCompared records that an instruction was compared, with a time ahead of now.
func (s *Service) recordCompared(
	ctx context.Context,
	org flex.OrgID,
	in *flex.Instruction,
	ahead time.Duration,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		_, err := tx.LookAtInstruction(ctx, in, tx.Now().Add(ahead))
		return err
	})
}

// correctionFrom compares an instruction on a snapshot with what assets contribute; before an
// instant it does not. It is nil if nothing is to be changed. While pushes are halted it
// returns only that: no charger could accept a call, and one asset after the other would be
// called.
func (s *Service) correctionFrom(
	ctx context.Context,
	org flex.OrgID,
	in *flex.Instruction,
	from time.Time,
) (*correction, error) {
	var c *correction
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		halted, err := tx.Halted(ctx, flex.ScheduleEndpoint)
		if err != nil {
			return err
		}

		if halted {
			c = &correction{halted: true}
			return nil
		}

		if !tx.Now().Before(from) {
			c, err = s.correctionFor(ctx, tx, in)
		}

		return err
	})

	return c, err
}

// applyCorrection calls and releases assets, and returns how many.
func (s *Service) applyCorrection(
	ctx context.Context,
	org flex.OrgID,
	in *flex.Instruction,
	c *correction,
) (int, error) {
	var changed int
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		changed, err = s.apply(ctx, tx, in, c)
		return err
	})

	if err == nil && changed > 0 {
		s.planMarked(ctx, org, append(heatersIn(c.call), c.release...))
	}

	return changed, err
}

// apply calls and releases assets, unless another process did so meanwhile or the instruction
// was stopped.
func (s *Service) apply(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
	c *correction,
) (int, error) {
	if err := LockInstructions(ctx, tx); err != nil {
		return 0, err
	}

	planned := tx.Now()
	changed := len(c.call) + len(c.release)
	if changed == 0 {
		planned = planned.Add(InstructionRetry - InstructionInterval)
	}

	mine, err := tx.LookAtInstruction(ctx, in, planned)
	if err != nil || !mine {
		return 0, err
	}

	if err := tx.NoteSpent(ctx, in.ID, c.spentSites, c.spent); err != nil {
		return 0, err
	}

	if err := tx.ReleaseCalled(ctx, in.ID, c.release); err != nil {
		return 0, err
	}

	if err := s.ReleaseWithin(ctx, tx, c.release); err != nil {
		return 0, err
	}

	return changed, s.call(ctx, tx, in, c.call)
}
