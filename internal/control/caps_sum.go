package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Sums under caps.
//
// A plug-in needs to know what all others under its caps draw. To read each of them would cost as much as there are
// cars, so the store keeps the sum, minute by minute, with what each car is counted for in it. Whoever changes what a
// car may draw leaves a note in its transaction. Whoever needs the sums has the caps locked, and first counts anew what
// is noted, and what counts for something else as time goes by: a car whose schedule is over may draw its full power.
// So the work of a plug-in is that of the changes since the one before it, each of which is counted once.

const (
	// countedAhead is how far ahead a part is counted at most: farther than a schedule reaches.
	countedAhead = 9 * 24 * time.Hour
	// countedFor is after what time a part that reaches farther is counted anew, while a headroom does not see its end.
	countedFor = 6 * 24 * time.Hour
	// summedAnew is after what time the sums are made from every asset again.
	summedAnew = 24 * time.Hour
)

// capSums are the sums under some caps, and what is to be kept of them.
type capSums struct {
	from   int64 // the running block
	sums   map[string]headroom.Sum
	change map[string]headroom.Sum // by cap
	put    []store.CapPart
	drop   []flex.AssetID
}

// sumsBeside returns what all draw together under some caps, by their names, and what of that is an asset's own; nil if
// it is not counted.
func sumsBeside(
	ctx context.Context,
	tx *store.Tx,
	inForce *store.CapsInForce,
	asset flex.AssetID,
	names []string,
) (map[string]headroom.Sum, *store.CapPart, error) {
	if inForce.SummedAt.IsZero() {
		if err := sumAnew(ctx, tx); err != nil {
			return nil, nil, err
		}
	}

	c, parts, err := countChanges(ctx, tx, names, asset)
	if err != nil {
		return nil, nil, err
	}

	if own, counted := parts[asset]; counted {
		return c.sums, &own, nil
	}

	return c.sums, nil, nil
}

// countChanges counts what changed, and returns the sums under some caps with it, beside the parts of what was counted
// anew and of one more asset. The caps must be locked.
func countChanges(
	ctx context.Context,
	tx *store.Tx,
	names []string,
	asset flex.AssetID,
) (*capSums, map[flex.AssetID]store.CapPart, error) {
	changes, err := tx.CapChanges(ctx)
	if err != nil {
		return nil, nil, err
	}

	now, err := partsNow(ctx, tx, changes.Assets)
	if err != nil {
		return nil, nil, err
	}

	parts, err := tx.CapParts(ctx, append(slices.Clone(changes.Assets), asset))
	if err != nil {
		return nil, nil, err
	}

	c := &capSums{
		from:   headroom.BlockAt(tx.Now()),
		change: map[string]headroom.Sum{},
	}
	c.count(changes.Assets, now, parts)

	for name := range c.change {
		if !slices.Contains(names, name) {
			names = append(slices.Clip(names), name)
		}
	}

	c.sums, err = tx.CapSums(ctx, c.from, names)
	if err == nil {
		err = c.keep(ctx, tx, changes)
	}

	return c, parts, err
}

// count counts some assets anew: those of which there is a part now for that, and the others for nothing. The parts
// by asset are those of before, and then those of now.
func (c *capSums) count(
	assets []flex.AssetID,
	now []store.CapPart,
	parts map[flex.AssetID]store.CapPart,
) {
	for _, id := range assets {
		old, counted := parts[id]
		if !counted {
			continue
		}

		for _, name := range flex.CapPath(old.Group) {
			old.RemoveFrom(c.of(name), c.from)
		}
		delete(parts, id)
	}

	for _, p := range now {
		for _, name := range flex.CapPath(p.Group) {
			p.AddTo(c.of(name), c.from)
		}

		parts[p.AssetID] = p
		c.put = append(c.put, p)
	}

	for _, id := range assets {
		if _, counted := parts[id]; !counted {
			c.drop = append(c.drop, id)
		}
	}
}

// of is what changes under a cap.
func (c *capSums) of(name string) headroom.Sum {
	if c.change[name] == nil {
		c.change[name] = headroom.Sum{}
	}

	return c.change[name]
}

// keep keeps what changed, of the sums only those blocks.
func (c *capSums) keep(
	ctx context.Context,
	tx *store.Tx,
	changes store.CapChanges,
) error {
	if len(changes.Assets) == 0 {
		return nil
	}

	for name, change := range c.change {
		c.sums[name].Merge(change)
		for block := range change {
			change[block] = c.sums[name][block]
		}
	}

	if err := tx.PutCapSums(ctx, c.change); err != nil {
		return err
	}
	if err := tx.PutCapParts(ctx, c.put); err != nil {
		return err
	}
	if err := tx.DropCapParts(ctx, c.drop); err != nil {
		return err
	}

	return tx.CapCounted(ctx, changes)
}

// partsNow are what some assets are counted for now.
func partsNow(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) ([]store.CapPart, error) {
	loads, err := tx.LoadsOf(ctx, assets)
	if err != nil {
		return nil, err
	}

	heat, err := tx.HeatLoadsOf(ctx, assets)

	return countedParts(loads, heat, tx.Now().Truncate(time.Second)), err
}

// countedParts are what cars, tanks and heat pumps are counted for from an instant on.
func countedParts(
	loads []store.Load,
	heat []store.HeatLoad,
	now time.Time,
) []store.CapPart {
	var parts []store.CapPart
	for i := range loads {
		parts = append(parts, countedPart(&loads[i], now))
	}

	for i := range heat {
		parts = append(parts, countedHeat(&heat[i], now))
	}

	return parts
}

// countedPart is what an asset that is plugged in is counted for from an instant on.
func countedPart(l *store.Load, now time.Time) store.CapPart {
	steps, power, running := needsFrom(l, now)
	p := store.CapPart{
		AssetID: l.AssetID,
		Group:   l.Group,
		EventID: l.EventID,
		Power:   power,
		Running: running,
		Paced:   true,
	}

	if n := len(l.Steps); n > 0 { // what it does next is said until then
		p.Until = afterNow(now, l.Done, l.Steps[n-1].To)
	}

	whole := len(steps) > 0 && steps[len(steps)-1].To.After(now.Add(countedAhead))
	p.Steps = within(steps, flex.Span{From: time.Time{}, To: now.Add(countedAhead)})
	if whole {
		p.Until = sooner(p.Until, now.Add(countedFor))
	}

	return p
}

// afterNow is the first of some instants that is still to come; zero if none is.
func afterNow(now time.Time, instants ...time.Time) time.Time {
	var first time.Time
	for _, at := range instants {
		if at.After(now) {
			first = sooner(first, at)
		}
	}

	return first
}

// sumAnew counts every asset that is plugged in. The caps must be locked.
func sumAnew(ctx context.Context, tx *store.Tx) error {
	if err := tx.DropCapSums(ctx); err != nil {
		return err
	}

	loads, err := tx.Loads(ctx, "")
	if err != nil {
		return err
	}

	heat, err := tx.HeatLoads(ctx)
	if err != nil {
		return err
	}

	now := tx.Now().Truncate(time.Second)
	c := &capSums{
		from:   headroom.BlockAt(now),
		change: map[string]headroom.Sum{},
	}
	c.count(nil, countedParts(loads, heat, now), map[flex.AssetID]store.CapPart{})

	if err := tx.PutCapSums(ctx, c.change); err != nil {
		return err
	}
	if err := tx.PutCapParts(ctx, c.put); err != nil {
		return err
	}

	return tx.SumCaps(ctx)
}

// countFleet counts what the planning of a fleet changed, so that no plug-in has to, and adds everything up anew once a
// day. It says so where the sums had become wrong.
func (s *Service) countFleet(
	ctx context.Context,
	tx *store.Tx,
	inForce *store.CapsInForce,
) error {
	if tx.Now().Sub(inForce.SummedAt) < summedAnew {
		if _, _, err := countChanges(ctx, tx, nil, flex.AssetID{}); err != nil {
			return err
		}

		return tx.DropPastCapSums(ctx, headroom.BlockAt(tx.Now()))
	}

	if !inForce.SummedAt.IsZero() {
		wrong, err := tx.WrongCapSums(ctx)
		if err != nil {
			return err
		}
		if len(wrong) > 0 {
			s.log().ErrorContext(
				ctx,
				"what is drawn under caps was added up wrong, and is added up anew",
				"groups",
				wrong,
			)
		}
	}

	return sumAnew(ctx, tx)
}
