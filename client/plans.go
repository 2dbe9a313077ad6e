package client

import (
	"context"
	"net/url"
)

// Schedule returns the schedule in force, or what the client had accepted at an instant.
func (c *Client) Schedule(
	ctx context.Context,
	id AssetID,
	q ScheduleQuery,
) (ScheduleResponse, error) {
	return call[ScheduleResponse](
		ctx,
		c,
		get,
		assetPath(id, "/schedule"),
		queryOf(q),
		nil,
	)
}

// ExplainSchedule says why the schedule is as it is.
func (c *Client) ExplainSchedule(
	ctx context.Context,
	id AssetID,
) (ScheduleExplanation, error) {
	return call[ScheduleExplanation](
		ctx,
		c,
		get,
		assetPath(id, "/schedule/explanation"),
		nil,
		nil,
	)
}

// ChargingRate returns the power that an asset really draws, and what that was learned from.
func (c *Client) ChargingRate(
	ctx context.Context,
	id AssetID,
) (ChargingRateResponse, error) {
	return call[ChargingRateResponse](
		ctx,
		c,
		get,
		assetPath(id, "/charging-rate"),
		nil,
		nil,
	)
}

// Sessions lists an asset's plug sessions.
func (c *Client) Sessions(
	ctx context.Context,
	id AssetID,
	p Page,
) (SessionResponsePage, error) {
	return call[SessionResponsePage](
		ctx,
		c,
		get,
		assetPath(id, "/sessions"),
		p.query(),
		nil,
	)
}

// WhatIf returns what would be planned, for each of several intents.
func (c *Client) WhatIf(
	ctx context.Context,
	in WhatIfRequest,
) (WhatIfResponse, error) {
	return call[WhatIfResponse](ctx, c, post, "/what-if", nil, in)
}

// TariffEvent is UpdateTariff by its other name.
func (c *Client) TariffEvent(
	ctx context.Context,
	id AssetID,
	in TariffUpdateEventRequest,
) error {
	return c.Do(ctx, post, assetPath(id, "/event/tariff"), nil, in, nil)
}

// Forecast returns what a home was expected to draw and give on a day, and what came of it.
func (c *Client) Forecast(
	ctx context.Context,
	id SiteID,
	q ForecastQuery,
) (ForecastResponse, error) {
	return call[ForecastResponse](
		ctx,
		c,
		get,
		sitePath(id, "/forecast"),
		queryOf(q),
		nil,
	)
}

// Curves returns a day's prices in force, and every publication they could be made from.
func (c *Client) Curves(
	ctx context.Context,
	q CurvesQuery,
) (CurvesResponse, error) {
	return call[CurvesResponse](ctx, c, get, "/market/curves", queryOf(q), nil)
}

// Statement returns what a site earned, when and why. What Format asks for is passed over.
func (c *Client) Statement(
	ctx context.Context,
	id SiteID,
	q StatementQuery,
) (StatementResponse, error) {
	q.Format = ""
	return call[StatementResponse](
		ctx,
		c,
		get,
		"/rewards/"+id.String()+"/statement",
		queryOf(q),
		nil,
	)
}

// HeldReadings lists readings that no device can have measured, the newest first.
func (c *Client) HeldReadings(
	ctx context.Context,
	q HeldListQuery,
) (HeldReadingPage, error) {
	return call[HeldReadingPage](
		ctx,
		c,
		get,
		"/data/readings/held",
		queryOf(q),
		nil,
	)
}

// ReleaseHeld has a reading count that was not believed.
func (c *Client) ReleaseHeld(
	ctx context.Context,
	id HeldID,
	in HeldReleaseRequest,
) (HeldReading, error) {
	return call[HeldReading](
		ctx,
		c,
		post,
		"/data/readings/held/"+id.String()+"/release",
		nil,
		in,
	)
}

// Gaps lists the half-hours of a site that lack a reading.
func (c *Client) Gaps(ctx context.Context, q GapsQuery) (GapsResponse, error) {
	return call[GapsResponse](ctx, c, get, "/data/gaps", queryOf(q), nil)
}

// Exceptions lists what of the organisation needs looking at.
func (c *Client) Exceptions(ctx context.Context) (ExceptionsResponse, error) {
	return call[ExceptionsResponse](
		ctx,
		c,
		get,
		"/operations/exceptions",
		nil,
		nil,
	)
}

// Alerts lists the exceptions of the organisation that an operator was, or would be, woken for.
func (c *Client) Alerts(
	ctx context.Context,
	q AlertListQuery,
) (AlertListResponse, error) {
	return call[AlertListResponse](
		ctx,
		c,
		get,
		"/operations/alerts",
		queryOf(q),
		nil,
	)
}

// AcknowledgeAlert says that somebody looks after a firing alert, and returns it as it is then.
func (c *Client) AcknowledgeAlert(
	ctx context.Context,
	id AlertID,
	said AlertAcknowledgement,
) (Alert, error) {
	return call[Alert](
		ctx,
		c,
		post,
		"/operations/alerts/"+id.String()+"/acknowledge",
		nil,
		said,
	)
}

// SnoozeAlert has a firing alert rest for a time, and returns it as it is then.
func (c *Client) SnoozeAlert(
	ctx context.Context,
	id AlertID,
	said AlertSnooze,
) (Alert, error) {
	return call[Alert](
		ctx,
		c,
		post,
		"/operations/alerts/"+id.String()+"/snooze",
		nil,
		said,
	)
}

// FleetView is the organisation's fleet as it is now, what it will draw, and what needs looking at.
func (c *Client) FleetView(ctx context.Context) (FleetView, error) {
	return call[FleetView](ctx, c, get, "/operations/fleet", nil, nil)
}

// AssetView is an asset as it is, with its schedules and why.
func (c *Client) AssetView(
	ctx context.Context,
	id AssetID,
	q AssetViewQuery,
) (AssetView, error) {
	return call[AssetView](
		ctx,
		c,
		get,
		"/operations/asset/"+id.String(),
		queryOf(q),
		nil,
	)
}

// SiteView is a site with its assets, its consents and enrolments, and its metering point.
func (c *Client) SiteView(ctx context.Context, id SiteID) (SiteView, error) {
	return call[SiteView](
		ctx,
		c,
		get,
		"/operations/site/"+id.String(),
		nil,
		nil,
	)
}

// AdvanceClock turns the sandbox clock forward by an ISO 8601 duration such as PT8H.
func (c *Client) AdvanceClock(
	ctx context.Context,
	by string,
) (ClockResponse, error) {
	return call[ClockResponse](
		ctx,
		c,
		post,
		"/sandbox/clock",
		nil,
		ClockRequest{Advance: by},
	)
}

// TurnClock turns the sandbox clock forward to the next instant at which London's clocks show
// a time of day.
func (c *Client) TurnClock(
	ctx context.Context,
	to WallTime,
) (ClockResponse, error) {
	return call[ClockResponse](
		ctx,
		c,
		post,
		"/sandbox/clock",
		nil,
		ClockRequest{LocalTime: &to},
	)
}

// Live returns nil while the process answers. It needs no credentials.
func (c *Client) Live(ctx context.Context) error {
	return c.read(ctx, request{
		method: get,
		path:   "/healthz",
		open:   true,
	}, nil)
}

// Ready returns nil while the service can do its work. It needs no credentials.
func (c *Client) Ready(ctx context.Context) error {
	return c.read(ctx, request{
		method: get,
		path:   "/readyz",
		open:   true,
	}, nil)
}

// endpointPath is the path of an endpoint: schedule or dispatch.
func endpointPath(name, rest string) string {
	return "/endpoints/" + url.PathEscape(name) + rest
}

// Endpoint returns where an endpoint's pushes go.
func (c *Client) Endpoint(
	ctx context.Context,
	name string,
) (EndpointResponse, error) {
	return call[EndpointResponse](ctx, c, get, endpointPath(name, ""), nil, nil)
}

// PutEndpoint says where an endpoint's pushes go. The answer holds the secret when it was
// made now.
func (c *Client) PutEndpoint(
	ctx context.Context,
	name string,
	in EndpointRequest,
) (EndpointResponse, error) {
	return call[EndpointResponse](ctx, c, put, endpointPath(name, ""), nil, in)
}

// DeleteEndpoint ends the pushes to an endpoint.
func (c *Client) DeleteEndpoint(ctx context.Context, name string) error {
	return c.Do(ctx, remove, endpointPath(name, ""), nil, nil, nil)
}

// TestEndpoint sends an endpoint a signed test and returns what it answered.
func (c *Client) TestEndpoint(
	ctx context.Context,
	name string,
) (EndpointTestResponse, error) {
	return call[EndpointTestResponse](
		ctx,
		c,
		post,
		endpointPath(name, "/test"),
		nil,
		nil,
	)
}

// RotateEndpoint gives an endpoint a new secret; the old one signs beside it for a time.
func (c *Client) RotateEndpoint(
	ctx context.Context,
	name string,
) (EndpointResponse, error) {
	return call[EndpointResponse](
		ctx,
		c,
		post,
		endpointPath(name, "/rotate"),
		nil,
		nil,
	)
}

// Deliveries lists pushes and their fate.
func (c *Client) Deliveries(
	ctx context.Context,
	q DeliveryListQuery,
) (DeliveryResponsePage, error) {
	return call[DeliveryResponsePage](
		ctx,
		c,
		get,
		"/deliveries",
		queryOf(q),
		nil,
	)
}

// Delivery returns a push with its body and its attempts.
func (c *Client) Delivery(
	ctx context.Context,
	id EventID,
) (DeliveryDetail, error) {
	return call[DeliveryDetail](
		ctx,
		c,
		get,
		"/deliveries/"+id.String(),
		nil,
		nil,
	)
}

// Replay sends a push once more.
func (c *Client) Replay(
	ctx context.Context,
	id EventID,
) (DeliveryResponse, error) {
	return call[DeliveryResponse](
		ctx,
		c,
		post,
		"/deliveries/"+id.String()+"/replay",
		nil,
		nil,
	)
}

// Caps returns what binds the organisation's assets to each other.
func (c *Client) Caps(ctx context.Context) (Caps, error) {
	return call[Caps](ctx, c, get, "/caps", nil, nil)
}

// SetCaps replaces it.
func (c *Client) SetCaps(ctx context.Context, in Caps) (Caps, error) {
	return call[Caps](ctx, c, put, "/caps", nil, in)
}

// ClearCaps ends it.
func (c *Client) ClearCaps(ctx context.Context) error {
	return c.Do(ctx, remove, "/caps", nil, nil, nil)
}

// Envelope returns the least and the most that plugged-in assets can draw, with every need
// met. What Format asks for is passed over.
func (c *Client) Envelope(
	ctx context.Context,
	q EnvelopeQuery,
) (EnvelopeResponse, error) {
	q.Format = ""
	return call[EnvelopeResponse](
		ctx,
		c,
		get,
		"/grid/envelope",
		queryOf(q),
		nil,
	)
}

// Ahead returns what the fleet will draw on a day, could leave out and could draw more, at least.
// What Format asks for is passed over.
func (c *Client) Ahead(
	ctx context.Context,
	q AheadQuery,
) (AheadResponse, error) {
	q.Format = ""
	return call[AheadResponse](ctx, c, get, "/grid/ahead", queryOf(q), nil)
}

// Offer keeps an offer of a window; with DryRun it says what can be offered.
func (c *Client) Offer(
	ctx context.Context,
	in OfferRequest,
	q OfferQuery,
) (OfferStack, error) {
	return call[OfferStack](ctx, c, post, "/grid/offers", queryOf(q), in)
}

// Offers returns a page of offers, the newest first. What Format asks for is passed over.
func (c *Client) Offers(
	ctx context.Context,
	q OfferListQuery,
) (OfferPage, error) {
	q.Format = ""
	return call[OfferPage](ctx, c, get, "/grid/offers", queryOf(q), nil)
}

// AcceptOffer makes an instruction of an offer; with DryRun it says what that would do.
func (c *Client) AcceptOffer(
	ctx context.Context,
	id OfferID,
	in OfferAcceptRequest,
	q OfferQuery,
) (InstructionPreview, error) {
	return call[InstructionPreview](
		ctx,
		c,
		post,
		"/grid/offers/"+id.String()+"/accept",
		queryOf(q),
		in,
	)
}

// FeederLimits returns what limits constraint groups now and later, and the links on which that comes.
func (c *Client) FeederLimits(
	ctx context.Context,
	q LimitsQuery,
) (FeederLimits, error) {
	return call[FeederLimits](ctx, c, get, "/grid/limits", queryOf(q), nil)
}

// SetFeederLimits replaces what was given before of the groups and directions that are named.
func (c *Client) SetFeederLimits(
	ctx context.Context,
	in FeederLimitsRequest,
) (FeederLimits, error) {
	return call[FeederLimits](ctx, c, put, "/grid/limits", nil, in)
}

// ClearFeederLimits takes away what was given of a group.
func (c *Client) ClearFeederLimits(ctx context.Context, group string) error {
	q := queryOf(LimitGroupQuery{Group: group})
	return c.Do(ctx, remove, "/grid/limits", q, nil, nil)
}

// SetLimitLink has a fallback bind a group when nothing is heard of whoever limits it.
func (c *Client) SetLimitLink(
	ctx context.Context,
	in LimitLinkRequest,
) (FeederLimits, error) {
	return call[FeederLimits](ctx, c, put, "/grid/limit-links", nil, in)
}

// ClearLimitLink ends that.
func (c *Client) ClearLimitLink(ctx context.Context, group string) error {
	q := queryOf(LimitGroupQuery{Group: group})
	return c.Do(ctx, remove, "/grid/limit-links", q, nil, nil)
}

// HearLimitLink is a sign of life of whoever limits a group.
func (c *Client) HearLimitLink(ctx context.Context, group string) error {
	return c.Do(
		ctx,
		post,
		"/grid/limit-links/heard",
		nil,
		LimitHeardRequest{Group: group},
		nil,
	)
}

// AskProfile says whether the assets can draw a profile.
func (c *Client) AskProfile(
	ctx context.Context,
	in ProfileRequest,
	q ProfileQuery,
) (ProfileResponse, error) {
	return call[ProfileResponse](ctx, c, post, "/grid/profile", queryOf(q), in)
}

// Instruct has a part of the fleet draw less or more for a time; with DryRun it says what
// that would do.
func (c *Client) Instruct(
	ctx context.Context,
	in InstructionRequest,
	q InstructionQuery,
) (InstructionPreview, error) {
	return call[InstructionPreview](
		ctx,
		c,
		post,
		"/grid/instructions",
		queryOf(q),
		in,
	)
}

// Instructions lists the instructions that there were, the newest first.
func (c *Client) Instructions(
	ctx context.Context,
	q InstructionListQuery,
) (InstructionPage, error) {
	return call[InstructionPage](
		ctx,
		c,
		get,
		"/grid/instructions",
		queryOf(q),
		nil,
	)
}

// Instruction returns an instruction's report. What Format asks for is passed over.
func (c *Client) Instruction(
	ctx context.Context,
	id InstructionID,
	q InstructionReportQuery,
) (InstructionReport, error) {
	q.Format = ""
	return call[InstructionReport](
		ctx,
		c,
		get,
		"/grid/instructions/"+id.String(),
		queryOf(q),
		nil,
	)
}

// StopInstruction stops one instruction at once.
func (c *Client) StopInstruction(
	ctx context.Context,
	id InstructionID,
) (Instruction, error) {
	return call[Instruction](
		ctx,
		c,
		post,
		"/grid/instructions/"+id.String()+"/stop",
		nil,
		nil,
	)
}

// StopInstructions stops all instructions at once.
func (c *Client) StopInstructions(ctx context.Context) (InstructionsStopped, error) {
	return call[InstructionsStopped](
		ctx,
		c,
		post,
		"/grid/instructions/stop",
		nil,
		nil,
	)
}

// ActOnAssets does one thing to many of the organisation's assets, or says what would become of each.
func (c *Client) ActOnAssets(
	ctx context.Context,
	what SelectionRequest,
	q SelectionQuery,
) (SelectionResult, error) {
	return call[SelectionResult](
		ctx,
		c,
		post,
		"/operations/assets/act",
		queryOf(q),
		what,
	)
}

// OffboardAssets takes assets away for good, once it is given what its dry run asks to confirm it with.
func (c *Client) OffboardAssets(
	ctx context.Context,
	which OffboardRequest,
	q SelectionQuery,
) (SelectionResult, error) {
	return call[SelectionResult](
		ctx,
		c,
		post,
		"/operations/assets/offboard",
		queryOf(q),
		which,
	)
}
