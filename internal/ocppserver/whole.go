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
	if !slices.Contains(c.allConnectorProfiles, id) {
		c.allConnectorProfiles = append(c.allConnectorProfiles, id)
	}
}

// unbind takes the profiles off a charger that bind all of its connectors, once it has spoken
// of a second one. The first one's plan and floor are sent again, to it alone. What is not
// answered is tried triesMax times.
func (c *charger) unbind(ctx context.Context) error {
	c.mu.Lock()
	l := c.link
	due := len(c.connectors) > 1 && l != nil && c.configured
	ids := slices.Clone(c.allConnectorProfiles)
	c.mu.Unlock()

	if !due || len(ids) == 0 {
		return nil
	}

	var remaining []int
	for _, id := range ids {
		err := c.clear(ctx, l, clearChargingProfile{ID: id})
		if errors.Is(err, errLinkLost) || ctx.Err() != nil {
			return errRetry
		}

		if errors.Is(err, context.DeadlineExceeded) {
			remaining = append(remaining, id)
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.connectors {
		n.resendProfile()
		n.lacksFloor()
	}

	c.allConnectorProfiles = remaining
	c.unbinds++
	if len(remaining) > 0 && c.unbinds < triesMax {
		return errRetry
	}

	c.allConnectorProfiles, c.unbinds = nil, 0

	return nil
}
