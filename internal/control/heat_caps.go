package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/headroom"
	"flexd/internal/engine/heat"
	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// A tank or a heat pump is planned in what the caps leave beside all other heaters, and in the
// running half-hour beside cars and batteries too; later these are planned around it.
// Exceeding a cap costs more than any price, and only comfort goes before that. As each heater
// is counted for what it was sent, the one that is planned yields to all others.

// capPrice is the cost, in pence, of being on in a half-hour, for each time the heater's own
// power by which a cap is exceeded then.
const capPrice = 1e4

// heatUnderCaps is what caps leave to heaters. It is read once for many of them.
type heatUnderCaps struct {
	*headroom.Profile
	*capped
	from  time.Time                      // its first half-hour
	parts map[flex.AssetID]store.CapPart // what each heater is counted for
}

// readHeat is what caps leave to heaters; nil if none binds a power. The caps must be locked.
func (k *capsKept) readHeat(
	ctx context.Context,
	tx *store.Tx,
	inForce store.CapsInForce,
) (*heatUnderCaps, error) {
	if !bindPower(&inForce) {
		return nil, nil
	}

	from := flex.PeriodAt(tx.Now()).Start()
	if h := k.heat; h != nil && h.Version == inForce.Version && h.from.Equal(from) {
		return h, nil
	}

	under := placed(inForce)
	h := &heatUnderCaps{
		Profile: under.profile(from),
		capped:  under,
		from:    from,
		parts:   map[flex.AssetID]store.CapPart{},
	}

	loads, err := tx.HeatLoads(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what tanks and heat pumps draw: %w", err)
	}

	for i := range loads {
		h.count(countedHeat(&loads[i], tx.Now()))
	}

	if err := h.drawRunning(ctx, tx); err != nil {
		return nil, err
	}
	k.heat = h

	return h, nil
}

// count counts a heater for what it may draw, in place of what it was counted for.
func (h *heatUnderCaps) count(p store.CapPart) {
	old := h.parts[p.AssetID]
	h.Release(h.place[old.Group], old.Steps)
	h.Reserve(h.place[p.Group], p.Steps)
	h.parts[p.AssetID] = p
}

// drawRunning reserves what cars and batteries draw in the running half-hour.
func (h *heatUnderCaps) drawRunning(ctx context.Context, tx *store.Tx) error {
	running := flex.PeriodAt(h.from).Span()
	loads, err := tx.Loads(ctx, "")
	if err != nil {
		return fmt.Errorf("read what is plugged in: %w", err)
	}

	for i := range loads {
		steps, power, _ := needsFrom(&loads[i], tx.Now().Truncate(time.Second))
		h.Add(
			h.place[loads[i].Group],
			stepsWithin(steps, running),
			power,
			true,
		)
	}

	batteries, err := tx.CapBatteries(ctx, "")
	if err != nil {
		return fmt.Errorf("read what batteries draw: %w", err)
	}

	for i := range batteries {
		b := &batteries[i]
		h.Reserve(h.place[b.Group], stepsWithin(takesFrom(b, h.from, 1), running))
	}

	return nil
}

// readOver finds out by how much the heater would exceed caps in each of its half-hours.
func (t *heatedTank) readOver(ctx context.Context, tx *store.Tx) error {
	h := t.caps
	if h == nil {
		return nil
	}

	group, err := tx.CapGroup(ctx, t.asset.SiteID)
	if err != nil {
		return fmt.Errorf("read which cap's group a site is in: %w", err)
	}

	t.group = group
	own := h.parts[t.asset.ID]
	h.Release(h.place[own.Group], own.Steps)
	for _, s := range t.slots {
		left, bound := h.Spare(h.place[group], s)
		times := 0
		if bound && left < t.power {
			times = int((2*t.power - left - 1) / t.power)
		}

		t.over = append(t.over, times)
	}

	h.Reserve(h.place[own.Group], own.Steps)

	return nil
}

// countSent counts the heater for the plan that it was just sent.
func (t *heatedTank) countSent() {
	if t.caps == nil {
		return
	}

	t.caps.count(store.CapPart{
		AssetID: t.asset.ID,
		Group:   t.group,
		Steps:   t.plan.May,
	})
	t.caps.Version++ // by heatChanged
}

// overPrice is the cost of being on in a half-hour because of caps.
func (t *heatedTank) overPrice(slot int) float64 {
	if slot >= len(t.over) {
		return 0
	}

	return capPrice * float64(t.over[slot])
}

// priceOver adds to what a heat pump may be asked to do, but for off, what it costs because of
// caps. Where it cannot be kept off, by offsets, that changes nothing.
func (h *heatPump) priceOver(p *heat.Problem) {
	for slot := range p.Slots {
		choices := p.Slots[slot].Choices
		for i := range choices {
			if !choices[i].Off {
				choices[i].Hold += h.overPrice(slot)
			}
		}
	}
}

// overBy adds up by how much the heater exceeds caps if it is on in some half-hours.
func (t *heatedTank) overBy(on []bool) int {
	sum := 0
	for i, times := range t.over {
		if on[i] {
			sum += times
		}
	}

	return sum
}

// yieldToCaps closes the half-hours in which a tank would exceed a cap, but for those without
// which the water becomes colder than the bottom of its band. What is to be in the tank beyond
// that, for draws that nobody expects, yields to the caps.
func (t *heatedTank) yieldToCaps() {
	if !slices.ContainsFunc(t.over, func(times int) bool { return times > 0 }) {
		return
	}

	p := t.problem(t.buy, t.closed)
	for i := range p.Slots {
		p.Slots[i].Spare = 0
	}

	open := t.opened(p)
	for i, times := range t.over {
		if times > 0 && !open[i] {
			t.closed[i], t.crowded[i] = true, false
		}
	}
}

// opened is when a tank may exceed caps: never if its comfort does not need it, else as by the
// plan that exceeds them least, or by the plan in force if that is as good.
func (t *heatedTank) opened(p *tank.Problem) []bool {
	best := tank.Solve(p)
	within := *p
	within.Slots = slices.Clone(p.Slots)
	for i := range within.Slots {
		s := &within.Slots[i]
		s.Closed = s.Closed || t.over[i] > 0
	}

	if tank.Solve(&within).Short <= best.Short+tankWarmer {
		return make([]bool, len(t.slots))
	}

	on, ok := t.plannedOn(best.On)
	if ok && t.overBy(on) <= t.overBy(best.On) && tank.Run(p, on).Short <= best.Short+tankWarmer {
		return on
	}

	return best.On
}
