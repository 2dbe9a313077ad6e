package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Tanks and heat pumps under caps.
//
// A controlled heater counts with its power in the windows that it was sent, and with nothing
// after them. Until its client has accepted the newest plan, it counts with the most of all
// plans that it may be following. It is planned around the other heaters (heat_caps.go), but
// not around later half-hours of cars and batteries, which have the remaining headroom.

// recountAfter is how long after a count a heater is counted again whose plan was not
// accepted then.
const recountAfter = 5 * time.Minute

// countedHeat returns what a heater counts with from an instant on.
func countedHeat(l *store.HeatLoad, now time.Time) store.CapPart {
	p := store.CapPart{
		AssetID: l.AssetID,
		Group:   l.Group,
		EventID: l.EventID,
		Steps:   l.Steps,
		Power:   l.Power,
	}

	for i := range p.Steps {
		p.Steps[i].Limit = min(p.Steps[i].Limit, l.Power)
	}

	if !l.Accepted && now.Before(l.Steps[len(l.Steps)-1].To) {
		p.Until = now.Add(recountAfter)
	}

	return p
}

// reserveHeaters reserves what all heaters may draw, in each of some profiles.
func (k *orderedCaps) reserveHeaters(
	ctx context.Context,
	tx *store.Tx,
	into ...*headroom.Profile,
) error {
	loads, err := tx.HeatLoads(ctx)
	if err != nil {
		return fmt.Errorf("read what tanks and heat pumps draw: %w", err)
	}

	for i := range loads {
		p := countedHeat(&loads[i], tx.Now())
		for _, profile := range into {
			profile.Reserve(k.place[p.Group], p.Steps)
		}
	}

	return nil
}

// markCapsForHeat has the fleet planned again under caps that limit power, because a heater
// was sent another plan. The caller must have locked the caps.
func markCapsForHeat(ctx context.Context, tx *store.Tx) error {
	under, ok, err := tx.LockCaps(ctx)
	if err != nil || !ok || !bindPower(&under) {
		return err
	}

	return tx.RecordCapsUsed(ctx, flex.Later(tx.Now(), under.PlannedAt.Add(MarketInterval)))
}
