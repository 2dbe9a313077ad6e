package ocppserver

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// edgeWait is how long after a half-hour's end the bridge waits for the charger's own meter
// value, before it requests one.
const edgeWait = 3 * time.Second

// measure processes the new samples, and queues the energy readings that follow from them.
func (c *charger) measure(_ context.Context, n *connector) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	now := c.b.Now()
	if n.asset.ID.IsZero() {
		if !n.nextQuery.IsZero() { // flexd has no such asset
			n.pending = nil
		}

		return nil
	}

	x := conditions{
		power:   anyPower,
		allowed: n.allowed,
		idle:    n.tx == 0,
		now:     now,
	}

	if p := powerOf(n.asset); p > 0 {
		x.power = float64(p)
	}

	pending := n.pending
	n.pending = nil
	for _, s := range pending {
		reason := n.meter.add(s, x.power)
		if reason != "" {
			c.logUnreadable(n, reason)
			continue
		}

		c.passRegister(n, s)
	}

	for _, h := range n.meter.cut(x) {
		if h.why != "" {
			c.b.Log.Warn(
				"a half-hour's energy is held back",
				"charger",
				c.id,
				"connector",
				n.number,
				"half_hour",
				h.Start(),
				"why",
				h.why,
			)

			continue
		}

		c.report(report{
			n.asset.ID,
			n.number,
			h.Span(),
			flex.ChargerEnergy,
			h.wh / 1000,
		})
	}

	return nil
}

// passRegister queues a reading of the register every few minutes. flexd refuses a register
// that falls, so one that restarts with each transaction is not sent.
func (c *charger) passRegister(n *connector, s sample) {
	m := &n.meter
	k := mark{At: s.At, Wh: s.Value}
	next := k.At.Sub(m.Passed.At) >= registerEvery && k.Wh >= m.Passed.Wh
	if s.Quantity != register || m.PerSession || !next {
		return
	}

	i := m.index(k.At)
	if i == len(m.Marks) || !m.Marks[i].At.Equal(k.At) ||
		m.Marks[i].Wh != k.Wh {
		return // the mark was not inserted, or was deleted again
	}

	m.Passed = k
	c.report(report{
		n.asset.ID,
		n.number,
		flex.Span{From: k.At, To: k.At},
		flex.ChargerRegister,
		k.Wh / 1000,
	})
}

// askMeter requests a meter value at the half-hour, if the charger sent none by itself.
func (c *charger) askMeter(ctx context.Context, n *connector) error {
	c.mu.Lock()
	now := c.b.Now()
	edge := flex.PeriodAt(now).Start()
	l := c.link
	open := c.configured && l != nil && n.tx != 0
	due := open && n.edge.Before(edge) && !now.Before(edge.Add(edgeWait))
	if due {
		n.edge = edge
	}

	_, last, ok := n.meter.extent()
	sent := ok && !last.Before(edge)
	c.mu.Unlock()

	if !due || sent {
		return nil
	}

	c.trigger(ctx, l, n)

	return nil
}

// trigger requests a meter value for a connector, unless the charger does not support that.
func (c *charger) trigger(ctx context.Context, l *link, n *connector) {
	c.mu.Lock()
	off := c.settings.NoTrigger
	c.mu.Unlock()
	if off {
		return
	}

	var s statusAnswer
	err := l.call(
		ctx,
		"TriggerMessage",
		triggerMessage{"MeterValues", n.number},
		&s,
	)
	c.ifLate(err, func(_ context.Context, answer func(out any) error) error {
		var s statusAnswer
		if answer(&s) == nil && s.Status != codeNotImplemented {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.settings.NoTrigger = false // it only needs longer
		}

		return nil
	})
	if err != nil || s.Status == codeNotImplemented {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.settings.NoTrigger = true // until it boots
	}
}

// allow records the limits of the connector from now on, for as long as samples are stored.
func (n *connector) allow(steps []flex.Step, now time.Time) {
	var all []flex.Step
	for _, s := range n.allowed {
		s.To = flex.Earlier(s.To, now)
		if s.From.Before(s.To) && s.To.After(now.Add(-2*meterWindow)) {
			all = append(all, s)
		}
	}

	for _, s := range steps {
		s.From = flex.Later(s.From, now)
		s.Limit = max(0, s.Limit) // discharging is not part of the charging limits
		if s.From.Before(s.To) {
			all = append(all, s)
		}
	}

	n.allowed = all
}
