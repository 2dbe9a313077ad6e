package client

import (
	"context"
	"net/url"
)

// Assets lists the organisation's assets.
func (c *Client) Assets(
	ctx context.Context,
	p Page,
) (AssetResponsePage, error) {
	return call[AssetResponsePage](
		ctx,
		c,
		get,
		"/entities/asset",
		p.query(),
		nil,
	)
}

// CreateAsset registers an asset at a site.
func (c *Client) CreateAsset(
	ctx context.Context,
	in AssetRequest,
) (AssetResponse, error) {
	return call[AssetResponse](ctx, c, post, "/entities/asset", nil, in)
}

// Asset returns an asset.
func (c *Client) Asset(ctx context.Context, id AssetID) (AssetResponse, error) {
	return call[AssetResponse](ctx, c, get, assetPath(id, ""), nil, nil)
}

// AssetByExternalID returns the asset that the organisation calls by that name.
func (c *Client) AssetByExternalID(
	ctx context.Context,
	externalID string,
) (AssetResponse, error) {
	return call[AssetResponse](
		ctx,
		c,
		get,
		"/entities/asset/external-id/"+url.PathEscape(externalID),
		nil,
		nil,
	)
}

// UpdateAsset changes the fields that are given.
func (c *Client) UpdateAsset(
	ctx context.Context,
	id AssetID,
	in AssetUpdateRequest,
) (AssetResponse, error) {
	return call[AssetResponse](ctx, c, patch, assetPath(id, ""), nil, in)
}

// DeleteAsset removes an asset, ending its session.
func (c *Client) DeleteAsset(ctx context.Context, id AssetID) error {
	return c.Do(ctx, remove, assetPath(id, ""), nil, nil, nil)
}

// Event sends a generic event.
func (c *Client) Event(
	ctx context.Context,
	id AssetID,
	in AssetEventRequest,
) error {
	return c.Do(ctx, post, assetPath(id, "/event"), nil, in, nil)
}

// PlugIn says that a vehicle was plugged in.
func (c *Client) PlugIn(
	ctx context.Context,
	id AssetID,
	in PlugInEventRequest,
) error {
	return c.Do(ctx, post, assetPath(id, "/event/plug-in"), nil, in, nil)
}

// PlugOut says that the vehicle was unplugged.
func (c *Client) PlugOut(ctx context.Context, id AssetID) error {
	return c.Do(
		ctx,
		post,
		assetPath(id, "/event/plug-out"),
		nil,
		PlugOutEventRequest{},
		nil,
	)
}

// SetIntent says what the user wants.
func (c *Client) SetIntent(
	ctx context.Context,
	id AssetID,
	in IntentEventRequest,
) error {
	return c.Do(ctx, post, assetPath(id, "/event/intent"), nil, in, nil)
}

// Intent returns the last intent.
func (c *Client) Intent(
	ctx context.Context,
	id AssetID,
) (IntentResponse, error) {
	return call[IntentResponse](ctx, c, get, assetPath(id, "/intent"), nil, nil)
}

// ChargeNow asks for full power at once, until the end given.
func (c *Client) ChargeNow(
	ctx context.Context,
	id AssetID,
	in ChargeNowEventRequest,
) error {
	return c.Do(ctx, post, assetPath(id, "/event/charge-now"), nil, in, nil)
}

// ChargeNowDeleted takes a charge-now back.
func (c *Client) ChargeNowDeleted(ctx context.Context, id AssetID) error {
	return c.Do(
		ctx,
		post,
		assetPath(id, "/event/charge-now-deleted"),
		nil,
		ChargeNowDeletedEventRequest{},
		nil,
	)
}

// SkipNight has nothing be charged until the deadline of the plan in force.
func (c *Client) SkipNight(ctx context.Context, id AssetID) error {
	return c.Do(ctx, post, assetPath(id, "/event/skip-night"), nil, nil, nil)
}

// SkipNightDeleted takes a skipped night back.
func (c *Client) SkipNightDeleted(ctx context.Context, id AssetID) error {
	return c.Do(
		ctx,
		post,
		assetPath(id, "/event/skip-night-deleted"),
		nil,
		nil,
		nil,
	)
}

// UpdateTariff says that the user's tariff changed.
func (c *Client) UpdateTariff(
	ctx context.Context,
	id AssetID,
	in TariffUpdateEventRequest,
) error {
	return c.Do(ctx, post, assetPath(id, "/event/tariff-update"), nil, in, nil)
}

// PlugInSchedule submits a charging schedule and returns it with at most one pause put in.
func (c *Client) PlugInSchedule(
	ctx context.Context,
	id AssetID,
	in PlugInScheduleEventRequest,
) (PlugInScheduleEventResponse, error) {
	return call[PlugInScheduleEventResponse](
		ctx,
		c,
		post,
		assetPath(id, "/event/plug-in-schedule"),
		nil,
		in,
	)
}

// Callback reports what became of a push or a dispatch.
func (c *Client) Callback(
	ctx context.Context,
	id AssetID,
	event EventID,
	in EventResponse,
) error {
	return c.Do(
		ctx,
		post,
		assetPath(id, "/callback/"+event.String()),
		nil,
		in,
		nil,
	)
}

// AssetPriceCurve returns the prices from now to the horizon.
func (c *Client) AssetPriceCurve(
	ctx context.Context,
	id AssetID,
) (PriceCurveResponse, error) {
	return call[PriceCurveResponse](
		ctx,
		c,
		get,
		assetPath(id, "/price-curve"),
		nil,
		nil,
	)
}

// BatterySchedule returns a battery's active schedule.
func (c *Client) BatterySchedule(
	ctx context.Context,
	id AssetID,
) (BatteryScheduleResponse, error) {
	return call[BatteryScheduleResponse](
		ctx,
		c,
		get,
		assetPath(id, "/battery-schedule"),
		nil,
		nil,
	)
}

// TodaysDispatchSchedule returns a battery's plan of today.
func (c *Client) TodaysDispatchSchedule(
	ctx context.Context,
	id AssetID,
) (PlainDispatchScheduleResponse, error) {
	return call[PlainDispatchScheduleResponse](
		ctx,
		c,
		get,
		assetPath(id, "/todays-dispatch-schedule"),
		nil,
		nil,
	)
}

// KnownHeat returns what was learned of the heat of a heat pump or a hot-water tank.
func (c *Client) KnownHeat(
	ctx context.Context,
	id AssetID,
) (KnownHeatResponse, error) {
	return call[KnownHeatResponse](
		ctx,
		c,
		get,
		assetPath(id, "/heat"),
		nil,
		nil,
	)
}
