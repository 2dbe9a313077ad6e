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

// unbind takes the profiles off a charger that bind all of its connectors, once it has spoken of a second one. The first
// one's plan and floor are sent again, to it alone.
func (c *charger) unbind(ctx context.Context) error {
	c.mu.Lock()
	l := c.link
	due := len(c.connectors) > 1 && l != nil && c.configured
	ids := slices.Clone(c.whole)
	c.mu.Unlock()

	if !due || len(ids) == 0 {
		return nil
	}

	for _, id := range ids {
		var s statusAnswer
		err := l.call(ctx, "ClearChargingProfile", clearChargingProfile{ID: id}, &s)
		if err == nil {
			continue
		}

		c.b.Log.Warn(
			"a charger's profile was not cleared",
			"charger",
			c.id,
			"err",
			err,
		)
		if errors.Is(err, errLinkLost) {
			return errAgain
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.whole = nil
	for _, n := range c.connectors {
		n.sendAgain()
		n.lacksFloor()
	}

	return nil
}
