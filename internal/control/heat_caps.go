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

// Heaters under caps.
//
// A tank or heat pump is planned in the headroom that caps leave beside all other heaters, and
// in the running half-hour also beside cars and batteries. Later half-hours of cars and
// batteries are planned around the heaters. In a heater's plan, exceeding a cap costs more
// than any price, and less than comfort. Every other heater counts with what it was sent, so
// it is the heater that is being planned which avoids the excess.

// capPrice is the cost, in pence, of being on in a half-hour in which a cap is then exceeded.
// It applies once for each multiple of the heater's power in the excess, rounded up.
const capPrice = 1e4

// heatHeadroom is the headroom that caps leave to heaters. It is read once for many of them.
type heatHeadroom struct {
	*headroom.Profile
	*orderedCaps
	from  time.Time                      // its first half-hour
	parts map[flex.AssetID]store.CapPart // what each heater is counted for
}

// readHeat reads the headroom that caps leave to heaters; nil if no cap limits power. The
// caller must have locked the caps.
func (k *headroomCache) readHeat(
	ctx context.Context,
	tx *store.Tx,
	inForce store.CapsInForce,
) (*heatHeadroom, error) {
	if !bindPower(&inForce) {
		return nil, nil
	}

	from := flex.PeriodAt(tx.Now()).Start()
	if h := k.heaters; h != nil && h.Version == inForce.Version && h.from.Equal(from) {
		return h, nil
	}

	under := orderCaps(inForce)
	h := &heatHeadroom{
		Profile:     under.profile(from),
		orderedCaps: under,
		from:        from,
		parts:       map[flex.AssetID]store.CapPart{},
	}

	loads, err := tx.HeatLoads(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what tanks and heat pumps draw: %w", err)
	}

	for i := range loads {
		h.count(countedHeat(&loads[i], tx.Now()))
	}

	if err := h.reserveRunning(ctx, tx); err != nil {
		return nil, err
	}
	k.heaters = h

	return h, nil
}

// count replaces the power that a heater is counted with.
func (h *heatHeadroom) count(p store.CapPart) {
	old := h.parts[p.AssetID]
	h.Release(h.place[old.Group], old.Steps)
	h.Reserve(h.place[p.Group], p.Steps)
	h.parts[p.AssetID] = p
}

// reserveRunning reserves the power of cars and batteries in the running half-hour.
func (h *heatHeadroom) reserveRunning(ctx context.Context, tx *store.Tx) error {
	running := flex.PeriodAt(h.from).Span()
	loads, err := tx.Loads(ctx, "")
	if err != nil {
		return fmt.Errorf("read what is plugged in: %w", err)
	}

	for i := range loads {
		steps, power, _ := cappedLoadSteps(&loads[i], tx.Now().Truncate(time.Second))
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
		h.Reserve(h.place[b.Group], stepsWithin(drawSteps(b, h.from, 1), running))
	}

	return nil
}

// readExcess computes by how much the heater would exceed caps in each half-hour, in multiples
// of its power, rounded up. Its own reservation is released while it does that.
func (t *heatedTank) readExcess(ctx context.Context, tx *store.Tx) error {
	h := t.headroom
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
		remaining, bound := h.Spare(h.place[group], s)
		times := 0
		if bound && remaining < t.power {
			times = int((2*t.power - remaining - 1) / t.power)
		}

		t.excess = append(t.excess, times)
	}

	h.Reserve(h.place[own.Group], own.Steps)

	return nil
}

// countSent counts the heater with the plan that it was just sent. Storing that plan raised
// the version of the caps, so the version here is raised too.
func (t *heatedTank) countSent() {
	if t.headroom == nil {
		return
	}

	t.headroom.count(store.CapPart{
		AssetID: t.asset.ID,
		Group:   t.group,
		Steps:   t.plan.May,
	})
	t.headroom.Version++ // by markCapsForHeat
}

// excessPrice is the cost of being on in a half-hour, in pence, because of caps.
func (t *heatedTank) excessPrice(slot int) float64 {
	if slot >= len(t.excess) {
		return 0
	}

	return capPrice * float64(t.excess[slot])
}

// priceExcess adds the cost of exceeding caps to each choice of a heat pump except off. If it
// is controlled by offsets it may have no such choice; then the cost changes nothing.
func (h *heatPump) priceExcess(p *heat.Problem) {
	for slot := range p.Slots {
		choices := p.Slots[slot].Choices
		for i := range choices {
			if !choices[i].Off {
				choices[i].Hold += h.excessPrice(slot)
			}
		}
	}
}

// excessOf adds up the excess over caps if the heater is on in some half-hours.
func (t *heatedTank) excessOf(on []bool) int {
	sum := 0
	for i, times := range t.excess {
		if on[i] {
			sum += times
		}
	}

	return sum
}

// closeOverCaps closes the half-hours in which a tank would exceed a cap, except those without
// which the water would become colder than the bottom of its band. The reserve for unexpected
// use is not worth exceeding a cap.
func (t *heatedTank) closeOverCaps() {
	if !slices.ContainsFunc(t.excess, func(times int) bool { return times > 0 }) {
		return
	}

	p := t.problem(t.buy, t.closed)
	for i := range p.Slots {
		p.Slots[i].Spare = 0
	}

	open := t.openOverCaps(p)
	for i, times := range t.excess {
		if times > 0 && !open[i] {
			t.closed[i], t.usedByOthers[i] = true, false
		}
	}
}

// openOverCaps returns the half-hours in which a tank may exceed caps: none if its comfort
// does not need any; else those of the plan that exceeds them least, or of the plan in force
// if that is as good.
func (t *heatedTank) openOverCaps(p *tank.Problem) []bool {
	best := tank.Solve(p)
	within := *p
	within.Slots = slices.Clone(p.Slots)
	for i := range within.Slots {
		s := &within.Slots[i]
		s.Closed = s.Closed || t.excess[i] > 0
	}

	if tank.Solve(&within).Short <= best.Short+tankWarmer {
		return make([]bool, len(t.slots))
	}

	on, ok := t.plannedOn(best.On)
	if ok && t.excessOf(on) <= t.excessOf(best.On) && tank.Run(p, on).Short <= best.Short+tankWarmer {
		return on
	}

	return best.On
}
