package ocppserver

import (
	"context"
	"errors"
	"slices"
)

// binds notes that a charger took a profile for all of its connectors.
func (c *charger) binds(f form, id int) {
	if f.Connector != 0 {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.whole, id) {
		c.whole = append(c.whole, id)
	}
}

// unbind takes the profiles off a charger that bind all of its connectors, once it has spoken
// of a second one. The first one's plan and floor are sent again, to it alone. What is not
// answered is tried triesMax times.
func (c *charger) unbind(ctx context.Context) error {
	c.mu.Lock()
	l := c.link
	due := len(c.connectors) > 1 && l != nil && c.configured
	ids := slices.Clone(c.whole)
	c.mu.Unlock()

	if !due || len(ids) == 0 {
		return nil
	}

	var left []int
	for _, id := range ids {
		err := c.clear(ctx, l, clearChargingProfile{ID: id})
		if errors.Is(err, errLinkLost) || ctx.Err() != nil {
			return errAgain
		}

		if errors.Is(err, context.DeadlineExceeded) {
			left = append(left, id)
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.connectors {
		n.sendAgain()
		n.lacksFloor()
	}

	c.whole = left
	c.unbinds++
	if len(left) > 0 && c.unbinds < triesMax {
		return errAgain
	}

	c.whole, c.unbinds = nil, 0

	return nil
}
