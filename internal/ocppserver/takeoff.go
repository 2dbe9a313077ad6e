package ocppserver

import (
	"context"
	"errors"
)

// takeOff clears the profile that a charger took for a car that has left, also where flexd
// cannot be reached to learn that it has, or for an asset that was deleted. A charger that is
// away is asked once it is back, so that the next car is not bound by it. One that does not
// answer, as over a connection that is dead without a word, is asked triesMax times.
func (c *charger) takeOff(ctx context.Context, n *connector) error {
	l, id := c.toTakeOff(n)
	if l == nil {
		return nil
	}

	err := c.clear(ctx, l, clearChargingProfile{ID: id})
	if errors.Is(err, errLinkLost) || ctx.Err() != nil {
		return errAgain
	}

	c.ifLate(err, func(context.Context, func(out any) error) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if n.takeOffs > 0 { // no other was taken since
			n.profile, n.takeOffs = 0, 0
		}

		return nil
	})

	c.mu.Lock()
	defer c.mu.Unlock()
	n.sendAgain() // should the car be there after all
	n.lacksFloor()

	n.takeOffs++
	if errors.Is(err, context.DeadlineExceeded) && n.takeOffs < triesMax {
		return errAgain
	}

	n.profile, n.takeOffs = 0, 0

	return nil
}

// takeOffReported is takeOff where flexd answers: it learns first that the car has left, in
// the next run if that became due in this one. Whoever sees the profile cleared may plug in
// the next car.
func (c *charger) takeOffReported(ctx context.Context, n *connector) error {
	c.mu.Lock()
	left := n.due(c.b.Now(), c.b.Timing.PlugOut) == reportedOut
	waits := left && !n.asset.ID.IsZero()
	c.mu.Unlock()

	if waits {
		return nil
	}

	return c.takeOff(ctx, n)
}

// toTakeOff returns the profile that is to be taken off now, and from where; nil if there is none.
func (c *charger) toTakeOff(n *connector) (*link, int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	gone := n.due(c.b.Now(), c.b.Timing.PlugOut) == reportedOut
	if n.want == nil && n.reported != reportedIn {
		gone = true
	}

	if n.noCar() {
		gone = true
	}

	if !gone || !c.configured || n.profile == 0 {
		return nil, 0
	}

	return c.link, n.profile
}
