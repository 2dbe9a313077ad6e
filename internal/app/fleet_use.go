package app

import (
	"bytes"
	"context"
	"slices"
	"time"

	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/grid"
)

// fleetUse returns the energy that a scope drew, or will draw, in each of some spans, for the
// reports of OpenADR events.
func (a *App) fleetUse(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
	spans []flex.Span,
) ([]adr.FleetUse, error) {
	longest := 1
	for _, span := range spans {
		longest = max(longest, halfHoursOf(span))
	}

	e, err := a.Grid.Envelope(
		ctx,
		org,
		scope,
		min(longest, grid.HalfHours),
	)
	if err != nil {
		return nil, err
	}

	uses := make([]adr.FleetUse, len(spans))
	var past []flex.Span
	for i, span := range spans {
		if span.To.After(e.At) {
			uses[i] = useAhead(e, span)
			continue
		}
		past = append(past, span)
	}

	used, err := a.Grid.Used(
		ctx,
		org,
		scope,
		past,
	)
	if err != nil {
		return nil, err
	}

	for i, span := range spans {
		if !span.To.After(e.At) {
			uses[i] = usePast(span, &used[0])
			used = used[1:]
		}
	}

	return uses, nil
}

// halfHoursOf returns the number of half-hours that a span touches.
func halfHoursOf(span flex.Span) int {
	return flex.PeriodAt(span.To.Add(-1)).Sub(flex.PeriodAt(span.From)) + 1
}

// usePast returns what was drawn, less what batteries discharged. It is missing if no asset
// has a reading or a schedule.
func usePast(
	span flex.Span,
	u *grid.Used,
) adr.FleetUse {
	use := adr.FleetUse{
		Span:    span,
		Energy:  u.Energy,
		Quality: adr.QualityEstimated,
	}

	switch {
	case u.NumMetered == u.NumPlugged && aligned(span):
		use.Quality = adr.QualityOK
	case u.NumPlugged > 0 && u.NumMetered+u.NumPlanned == 0:
		use.Quality = adr.QualityMissing
	}

	return use
}

// aligned reports whether a span consists of whole half-hours.
func aligned(span flex.Span) bool {
	return span == flex.Span{
		From: flex.PeriodAt(span.From).Start(),
		To:   flex.PeriodAt(span.To).Start(),
	}
}

// assetUse returns what each asset of a scope drew, or will draw, in each of some spans, by
// asset. Assets that were plugged in during none of them are left out.
func (a *App) assetUse(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
	spans []flex.Span,
) ([]adr.AssetUse, error) {
	used, err := a.Grid.UsedByAsset(
		ctx,
		org,
		scope,
		spans,
	)
	if err != nil {
		return nil, err
	}

	found := map[flex.AssetID]bool{}
	var all []adr.AssetUse
	for _, of := range used.Spans {
		for id := range of {
			if !found[id] {
				all = append(all, adr.AssetUse{Asset: id})
			}
			found[id] = true
		}
	}

	for n := range all {
		for i, span := range spans {
			u, plugged := used.Spans[i][all[n].Asset]
			use := useOf(span, u, plugged, span.To.After(used.At))
			all[n].Uses = append(all[n].Uses, use)
		}
	}

	slices.SortFunc(all, func(one, other adr.AssetUse) int {
		return bytes.Compare(one.Asset[:], other.Asset[:])
	})

	return all, nil
}

// useOf returns what one asset draws in a span; nothing if it is not plugged in.
func useOf(
	span flex.Span,
	u grid.AssetUse,
	plugged,
	ahead bool,
) adr.FleetUse {
	use := adr.FleetUse{
		Span:     span,
		IsFuture: ahead,
		Energy:   u.Energy,
		Quality:  adr.QualityEstimated,
	}

	switch {
	case !plugged && !ahead, u.Metered && aligned(span):
		use.Quality = adr.QualityOK
	case plugged && !u.Metered && !u.Planned:
		use.Quality = adr.QualityMissing
	}

	return use
}

// useAhead returns what is planned from now on, and what of it can be changed. For a span that
// is not a window of the envelope it is the proportional part of the window around it.
func useAhead(
	e *grid.Envelope,
	span flex.Span,
) adr.FleetUse {
	span.From = flex.Later(span.From, e.At)
	use := adr.FleetUse{
		Span:     span,
		IsFuture: true,
		Quality:  adr.QualityMissing,
	}

	around := windowAround(e, span)
	if around == nil {
		return use
	}

	use.Quality = adr.QualityOK
	if around.Span != span || e.Uncontrolled > 0 {
		use.Quality = adr.QualityEstimated
	}

	part := func(of flex.WattHours) flex.WattHours {
		seconds := int64(around.Len() / time.Second)
		return flex.WattHours(int64(of) * int64(span.Len()/time.Second) / max(1, seconds))
	}
	b, h := &around.Batteries, &around.Heaters
	use.Energy = part(around.Planned + b.Planned + h.Planned)
	use.Reducible = part(around.Planned - around.Least + b.Planned - b.Least + h.Planned - h.Least)
	use.More = part(around.Most - around.Planned + b.Most - b.Planned + h.Most - h.Planned)

	return use
}

// windowAround returns the shortest window of an envelope that contains a span; nil if there
// is none.
func windowAround(e *grid.Envelope, span flex.Span) *grid.Window {
	var around *grid.Window
	for i := range e.Windows {
		w := &e.Windows[i]
		covers := !w.From.After(span.From) && !w.To.Before(span.To)
		if covers && (around == nil || w.Len() < around.Len()) {
			around = w
		}
	}

	return around
}
