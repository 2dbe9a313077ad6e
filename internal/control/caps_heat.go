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
// A tank or a heat pump under control counts under caps for its power in the windows that it
// was sent, and for nothing after them. Until its client has taken the newest, it counts for
// the most of those that it may be following. It is planned around other tanks and heat pumps
// (heat_caps.go), and not around what cars and batteries do later: these have what is left.

// heatCountedFor is how long after a count a plan that was not accepted is counted again.
const heatCountedFor = 5 * time.Minute

// countedHeat is what a tank or a heat pump is counted for from an instant on.
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
		p.Until = now.Add(heatCountedFor)
	}

	return p
}

// drawHeat reserves in headrooms what all tanks and heat pumps may draw.
func (k *capped) drawHeat(
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

// heatChanged has the fleet planned again under caps that bind power, as a tank or a heat pump
// was sent another plan. The caps must be locked.
func heatChanged(ctx context.Context, tx *store.Tx) error {
	under, ok, err := tx.LockCaps(ctx)
	if err != nil || !ok || !bindPower(&under) {
		return err
	}

	return tx.RecordCapsUsed(ctx, flex.Later(tx.Now(), under.PlannedAt.Add(MarketInterval)))
}
