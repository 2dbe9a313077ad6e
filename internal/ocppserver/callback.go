package ocppserver

import (
	"context"
	"time"

	"flexd/client"
)

// callback is a callback for flexd.
type callback struct {
	Asset  client.AssetID        `json:"asset"`
	Event  client.EventID        `json:"event"`
	Status client.CallbackStatus `json:"status"`
	At     time.Time             `json:"at"`
}

// writeBack sends the queued callbacks, in their order.
func (c *charger) writeBack(ctx context.Context) error {
	for {
		l, ok := c.nextCallback()
		if !ok {
			return nil
		}

		err := c.b.Client.Callback(ctx, l.Asset, l.Event, client.EventResponse{
			Timestamp: client.At(l.At),
			Status:    l.Status,
		})

		if err != nil {
			c.b.Log.Error(
				"a callback did not reach flexd",
				"charger",
				c.id,
				"event",
				l.Event,
				"status",
				l.Status,
				"err",
				err,
			)

			if mayPass(client.StatusOf(err)) {
				return errRetry
			}
		}

		c.mu.Lock()
		if len(c.callbacks) > 0 && c.callbacks[0] == l { // else it was dropped for newer ones
			c.callbacks = c.callbacks[1:]
		}

		c.mu.Unlock()
	}
}

// nextCallback returns the oldest queued callback.
func (c *charger) nextCallback() (callback, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.callbacks) == 0 {
		return callback{}, false
	}

	return c.callbacks[0], true
}
