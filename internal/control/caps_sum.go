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
// A plug-in needs to know the sum that all others under its caps draw. Reading each of them
// would take time in proportion to their number. The store therefore contains the sums by
// minute, and for each car, tank and heat pump its part in them. A transaction that changes
// what one of them may draw records its id (cap_change). A transaction that needs the sums
// locks the caps. It first counts the recorded assets again, and those whose part changes as
// time goes by: a car whose schedule is over may draw its full power. So a plug-in counts only
// the changes since the previous plug-in, each of them once.

const (
	// maxPartAhead is how far ahead a part is counted: further than any schedule reaches.
	maxPartAhead = 9 * 24 * time.Hour
	// recountLongAfter is after what time a part that reaches further is counted again: before
	// the counted time is over.
	recountLongAfter = 6 * 24 * time.Hour
	// maxSumAge is for how long the sums are only updated by changes, before they are computed
	// from all assets again.
	maxSumAge = 24 * time.Hour
)

// capSums are the sums under some caps, and the changes that are to be stored.
type capSums struct {
	tree    flex.CapTree // the group around each group
	from    int64        // the running block
	sums    map[string]headroom.Sum
	change  map[string]headroom.Sum // by cap
	updated []store.CapPart
	removed []flex.AssetID
}

// sumsForAsset returns the sums under some caps, by the caps' names, and the part of one asset
// in them; nil if the asset is not counted. The caps must be locked.
func sumsForAsset(
	ctx context.Context,
	tx *store.Tx,
	inForce *store.CapsInForce,
	asset flex.AssetID,
	names []string,
) (map[string]headroom.Sum, *store.CapPart, error) {
	tree := inForce.Tree()
	if inForce.SummedAt.IsZero() {
		if err := sumAll(ctx, tx, tree); err != nil {
			return nil, nil, err
		}
	}

	c, parts, err := countChanges(ctx, tx, tree, names, asset)
	if err != nil {
		return nil, nil, err
	}

	if own, counted := parts[asset]; counted {
		return c.sums, &own, nil
	}

	return c.sums, nil, nil
}

// countChanges counts changed assets again. It returns the new sums under some caps, and the
// parts of one asset and of those that were counted again. The caps must be locked.
func countChanges(
	ctx context.Context,
	tx *store.Tx,
	tree flex.CapTree,
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
		tree:   tree,
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
		err = c.save(ctx, tx, changes)
	}

	return c, parts, err
}

// count replaces the parts of assets in the sums: the old ones, in parts, by those in now. An
// asset without a new part is no longer counted. parts is updated.
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

		for _, name := range c.tree.Path(old.Group) {
			old.RemoveFrom(c.changeUnder(name), c.from)
		}
		delete(parts, id)
	}

	for _, p := range now {
		for _, name := range c.tree.Path(p.Group) {
			p.AddTo(c.changeUnder(name), c.from)
		}

		parts[p.AssetID] = p
		c.updated = append(c.updated, p)
	}

	for _, id := range assets {
		if _, counted := parts[id]; !counted {
			c.removed = append(c.removed, id)
		}
	}
}

// changeUnder returns the change of the sum under a cap.
func (c *capSums) changeUnder(name string) headroom.Sum {
	if c.change[name] == nil {
		c.change[name] = headroom.Sum{}
	}

	return c.change[name]
}

// save stores the changes: the parts, and the blocks of the sums that changed.
func (c *capSums) save(
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
	if err := tx.PutCapParts(ctx, c.updated); err != nil {
		return err
	}
	if err := tx.DropCapParts(ctx, c.removed); err != nil {
		return err
	}

	return tx.DropCapChanges(ctx, changes)
}

// partsNow returns the parts of some assets from now on.
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

// countedParts returns the parts of cars, tanks and heat pumps from an instant on.
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

// countedPart returns the part of an asset that is plugged in, from an instant on.
func countedPart(
	l *store.Load,
	now time.Time,
) store.CapPart {
	steps, power, running := cappedLoadSteps(l, now)
	p := store.CapPart{
		AssetID: l.AssetID,
		Group:   l.Group,
		EventID: l.EventID,
		Power:   power,
		Running: running,
		Paced:   true,
	}

	if n := len(l.Steps); n > 0 { // until then it draws by its schedule
		p.Until = afterNow(now, l.Done, l.Steps[n-1].To)
	}

	whole := len(steps) > 0 && steps[len(steps)-1].To.After(now.Add(maxPartAhead))
	p.Steps = stepsWithin(steps, flex.Span{From: time.Time{}, To: now.Add(maxPartAhead)})
	if whole {
		p.Until = sooner(p.Until, now.Add(recountLongAfter))
	}

	return p
}

// afterNow returns the earliest of some instants that is after now; zero if none is.
func afterNow(
	now time.Time,
	instants ...time.Time,
) time.Time {
	var first time.Time
	for _, at := range instants {
		if at.After(now) {
			first = sooner(first, at)
		}
	}

	return first
}

// sumAll computes the sums from all plugged-in assets, tanks and heat pumps. The caps must be
// locked.
func sumAll(
	ctx context.Context,
	tx *store.Tx,
	tree flex.CapTree,
) error {
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
		tree:   tree,
		from:   headroom.BlockAt(now),
		change: map[string]headroom.Sum{},
	}
	c.count(nil, countedParts(loads, heat, now), map[flex.AssetID]store.CapPart{})

	if err := tx.PutCapSums(ctx, c.change); err != nil {
		return err
	}
	if err := tx.PutCapParts(ctx, c.updated); err != nil {
		return err
	}

	return tx.RecordCapsSum(ctx)
}

// countFleet counts the changes of a fleet plan, so that no plug-in has to. Once a day it
// computes the sums from all assets again, and logs an error if they were wrong.
func (s *Service) countFleet(
	ctx context.Context,
	tx *store.Tx,
	inForce *store.CapsInForce,
) error {
	if tx.Now().Sub(inForce.SummedAt) < maxSumAge {
		_, _, err := countChanges(
			ctx,
			tx,
			inForce.Tree(),
			nil,
			flex.AssetID{},
		)
		if err != nil {
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

	return sumAll(ctx, tx, inForce.Tree())
}
