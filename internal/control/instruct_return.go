package control

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
)

// returning plans how the chosen assets return to their plans after an instruction.
type returning struct {
	order  instruct.Order
	from   time.Time
	prices []flex.PricedPeriod
}

// reboundOf returns the rebound of an instruction before any asset is planned. Its power is
// the most that is asked for in any slot.
func reboundOf(
	in *flex.Instruction,
	slots []flex.Span,
	target []charge.Joules,
) *instruct.Rebound {
	most := flex.Watts(0)
	for t, slot := range slots {
		seconds := charge.Joules(max(1, slot.Len()/time.Second))
		most = max(most, flex.Watts(target[t]/seconds))
	}

	return instruct.NewRebound(in.To, most)
}

// plan plans a chosen asset again beside those chosen before it. It reports whether the asset
// returns together with no more others than allowed, and charges no less because of that. With
// over it is planned in any case.
func (b *returning) plan(c *called, over bool) bool {
	if b.order.Up || c.ScheduledAsset == nil {
		return true
	}

	e := c.from
	e.Closed = c.held
	order := b.order
	order.Held, order.Over = c.held, over

	offer := instruct.Call(order, problemOf(e, b.from, b.prices), c.Current.Steps)
	apart := offer.Whole && offer.Less <= c.offer.Less
	if !apart && !over {
		return false
	}

	c.offer = offer
	c.from.Closed = instruct.Union(c.held, offer.Closed)
	order.Rebound.Add(offer.Plan.Steps, c.Current.Steps, c.from.Power)

	return true
}

// steps returns what an asset draws by its plan in force and by the one with the call, and its
// power.
func (c *called) steps() (
	before, after []flex.Step,
	power flex.Watts,
) {
	if d := c.device; d != nil {
		return d.before,
			d.after,
			d.power
	}

	return c.Current.Steps,
		c.offer.Plan.Steps,
		c.from.Power
}
