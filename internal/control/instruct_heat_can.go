package control

import (
	"context"
	"fmt"
	"math"

	"flexd/internal/engine/envelope"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// HeatersAhead calls each with the plan and the possible draws of each tank and heat pump of a
// scope, over a number of half-hours from now on. Heaters for which an instruction would
// compute no offer, or for which left is true, have only a plan. Nothing is changed. The
// possible draws of a heat pump take megabytes, so each should not retain its argument.
func (s *Service) HeatersAhead(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
	halfHours int,
	remaining func(flex.AssetID) bool,
	each func(*envelope.Heater),
) error {
	first := flex.PeriodAt(tx.Now())
	span := flex.Span{
		From: tx.Now(),
		To:   first.Add(halfHours).Start(),
	}

	found, err := tx.ScopeHeaters(
		ctx,
		scope,
		span,
		tx.Now(),
	)

	if err != nil || len(found) == 0 {
		return err
	}

	can := heaterReader{
		Service:    s,
		span:       span,
		considered: consideredHeaters(found, remaining),
	}

	can.caps, err = readCapLimits(ctx, tx)
	if err != nil {
		return err
	}

	for i := range found {
		var one envelope.Heater
		if err := can.read(ctx, tx, &one, &found[i]); err != nil {
			return fmt.Errorf("look at heater %v: %w", found[i].Plan.AssetID, err)
		}

		each(&one)
	}

	return nil
}

// consideredHeaters returns the heaters for which an instruction would compute an offer,
// except those for which left is true.
func consideredHeaters(
	found []store.ScopeHeater,
	remaining func(flex.AssetID) bool,
) map[flex.AssetID]bool {
	kind := callableKind{limit: instruct.HeatersMax}
	for i := range found {
		if !remaining(found[i].Plan.AssetID) {
			kind.all = append(kind.all, deviceOfHeater(&found[i]))
		}
	}

	look := map[flex.AssetID]bool{}
	for _, d := range kind.considered() {
		look[d.id] = true
	}

	return look
}

// heaterReader reads the plans and the possible draws of heaters in a span.
type heaterReader struct {
	*Service
	span       flex.Span
	considered map[flex.AssetID]bool
	caps       capLimits
}

// read reads one heater's plan, and its possible draws if it is considered.
func (c *heaterReader) read(
	ctx context.Context,
	tx *store.Tx,
	to *envelope.Heater,
	h *store.ScopeHeater,
) error {
	to.Planned = plannedDraw(h, c.span)
	if !c.considered[h.Plan.AssetID] {
		return nil
	}

	if err := c.readPossibleDraws(ctx, tx, to, h); err != nil {
		return err
	}

	var err error
	to.Capped, err = c.caps.halfHours(
		ctx,
		tx,
		h.SiteID,
		c.span,
	)

	return err
}

// readPossibleDraws reads the possible draws of a heater with its plan.
func (s *Service) readPossibleDraws(
	ctx context.Context,
	tx *store.Tx,
	to *envelope.Heater,
	h *store.ScopeHeater,
) error {
	_, at, err := s.readCallable(
		ctx,
		tx,
		h.Plan.AssetID,
	)

	if err != nil || at == nil {
		return err
	}

	planned, may, ok := at.possibleDraws(math.MaxInt)
	if ok {
		may.Bound()
		to.Planned, to.Paths = planned, may
	}

	return nil
}

// plannedDraw returns the energy that a heater draws by its plan in each half-hour of a span,
// in Wh.
func plannedDraw(
	h *store.ScopeHeater,
	span flex.Span,
) []float64 {
	steps := h.Draws()
	var all []float64
	for _, p := range periodsTo(flex.PeriodAt(span.From), span.To) {
		drawn := instruct.Moved(
			steps,
			h.Plan.Power,
			p.Span().Meet(span),
		)

		all = append(all, float64(drawn)/3600)
	}

	return all
}
