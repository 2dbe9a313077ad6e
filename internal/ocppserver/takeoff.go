package ocppserver

import (
	"context"
	"errors"
)

// takeOff clears the profile of a car that has left. It does so even if flexd cannot be
// reached, or the asset was deleted. If the charger is not connected, this happens when it
// reconnects, so that the profile does not limit the next car. A charger that does not answer,
// for example over a dead connection, is asked triesMax times.
func (c *charger) takeOff(ctx context.Context, n *connector) error {
	l, id := c.toTakeOff(n)
	if l == nil {
		return nil
	}

	err := c.clear(ctx, l, clearChargingProfile{ID: id})
	if errors.Is(err, errLinkLost) || ctx.Err() != nil {
		return errRetry
	}

	c.ifLate(err, func(context.Context, func(out any) error) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if n.takeOffs > 0 { // no other profile was accepted since
			n.profile, n.takeOffs = 0, 0
		}

		return nil
	})

	c.mu.Lock()
	defer c.mu.Unlock()
	n.resendProfile() // in case the car is still there
	n.lacksFloor()

	n.takeOffs++
	if errors.Is(err, context.DeadlineExceeded) && n.takeOffs < triesMax {
		return errRetry
	}

	n.profile, n.takeOffs = 0, 0

	return nil
}

// takeOffReported is takeOff while flexd can be reached. flexd first learns that the car has
// left; if that became due in this run, the profile is cleared in the next. The order matters
// because the next car may be plugged in as soon as the profile is cleared.
func (c *charger) takeOffReported(ctx context.Context, n *connector) error {
	c.mu.Lock()
	isOut := n.due(c.b.Now(), c.b.Timing.PlugOut) == reportedOut
	waits := isOut && !n.asset.ID.IsZero()
	c.mu.Unlock()

	if waits {
		return nil
	}

	return c.takeOff(ctx, n)
}

// toTakeOff returns the profile that must be cleared now, and its connector; nil if there is
// none.
func (c *charger) toTakeOff(n *connector) (*link, int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	isOut := n.due(c.b.Now(), c.b.Timing.PlugOut) == reportedOut
	if n.want == nil && n.reported != reportedIn {
		isOut = true
	}

	if n.noCar() {
		isOut = true
	}

	if !isOut || !c.configured || n.profile == 0 {
		return nil, 0
	}

	return c.link, n.profile
}
