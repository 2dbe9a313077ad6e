package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// takeBackSite is takeBack for the limits of the site's own connection, if these were changed
// since the plan was made. A changed forecast takes nothing back: the dispatch was within the
// limits by the earlier one.
func takeBackSite(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	ahead *homeAhead,
) error {
	passing := ahead.passing(&b.Plan, b.Power())
	if len(passing) == 0 {
		return nil
	}

	changed, err := supplyChanged(ctx, tx, b.Asset.SiteID, b.Plan.PlannedAt)
	if err != nil || !changed {
		return err
	}

	for _, p := range passing {
		setMode(&b.Plan, p, battery.ModeLock)
		rest := p.Span()
		rest.From = flex.Later(rest.From, tx.Now().Truncate(time.Minute))
		if err := dispatchZero(ctx, tx, b.Asset.ID, next, rest); err != nil {
			return fmt.Errorf("take a dispatch back: %w", err)
		}
	}

	return nil
}

// passing returns the half-hours that were dispatched by a plan and in which a battery of some
// power now exceeds the main fuse or the export limit; without those of an operator's
// dispatch.
func (s *homeAhead) passing(
	plan *store.BatteryPlan,
	power flex.Watts,
) []flex.Period {
	if s.meter == nil || !s.meter.supply.Set {
		return nil
	}

	var all []flex.Period
	for i, p := range s.periods {
		if !p.Start().Before(plan.DispatchedTo) {
			break
		}

		mode, planned := modeAt(plan, p)
		if !planned || s.ordered(i) {
			continue
		}

		out := mode == battery.ModeDischarge && s.meter.passesOut(p, power, s.load[i]-s.roof[i])
		in := mode == battery.ModeCharge && power > s.meter.leaves(p)
		if out || in {
			all = append(all, p)
		}
	}

	return all
}

// passesOut reports whether a battery that discharges at full power in a half-hour in which
// the home is expected to draw net exceeds the export limit, or a phase of the main fuse,
// together with the discharge of cars and other batteries.
func (m *meter) passesOut(
	p flex.Period,
	power flex.Watts,
	net flex.WattHours,
) bool {
	exported := power + m.given(p) + mostDischarged(m.discharge, p)
	most := min(m.supply.Export, m.supply.Import) // a fuse carries no more in the other direction

	return exported-flex.Watts(2*net) > most || power > m.outLeft(p, net)
}

// supplyChanged reports whether the limits of a site's connection were changed since an
// instant.
func supplyChanged(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	since time.Time,
) (bool, error) {
	all, err := tx.Supplies(ctx, site)
	if err != nil {
		return false, fmt.Errorf("read the limits of the site's connection: %w", err)
	}

	return slices.ContainsFunc(all, func(r store.Recorded[flex.Supply]) bool {
		return !r.At.Before(since)
	}), nil
}
