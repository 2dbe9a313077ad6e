package control

import (
	"context"
	"errors"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// ADRDispatcher is the dispatcher of instructions that OpenADR events asked for.
const ADRDispatcher = "openadr"

// errOrderChanged rolls back a transaction because its order was withdrawn or carried out
// meanwhile.
var errOrderChanged = errors.New("the order does not wait any more")

// SendOrders carries out the orders of OpenADR events whose program is bound, and stops those
// that were withdrawn. It is safe to run twice, and on several machines at once.
func (s *Service) SendOrders(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(
		ctx,
		s.DB.OrgsBy((*store.All).OrgsWithADROrders),
		s.SendOrdersOf,
	)
}

// SendOrdersOf is SendOrders for one organisation.
func (s *Service) SendOrdersOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	var due []store.ADROrder
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		due, err = tx.DueADROrders(ctx)
		return err
	})

	var r worker.Report
	failed := err
	for i := 0; i < len(due) && ctx.Err() == nil; i++ {
		o := &due[i]
		err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
			if o.State == store.ADRWithdrawn {
				return s.stopOrder(ctx, tx, o)
			}
			return s.sendOrder(ctx, tx, o)
		})

		why, isRefused := flex.Refusal(err)
		if isRefused && o.State == store.ADRWaiting {
			err = s.refuseOrder(ctx, org, o, why)
		}

		if errors.Is(err, errOrderChanged) {
			err = nil
		}

		// It is tried again in the next run, and does not delay the others.
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		r.Count++
	}

	return r, failed
}

// stopOrder stops the instruction of an order that was withdrawn, or deletes its limit.
func (s *Service) stopOrder(
	ctx context.Context,
	tx *store.Tx,
	o *store.ADROrder,
) error {
	var err error
	if o.Instruction.IsZero() {
		err = dropLimit(ctx, tx, o)
	} else {
		err = s.StopWithin(ctx, tx, o.Instruction, ADRDispatcher)
	}
	if err != nil {
		return err
	}

	return tx.ADROrderAgain(ctx, o.ID, time.Time{})
}

// dropLimit deletes the limit that was made from an order, and marks the fleet to be planned
// again at once.
func dropLimit(ctx context.Context, tx *store.Tx, o *store.ADROrder) error {
	if err := LockInstructions(ctx, tx); err != nil {
		return err
	}
	if err := tx.DropOrderLimits(ctx, o.ID); err != nil {
		return err
	}

	return tx.CapsChanged(ctx)
}

// sendOrder makes an instruction or a limit from an order. The binding of the order's program
// says which.
func (s *Service) sendOrder(
	ctx context.Context,
	tx *store.Tx,
	o *store.ADROrder,
) error {
	if !o.To.After(tx.Now()) {
		return flex.Fail(flex.Malformed, "it was over before it could be sent")
	}

	// Locked so that the binding of the program does not change meanwhile.
	if err := LockInstructions(ctx, tx); err != nil {
		return err
	}

	bindings, err := tx.ADRBindings(ctx, o.Program)
	if err != nil {
		return err
	}
	if len(bindings) == 0 {
		return errOrderChanged
	}

	done := *o
	later := false
	if bindings[0].Kind.Limits() {
		err = s.limitBy(ctx, tx, &bindings[0], &done)
	} else {
		later, err = s.instructBy(ctx, tx, &bindings[0], &done)
	}
	if err != nil || later {
		return err
	}

	stillWaiting, err := tx.ADROrderDone(ctx, &done)
	if err == nil && !stillWaiting {
		err = errOrderChanged
	}

	return err
}

// instructBy makes an instruction from an order. later is true if the order ends further ahead
// than an instruction may; then it is tried again in time.
func (s *Service) instructBy(
	ctx context.Context,
	tx *store.Tx,
	b *flex.ADRBinding,
	o *store.ADROrder,
) (later bool, err error) {
	if o.Direction == flex.Export {
		return false, flex.Fail(
			flex.Malformed,
			"a limit of export is of a constraint group: bind its program with the kind limit",
		)
	}

	// An order that is too long is refused now, and not when it could be sent.
	rest := o.To.Sub(flex.Later(o.From, tx.Now()))
	if rest > InstructionLongest {
		return false, flex.Fail(
			flex.Malformed,
			"it lasts %s: an instruction lasts %s at most",
			flex.Lasting(rest),
			flex.Lasting(InstructionLongest),
		)
	}

	if at := o.To.Add(-InstructionAhead); at.After(tx.Now()) {
		return true, tx.ADROrderAgain(ctx, o.ID, at)
	}

	p, err := s.InstructWithin(ctx, tx, flex.Instruction{
		Span:    o.Span,
		Change:  o.Change,
		Limit:   o.Limit,
		Scope:   b.Scope,
		Service: b.Service,
		Price:   b.Price,
		Who:     ADRDispatcher,
		Reason:  "OpenADR event " + o.Event.String(),
	})
	if err != nil {
		return false, err
	}

	o.State, o.Instruction = store.ADRSent, p.ID

	return false, nil
}

// limitBy makes a limit of a constraint group from an order, and marks the fleet to be planned
// under it at once.
func (s *Service) limitBy(
	ctx context.Context,
	tx *store.Tx,
	b *flex.ADRBinding,
	o *store.ADROrder,
) error {
	if o.Limit == nil {
		return flex.Fail(
			flex.Malformed,
			"its program is bound for limits, and a change against the plan is none",
		)
	}

	if o.Direction == flex.Export && b.Kind == flex.ADRImportLimit {
		return flex.Fail(
			flex.Malformed,
			"its program is bound for limits of what is drawn, not of export: bind it with the kind limit",
		)
	}

	l := flex.CapLimit{
		Group:     b.Scope.Group,
		Span:      o.Span,
		Direction: o.Direction,
		Power:     *o.Limit,
		Source:    ADRDispatcher,
		Order:     o.ID,
	}

	if err := checkLimit(&l); err != nil {
		return err
	}
	if err := LockInstructions(ctx, tx); err != nil {
		return err
	}

	// A limit made here does not show that the link to the group's controller works: that was
	// recorded when the event arrived.
	if err := tx.CheckScope(ctx, flex.Scope{Group: l.Group}); err != nil {
		return err
	}
	if err := tx.AddCapLimits(ctx, []flex.CapLimit{l}); err != nil {
		return err
	}

	o.State = store.ADRLimited

	return tx.CapsChanged(ctx)
}

// refuseOrder stores why an order cannot be carried out.
func (s *Service) refuseOrder(
	ctx context.Context,
	org flex.OrgID,
	o *store.ADROrder,
	why *flex.Error,
) error {
	refused := *o
	refused.State, refused.Problem = store.ADRRefused, why.Error()
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		_, err := tx.ADROrderDone(ctx, &refused)
		return err
	})
}
