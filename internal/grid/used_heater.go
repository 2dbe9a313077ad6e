package grid

import (
	"context"
	"maps"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// heatersUse is what tanks and heat pumps are expected to draw in a span.
type heatersUse struct {
	span  flex.Span
	noted map[flex.AssetID]map[flex.Period]bool // half-hours whose expectation was stored when they began
	found map[flex.AssetID]*deviceUse
}

// readHeaters counts what the tanks and heat pumps of a scope use in the span: as their meters
// measured it throughout, else as expected.
func (u *using) readHeaters(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
) error {
	all := heatersUse{
		span:  u.span,
		noted: map[flex.AssetID]map[flex.Period]bool{},
		found: map[flex.AssetID]*deviceUse{},
	}

	days := flex.Span{
		From: flex.DayAt(u.span.From).Start(),
		To:   u.span.To,
	}

	if err := tx.EachHeaterHalfHour(ctx, scope, days, all.half); err != nil {
		return err
	}

	plans, err := tx.ScopeHeaters(
		ctx,
		scope,
		u.span,
		u.now,
	)
	if err != nil {
		return err
	}

	for i := range plans {
		all.plan(&plans[i])
	}

	for id, h := range all.found {
		u.countExpected(id, h)
	}

	assets := slices.Collect(maps.Keys(all.found))
	u.NumPlugged += len(assets)
	for ids := range slices.Chunk(assets, usedChunk) {
		if err := u.measured(ctx, tx, ids, flex.HeatPower); err != nil {
			return err
		}
	}

	return nil
}

// of returns what one heater is expected to draw.
func (a *heatersUse) of(id flex.AssetID) *deviceUse {
	h := a.found[id]
	if h == nil {
		h = &deviceUse{}
		a.found[id] = h
	}

	return h
}

// half counts a half-hour whose expectation was stored when it began.
func (a *heatersUse) half(
	id flex.AssetID,
	at flex.Period,
	h store.HeatHalfHour,
) {
	seconds := int64(at.Span().Meet(a.span).Len() / time.Second)
	if seconds == 0 {
		return
	}

	if a.noted[id] == nil {
		a.noted[id] = map[flex.Period]bool{}
	}

	a.noted[id][at] = true
	use := a.of(id)
	use.seconds += seconds
	use.joules += seconds * 2 * int64(h.Expected)
}

// plan counts what the plan in force is expected to draw in the other half-hours.
func (a *heatersUse) plan(h *store.ScopeHeater) {
	id := h.Plan.AssetID
	covered := flex.Span{From: h.Plan.StoredAt, To: h.Plan.End()}.Meet(a.span)
	if covered.Empty() {
		return
	}

	use := a.of(id)
	draws := h.Draws()
	for at := flex.PeriodAt(covered.From); at.Start().Before(covered.To); at = at.Add(1) {
		part := at.Span().Meet(covered)
		if a.noted[id][at] {
			continue
		}

		use.seconds += int64(part.Len() / time.Second)
		for _, d := range draws {
			use.joules += int64(d.Limit) * int64(d.Meet(part).Len()/time.Second)
		}
	}
}
