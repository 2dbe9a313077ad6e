package ocppserver

import (
	"context"
	"errors"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// apply has the charger follow the connector's schedule: it is sent once after it came,
// after the charger booted or connected, when a transaction starts, and when a part of a
// long one was all that the charger could hold.
func (c *charger) apply(ctx context.Context, n *connector) error {
	c.mu.Lock()
	p := n.want
	l := c.link
	now := c.b.Now()
	asset, tx, a := n.asset, n.tx, c.ability
	again := p != nil && !p.sent.Again.IsZero() && !now.Before(p.sent.Again)
	idle := p == nil || p.over || p.sent.steps != nil && !again
	ready := l != nil && c.greeted
	c.mu.Unlock()

	switch {
	case idle:
		return nil
	case !ready:
		c.say(n, p, flex.Received)
		return nil
	}

	f, ok := fit(p.profile, a, powerOf(asset), now)
	if !ok {
		c.finish(n, p, func() { p.over = true })
		return nil
	}

	took, err := c.send(ctx, l, n.number, tx, &f)
	switch {
	case errors.Is(err, errLinkLost):
		return errAgain
	case err != nil:
		return c.failed(n, p, err)
	case !took:
		c.b.Log.Warn("a charger refused a profile", "charger", c.id, "connector", n.number, "event", p.event)
		c.finish(n, p, func() { p.over = true })
		c.say(n, p, flex.Rejected)
		return nil
	}

	c.finish(n, p, func() {
		if n.tx == tx { // else a transaction started meanwhile, and it must be sent again
			p.sent, p.tries = f, 0
		}
	})

	c.say(n, p, flex.Accepted)
	c.confirm(ctx, l, n, p, f)
	return nil
}

// finish changes a schedule's record under the lock.
func (c *charger) finish(n *connector, p *wanted, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.want == p {
		f()
	}
}

// failed counts an attempt that was not answered.
func (c *charger) failed(n *connector, p *wanted, err error) error {
	c.b.Log.Warn("a profile did not reach its charger", "charger", c.id, "connector", n.number, "event", p.event, "err", err)
	over := false
	c.finish(n, p, func() {
		p.tries++
		p.over = p.tries >= triesMax
		over = p.over
	})

	if over {
		c.say(n, p, flex.Failed)
		return nil
	}

	return errAgain
}

// send sends the profile: for the transaction that runs, else, or if the charger refuses
// that, as the default for transactions. It reports whether the charger took it.
func (c *charger) send(ctx context.Context, l *link, number, tx int, f *fitted) (bool, error) {
	c.mu.Lock()
	noTx := c.ability.NoTx
	c.mu.Unlock()
	refusedTx := false

	if tx != 0 && !noTx {
		f.Purpose, f.Transaction = purposeTx, tx
		took, err := c.set(ctx, l, number, f.chargingProfile)
		if took || err != nil {
			return took, err
		}

		refusedTx = true
	}

	f.Purpose, f.Transaction = purposeTxDefault, 0
	took, err := c.set(ctx, l, number, f.chargingProfile)
	if took && refusedTx {
		c.b.Log.Info("a charger takes no TxProfile, but a TxDefaultProfile", "charger", c.id)
		c.mu.Lock()
		c.ability.NoTx = true
		c.mu.Unlock()
	}

	return took, err
}

// set sends one profile. A charger that cannot do it at all refuses it.
func (c *charger) set(ctx context.Context, l *link, number int, p chargingProfile) (bool, error) {
	var s statusAnswer
	err := l.call(ctx, "SetChargingProfile", setChargingProfile{number, p}, &s)
	if e, ok := errors.AsType[*callError](err); ok && (e.Code == codeNotImplemented || e.Code == codeNotSupported) {
		return false, nil
	}
	return s.Status == accepted, err
}

// confirm asks the charger what it will do. One that follows the profile has executed it,
// one that does otherwise has failed; one that cannot say is believed.
func (c *charger) confirm(ctx context.Context, l *link, n *connector, p *wanted, f fitted) {
	span := min(time.Duration(f.Schedule.Duration)*time.Second, compositeMax)
	var s compositeSchedule
	err := l.call(ctx, "GetCompositeSchedule", getCompositeSchedule{n.number, int(span / time.Second), f.Schedule.Unit}, &s)
	if err != nil {
		c.b.Log.Debug("a charger does not say what it will do", "charger", c.id, "err", err)
		return
	}

	switch compare(f, s) {
	case obeyed:
		c.say(n, p, flex.Executed)
	case contradicts:
		c.b.Log.Warn("a charger took a profile and does not follow it", "charger", c.id, "connector", n.number, "event", p.event)
		c.say(n, p, flex.Failed)
	}
}

// say keeps a callback for flexd, unless it was told as much before: it would pass it over.
func (c *charger) say(n *connector, p *wanted, s client.CallbackStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if s.Stage() <= p.told.Stage() || n.asset.ID.IsZero() {
		return
	}

	p.told = s
	c.letters = append(c.letters, letter{n.asset.ID, p.event, s, c.b.Now()})
	if len(c.letters) > lettersMax {
		c.letters = c.letters[1:]
	}
}

// powerOf is an asset's power, 0 if it is not known.
func powerOf(a client.AssetResponse) flex.Watts {
	if a.Properties == nil || a.Properties.PowerKW == nil {
		return 0
	}
	return flex.Watts(*a.Properties.PowerKW * 1000)
}
