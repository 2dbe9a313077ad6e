package grid

import (
	"context"
	"slices"

	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// pastHeaters counts what tanks and heat pumps could have moved on past days into a history.
type pastHeaters struct {
	*learning
	all     bool
	only    map[flex.AssetID]callableHeater // those that count, unless all do
	counted map[flex.AssetID]bool
}

// callableHeater is what an instruction may ask of a heater.
type callableHeater struct {
	more bool // to draw more too
}

// readDevices counts the batteries, tanks and heat pumps of a scope.
func (l *learning) readDevices(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
	span flex.Span,
	all bool,
) error {
	err := l.readBatteries(
		ctx,
		tx,
		scope,
		span,
		all,
	)

	if err != nil {
		return err
	}

	return l.readHeaters(
		ctx,
		tx,
		scope,
		span,
		all,
	)
}

// readHeaters counts the tanks and heat pumps of a scope by their plans from day to day: all
// of them, or those that an instruction may call now.
func (l *learning) readHeaters(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
	span flex.Span,
	all bool,
) error {
	p := pastHeaters{
		learning: l,
		all:      all,
		counted:  map[flex.AssetID]bool{},
	}

	if !all {
		var err error
		p.only, err = callableHeaters(
			ctx,
			tx,
			scope,
			l.a.Day.Span(),
		)

		if err != nil || len(p.only) == 0 {
			return err
		}
	}

	err := tx.EachHeatDay(
		ctx,
		scope,
		span,
		p.ids(),
		p.add,
	)

	l.a.Heaters = len(p.counted)

	return err
}

// ids returns the heaters that count; none if all do.
func (p *pastHeaters) ids() []flex.AssetID {
	var ids []flex.AssetID
	for id := range p.only {
		ids = append(ids, id)
	}

	return ids
}

// callableHeaters returns the heaters that an instruction in a span may call and would
// consider.
func callableHeaters(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
	span flex.Span,
) (map[flex.AssetID]callableHeater, error) {
	found, err := tx.ScopeHeaters(
		ctx,
		scope,
		span,
		tx.Now(),
	)
	if err != nil {
		return nil, err
	}

	slices.SortStableFunc(found, func(a, b store.ScopeHeater) int {
		return a.Calls - b.Calls
	})

	caps, capped, err := tx.Caps(ctx)
	if err != nil {
		return nil, err
	}

	only := map[flex.AssetID]callableHeater{}
	for _, h := range found[:min(len(found), instruct.HeatersMax)] {
		only[h.Plan.AssetID] = callableHeater{more: true}
		if !capped {
			continue
		}

		group, err := tx.CapGroup(ctx, h.SiteID)
		if err != nil {
			return nil, err
		}

		path := caps.Tree().Path(group)
		only[h.Plan.AssetID] = callableHeater{more: !bindsIn(&caps, path, span)}
	}

	return only, nil
}

// bindsIn reports whether a cap or a limit of the fleet, or of one of the groups in path,
// restricts power at some time of a span.
func bindsIn(
	caps *store.CapsInForce,
	path []string,
	span flex.Span,
) bool {
	if caps.Fleet.Power != nil {
		return true
	}

	for i := range caps.Groups {
		g := &caps.Groups[i]
		if g.Power != nil && slices.Contains(path, g.Name) {
			return true
		}
	}

	return slices.ContainsFunc(caps.Limits, func(l flex.CapLimit) bool {
		return slices.Contains(path, l.Group) && !l.Span.Meet(span).Empty()
	})
}

// add counts a day of a heater. Days come in order.
func (p *pastHeaters) add(h *store.HeatDay) {
	known, callable := p.only[h.AssetID]
	if p.spent[h.AssetID] || !callable && !p.all {
		return
	}

	p.counted[h.AssetID] = true
	p.since(h.Day)
	day := pastHeater(h)
	if !known.more && !p.all {
		day.More = nil
	}

	p.history.AddHeater(h.Day, day)
}

// pastHeater returns a day of a heater in the form of the forecast.
func pastHeater(h *store.HeatDay) *forecast.HeaterDay {
	n := h.Day.Periods()
	d := &forecast.HeaterDay{
		Less: make([][]flex.WattHours, n),
		More: make([][]flex.WattHours, n),
	}

	for i := range n {
		moves := h.Moves[i+1]
		d.Less[i] = moves.Less
		d.More[i] = moves.More
	}

	return d
}
