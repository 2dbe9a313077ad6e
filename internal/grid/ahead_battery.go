package grid

import (
	"context"
	"slices"

	"flexd/internal/engine/home"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// pastBatteries counts what batteries could have moved on past days into a history.
type pastBatteries struct {
	*learning
	only    map[flex.AssetID]bool // those that count; nil for all
	counted map[flex.AssetID]bool
}

// readBatteries counts the batteries of a scope by their plans from day to day: all of them,
// or those that an instruction may call now.
func (l *learning) readBatteries(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
	span flex.Span,
	all bool,
) error {
	p := pastBatteries{
		learning: l,
		counted:  map[flex.AssetID]bool{},
	}

	if !all {
		only, err := callableBatteries(
			ctx,
			tx,
			scope,
			l.a.Day.Span(),
		)
		if err != nil || len(only) == 0 {
			return err
		}

		p.only = only
	}

	err := tx.EachBatteryDay(
		ctx,
		scope,
		span,
		p.add,
	)

	l.a.Batteries = len(p.counted)

	return err
}

// callableBatteries returns the batteries that an instruction in a span may call and would
// consider; none without an enabled dispatch endpoint.
func callableBatteries(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
	span flex.Span,
) (map[flex.AssetID]bool, error) {
	_, listens, err := tx.EnabledEndpoint(ctx, flex.DispatchEndpoint)
	if err != nil || !listens {
		return nil, err
	}

	found, err := tx.ScopeBatteries(
		ctx,
		scope,
		span,
		tx.Now(),
	)
	if err != nil {
		return nil, err
	}

	slices.SortStableFunc(found, func(a, b store.ScopeBattery) int {
		return a.Calls - b.Calls
	})

	found = found[:min(len(found), instruct.BatteriesMax)]

	only := map[flex.AssetID]bool{}
	for i := range found {
		only[found[i].AssetID] = true
	}

	return only, nil
}

// add counts a day of a battery. Days come in order.
func (p *pastBatteries) add(b *store.BatteryDay) {
	id := b.AssetID
	if p.spent[id] {
		return
	}

	if p.only != nil && !p.only[id] {
		return
	}

	p.counted[id] = true
	p.since(b.Day)
	p.history.AddBattery(
		b.Day,
		pastBattery(b),
	)
}

// since has the history begin on a day or earlier.
func (l *learning) since(day flex.Day) {
	if l.history == nil {
		l.begin(day.Start())
		return
	}

	l.history.Since(day)
	l.a.Days = l.history.Days()
}

// pastBattery returns a day of a battery in the form of the forecast.
func pastBattery(b *store.BatteryDay) *forecast.BatteryDay {
	least, most := b.Usable()
	d := &forecast.BatteryDay{
		Power:      b.Power,
		Least:      least,
		Most:       most,
		Efficiency: home.Efficiency,
		HalfHours:  make([]forecast.BatteryHalf, b.Day.Periods()),
	}

	for _, h := range b.HalfHours {
		if h.Number < 1 || h.Number > len(d.HalfHours) {
			continue
		}

		// Of two the first counts.
		half := &d.HalfHours[h.Number-1]
		if half.Known {
			continue
		}

		*half = forecast.BatteryHalf{
			Known:      true,
			Stored:     h.Stored,
			Power:      h.Power,
			Charges:    h.May.Charges(),
			Discharges: h.May.Discharges(),
		}
	}

	return d
}
