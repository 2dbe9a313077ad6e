package control

import (
	"context"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// GridEvent is a time in which a device of a home draws energy from the grid by its plan, or
// exports it.
type GridEvent struct {
	flex.Span
	Export    bool
	ChangedAt time.Time // when the plan was made
}

// NextGridEvent returns the present event at a site, or else the next one, by the plans in
// force of its cars and batteries; false if nothing is planned. Of two that begin together it
// is the one that exports. A site of another organisation is NotFound.
func (s *Service) NextGridEvent(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) (next GridEvent, any bool, err error) {
	var ahead []GridEvent
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		assets, err := tx.AssetsOf(ctx, site)
		if err != nil {
			return err
		}

		for _, a := range assets {
			events, err := gridEvents(ctx, tx, a)
			if err != nil {
				return err
			}

			for _, e := range events {
				if e.To.After(tx.Now()) {
					ahead = append(ahead, e)
				}
			}
		}

		return nil
	})

	for i, e := range ahead {
		if i == 0 || e.precedes(next) {
			next = e
		}
	}

	return next, len(ahead) > 0, err
}

// precedes reports whether an event precedes another one.
func (e GridEvent) precedes(other GridEvent) bool {
	if !e.From.Equal(other.From) {
		return e.From.Before(other.From)
	}
	return e.Export && !other.Export
}

// gridEvents returns the events of an asset's plan; none without a plan.
func gridEvents(
	ctx context.Context,
	tx *store.Tx,
	a flex.Asset,
) ([]GridEvent, error) {
	var events []GridEvent
	var err error

	if a.Type.Charges() {
		events, err = carEvents(ctx, tx, a.ID)
	} else if a.Type == flex.Battery {
		events, err = batteryEvents(ctx, tx, a.ID)
	}

	kind := flex.KindOf(err)
	if kind == flex.NotFound || kind == flex.Forbidden {
		return nil, nil // nothing is plugged in, or flexd does not plan it
	}

	return events, err
}

func carEvents(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) ([]GridEvent, error) {
	s, err := inForce(ctx, tx, asset)

	var events []GridEvent
	for _, span := range openSpans(s.Charging()) {
		events = append(events, GridEvent{Span: span, ChangedAt: s.MadeAt})
	}

	return events, err
}

// batteryEvents returns the events of a battery's plan. It includes the last day, so that a
// present event has its beginning. Where an operator's dispatch replaces the plan, the event
// is that of the dispatch.
func batteryEvents(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) ([]GridEvent, error) {
	_, plan, err := batteryPlanAhead(ctx, tx, asset)
	if err != nil {
		return nil, err
	}

	now := flex.PeriodAt(tx.Now()).Start()
	planned := modeSpans(plan, flex.Span{
		From: now.AddDate(0, 0, -1),
		To:   now.AddDate(0, 0, 3),
	})

	spans, issued, err := applyDispatchModes(ctx, tx, asset, plan, planned)
	if err != nil {
		return nil, err
	}

	var events []GridEvent
	for _, s := range spans {
		if s.Mode == battery.ModeCharge || s.Mode == battery.ModeDischarge {
			events = append(events, GridEvent{
				s.Span,
				s.Mode == battery.ModeDischarge,
				flex.Later(changedAt(tx, plan), issued),
			})
		}
	}

	return events, nil
}
