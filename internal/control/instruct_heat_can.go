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

// HeatersAhead calls each with what each tank and heat pump of a scope does in a number of
// half-hours from now on, and what it could. Those that an instruction would not look at, or
// that are not to be called, do as planned. It changes nothing. What a heat pump could do
// takes megabytes: it is not to be kept after the call.
func (s *Service) HeatersAhead(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
	halfHours int,
	left func(flex.AssetID) bool,
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

	can := heatersCan{
		Service: s,
		span:    span,
		look:    lookedHeaters(found, left),
	}

	can.caps, err = readBoundPower(ctx, tx)
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

// lookedHeaters are the heaters that an instruction would look at, but for those that are not
// to be called.
func lookedHeaters(
	found []store.ScopeHeater,
	left func(flex.AssetID) bool,
) map[flex.AssetID]bool {
	kind := calledKind{most: instruct.HeatersMax}
	for i := range found {
		if !left(found[i].Plan.AssetID) {
			kind.all = append(kind.all, deviceOfHeater(&found[i]))
		}
	}

	look := map[flex.AssetID]bool{}
	for _, d := range kind.considered() {
		look[d.id] = true
	}

	return look
}

// heatersCan reads what heaters can do in a span.
type heatersCan struct {
	*Service
	span flex.Span
	look map[flex.AssetID]bool
	caps boundPower
}

// read reads what one heater does, and what it can do if it is looked at.
func (c *heatersCan) read(
	ctx context.Context,
	tx *store.Tx,
	to *envelope.Heater,
	h *store.ScopeHeater,
) error {
	to.Planned = drawnAhead(h, c.span)
	if !c.look[h.Plan.AssetID] {
		return nil
	}

	if err := c.canDo(ctx, tx, to, h); err != nil {
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

// canDo works out what a heater may do, by the plan that it would be called with.
func (s *Service) canDo(
	ctx context.Context,
	tx *store.Tx,
	to *envelope.Heater,
	h *store.ScopeHeater,
) error {
	_, at, err := s.readToCall(
		ctx,
		tx,
		h.Plan.AssetID,
	)

	if err != nil || at == nil {
		return err
	}

	planned, may, ok := at.canDo(math.MaxInt)
	if ok {
		may.Bound()
		to.Planned, to.Paths = planned, may
	}

	return nil
}

// drawnAhead is what a heater draws by its plan in the half-hours of a span, in Wh.
func drawnAhead(
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
