package client

import (
	"context"
	"net/url"
	"time"
)

// ComponentToken makes a token for one end user's browser. It is for the origin given alone
// and lives a day; the user's site is made when there is none yet. The consent is the zero
// time where none is to be said, the email empty.
func (c *Client) ComponentToken(
	ctx context.Context,
	externalUserID, origin, email string,
	consent time.Time,
) (ComponentToken, error) {
	form := url.Values{
		"external_user_id": {externalUserID},
		"allowed_origin":   {origin},
	}

	if email != "" {
		form.Set("user_email", email)
	}

	if !consent.IsZero() {
		form.Set(
			"gave_boundary_meter_consent_at",
			consent.UTC().Format(time.RFC3339Nano),
		)
	}

	var out ComponentToken
	err := c.read(ctx, request{
		method:      post,
		path:        "/auth/component-token",
		body:        []byte(form.Encode()),
		contentType: "application/x-www-form-urlencoded",
	}, &out)

	return out, err
}

// MeterMPAN returns the meter that a search result refers to, by the older path.
func (c *Client) MeterMPAN(
	ctx context.Context,
	ref string,
) (MeterResponse, error) {
	return call[MeterResponse](
		ctx,
		c,
		get,
		"/meter/"+url.PathEscape(ref)+"/mpan",
		nil,
		nil,
	)
}

// MeterByAddress returns the one meter of a full address. Where there is none, or more than
// one, the error's Status is 202.
func (c *Client) MeterByAddress(
	ctx context.Context,
	in MeterByAddressRequest,
) (MeterResponse, error) {
	return call[MeterResponse](ctx, c, post, "/meter/by-address", nil, in)
}

// MeterByMPAN returns the meter of an MPAN. Where there is none the error's Status is 202.
func (c *Client) MeterByMPAN(
	ctx context.Context,
	in MeterByMPANRequest,
) (MeterResponse, error) {
	return call[MeterResponse](ctx, c, post, "/meter/by-mpan", nil, in)
}

// LookUpAddress is MeterByAddress by the older path, whose status is 422 where there is no
// such meter.
func (c *Client) LookUpAddress(
	ctx context.Context,
	address string,
) (MeterResponse, error) {
	return call[MeterResponse](
		ctx,
		c,
		get,
		"/meter/",
		url.Values{"address": {address}},
		nil,
	)
}

// LookUpMPAN is MeterByMPAN by the older path, whose status is 422 where there is no such
// meter.
func (c *Client) LookUpMPAN(
	ctx context.Context,
	mpan string,
) (MeterResponse, error) {
	return call[MeterResponse](
		ctx,
		c,
		get,
		"/meter/"+url.PathEscape(mpan),
		nil,
		nil,
	)
}

// OnboardSiteAndAsset registers a site and one asset that are not there yet.
func (c *Client) OnboardSiteAndAsset(
	ctx context.Context,
	in OnboardingRequest,
) (OnboardingResponse, error) {
	return call[OnboardingResponse](
		ctx,
		c,
		post,
		"/entities/site/onboard-site-and-asset",
		nil,
		in,
	)
}

// SetSiteToken gives the credentials of a maker's cloud through which the site is steered.
func (c *Client) SetSiteToken(
	ctx context.Context,
	id SiteID,
	in SiteAuthTokenRequest,
) error {
	return c.Do(ctx, post, sitePath(id, "/token"), nil, in, nil)
}

// InitiateOAuth returns the page of a maker's cloud on which the site's user agrees to be
// steered through it.
func (c *Client) InitiateOAuth(
	ctx context.Context,
	id SiteID,
	provider string,
) (OAuthInitiateResponse, error) {
	return call[OAuthInitiateResponse](
		ctx,
		c,
		get,
		sitePath(id, "/oauth/"+url.PathEscape(provider)+"/initiate"),
		nil,
		nil,
	)
}

// ExampleDispatchEvent returns a dispatch as it is pushed, filled with invented values.
func (c *Client) ExampleDispatchEvent(ctx context.Context) (DispatchEvent, error) {
	return call[DispatchEvent](
		ctx,
		c,
		get,
		"/examples/dispatch-event",
		nil,
		nil,
	)
}

// ExampleChargingProfile returns a charging profile as it is pushed, filled with invented
// values.
func (c *Client) ExampleChargingProfile(ctx context.Context) (SetChargingProfileRequest, error) {
	return call[SetChargingProfileRequest](
		ctx,
		c,
		get,
		"/examples/ocpp-charging-profile",
		nil,
		nil,
	)
}
