package control

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
)

// returnPlanner plans how the chosen assets return to their plans after an instruction.
type returnPlanner struct {
	order  instruct.Order
	from   time.Time
	prices []flex.PricedPeriod
}

// reboundOf returns the rebound of an instruction before any asset is planned. Its power is
// the highest target of any slot.
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

// planReturn plans a chosen asset again, with those chosen before it. It reports whether the
// asset then returns together with no more others than permitted, and charges no less because
// of that. With over it is planned in any case.
func (b *returnPlanner) planReturn(c *callableAsset, over bool) bool {
	if b.order.Up || c.ScheduledAsset == nil {
		return true
	}

	e := c.from
	e.Closed = c.othersClosed
	order := b.order
	order.Held, order.Over = c.othersClosed, over

	offer := instruct.Call(order, problemOf(e, b.from, b.prices), c.Current.Steps)
	apart := offer.Whole && offer.Less <= c.offer.Less
	if !apart && !over {
		return false
	}

	c.offer = offer
	c.from.Closed = instruct.Union(c.othersClosed, offer.Closed)
	order.Rebound.Add(offer.Plan.Steps, c.Current.Steps, c.from.Power)

	return true
}

// steps returns the steps of an asset's plan in force and of the one with the call, and its
// power.
func (c *callableAsset) steps() (
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
