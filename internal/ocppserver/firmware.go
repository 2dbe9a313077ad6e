package ocppserver

import (
	"context"
	"net/http"

	"flexd/client"
)

// sendFirmware gives flexd the version of the firmware that the charger named when it booted, where
// flexd has another.
func (c *charger) sendFirmware(ctx context.Context, n *connector) error {
	c.mu.Lock()
	a, version := n.asset, c.model.Firmware
	known := !a.ID.IsZero() && !n.stored && version != n.firmwareRefused
	c.mu.Unlock()

	if !known || version == "" || version == firmwareOf(a) {
		return nil
	}

	a, err := c.b.Client.UpdateAsset(ctx, a.ID, client.AssetUpdateRequest{
		Properties: &client.AssetProperties{Firmware: &version},
	})
	if err == nil {
		c.setAsset(n, a)
		return nil
	}

	c.b.Log.Warn(
		"flexd does not take a charger's firmware",
		"charger",
		c.id,
		"firmware",
		version,
		"err",
		err,
	)

	status := client.StatusOf(err)
	if status >= http.StatusBadRequest && !mayPass(status) {
		n.firmwareRefused = version
		return nil
	}

	return errRetry
}

// firmwareOf is the version that flexd has.
func firmwareOf(a client.AssetResponse) string {
	if a.Properties == nil || a.Properties.Firmware == nil {
		return ""
	}
	return *a.Properties.Firmware
}
