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

// withdrawAtSite withdraws dispatched modes that exceed the limits of the site's connection,
// if these were changed since the plan was made. A changed forecast withdraws nothing: by the
// earlier forecast the dispatch was within the limits.
func withdrawAtSite(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	ahead *batteryInputs,
) error {
	exceeding := ahead.exceedingHalfHours(&b.Plan, b.Power())
	if len(exceeding) == 0 {
		return nil
	}

	changed, err := supplyChanged(ctx, tx, b.Asset.SiteID, b.Plan.PlannedAt)
	if err != nil || !changed {
		return err
	}

	for _, p := range exceeding {
		setMode(&b.Plan, p, battery.ModeLock)
		rest := p.Span()
		rest.From = flex.Later(rest.From, tx.Now().Truncate(time.Minute))
		if err := dispatchZero(ctx, tx, b.Asset.ID, next, rest); err != nil {
			return fmt.Errorf("take a dispatch back: %w", err)
		}
	}

	return nil
}

// exceedingHalfHours returns the half-hours that were dispatched by a plan and in which a
// battery of this power now exceeds the main fuse or the export limit. Half-hours of an
// operator's dispatch are left out.
func (s *batteryInputs) exceedingHalfHours(
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
		if !planned || s.isDispatched(i) {
			continue
		}

		out := mode == battery.ModeDischarge && s.meter.exceedsExport(p, power, s.load[i]-s.roof[i])
		in := mode == battery.ModeCharge && power > s.meter.headroom(p)
		if out || in {
			all = append(all, p)
		}
	}

	return all
}

// exceedsExport reports whether a battery that discharges at full power exceeds the export
// limit or a phase of the main fuse in a half-hour, together with the discharge of cars and
// other batteries. net is what the home is expected to draw less its solar power.
func (m *meter) exceedsExport(
	p flex.Period,
	power flex.Watts,
	net flex.WattHours,
) bool {
	exported := power + m.carDischarge(p) + sumOfMax(m.batteryDischarges, p)
	most := min(m.supply.Export, m.supply.Import) // a fuse carries no more in the other direction

	return exported-flex.Watts(2*net) > most || power > m.dischargeHeadroom(p, net)
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
