package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Page asks for a part of a list. The zero value asks for the first 10.
type Page struct{ Limit, Offset int }

func (p Page) query() url.Values {
	q := url.Values{}
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}

	if p.Offset != 0 {
		q.Set("offset", strconv.Itoa(p.Offset))
	}

	return q
}

const get, post, put, patch, remove = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete

func sitePath(id SiteID, rest string) string {
	return "/entities/site/" + id.String() + rest
}
func assetPath(id AssetID, rest string) string {
	return "/entities/asset/" + id.String() + rest
}

// Me returns the name and roles of the credentials in use.
func (c *Client) Me(ctx context.Context) (User, error) {
	return call[User](ctx, c, get, "/auth/users/me/", nil, nil)
}

// Onboard registers a site and its assets and enrols the site, all or nothing. It may be
// repeated.
func (c *Client) Onboard(
	ctx context.Context,
	in OnboardRequest,
) (OnboardResponse, error) {
	return call[OnboardResponse](
		ctx,
		c,
		post,
		"/entities/site/onboard",
		nil,
		in,
	)
}

// Initialise registers a site and its assets and says what it is eligible for.
func (c *Client) Initialise(
	ctx context.Context,
	in InitialiseRequest,
) (InitialiseResponse, error) {
	return call[InitialiseResponse](
		ctx,
		c,
		post,
		"/entities/site/initialise",
		nil,
		in,
	)
}

// CheckEligibility says what an MPAN, with or without an asset model, is eligible for.
func (c *Client) CheckEligibility(
	ctx context.Context,
	in EligibilityCheckRequest,
) (EligibilityCheckResponse, error) {
	return call[EligibilityCheckResponse](
		ctx,
		c,
		post,
		"/entities/site/check-eligibility",
		nil,
		in,
	)
}

// Sites lists the organisation's sites; mpan and postcode filter unless empty.
func (c *Client) Sites(
	ctx context.Context,
	mpan, postcode string,
	p Page,
) (SiteResponsePage, error) {
	q := p.query()
	if mpan != "" {
		q.Set("mpan", mpan)
	}

	if postcode != "" {
		q.Set("postcode", postcode)
	}

	return call[SiteResponsePage](ctx, c, get, "/entities/site", q, nil)
}

// CreateSite registers a site.
func (c *Client) CreateSite(
	ctx context.Context,
	in SiteRequest,
) (SiteResponse, error) {
	return call[SiteResponse](ctx, c, post, "/entities/site", nil, in)
}

// Site returns a site.
func (c *Client) Site(ctx context.Context, id SiteID) (SiteResponse, error) {
	return call[SiteResponse](ctx, c, get, sitePath(id, ""), nil, nil)
}

// UpdateSite changes the fields that are given.
func (c *Client) UpdateSite(
	ctx context.Context,
	id SiteID,
	in SiteUpdateRequest,
) (SiteResponse, error) {
	return call[SiteResponse](ctx, c, patch, sitePath(id, ""), nil, in)
}

// DeleteSite removes a site that has no assets.
func (c *Client) DeleteSite(ctx context.Context, id SiteID) error {
	return c.Do(ctx, remove, sitePath(id, ""), nil, nil, nil)
}

// Eligibility says what a site and its assets are eligible for, and what stands in the way.
func (c *Client) Eligibility(
	ctx context.Context,
	id SiteID,
) (SiteEligibilityDetail, error) {
	return call[SiteEligibilityDetail](
		ctx,
		c,
		get,
		sitePath(id, "/eligibility"),
		nil,
		nil,
	)
}

// Enrol enrols a site in a proposition.
func (c *Client) Enrol(
	ctx context.Context,
	id SiteID,
	in EnrolRequest,
) (EnrolResponse, error) {
	return call[EnrolResponse](ctx, c, post, sitePath(id, "/enrol"), nil, in)
}

// Unenrol takes a site out of one proposition.
func (c *Client) Unenrol(
	ctx context.Context,
	id SiteID,
	in UnenrolRequest,
) (UnenrolResponse, error) {
	return call[UnenrolResponse](
		ctx,
		c,
		post,
		sitePath(id, "/unenrol"),
		nil,
		in,
	)
}

// Offboard ends everything: enrolments, site and assets.
func (c *Client) Offboard(
	ctx context.Context,
	id SiteID,
) (OnboardingResponse, error) {
	return call[OnboardingResponse](
		ctx,
		c,
		post,
		sitePath(id, "/offboard-site-and-assets"),
		nil,
		nil,
	)
}

// MeterConsent records the user's consent to use the boundary meter.
func (c *Client) MeterConsent(
	ctx context.Context,
	id SiteID,
	in SiteMeterConsentRequest,
) (SiteResponse, error) {
	return call[SiteResponse](
		ctx,
		c,
		post,
		sitePath(id, "/meter-consent"),
		nil,
		in,
	)
}

// WithdrawMeterConsent ends the use of the boundary meter.
func (c *Client) WithdrawMeterConsent(
	ctx context.Context,
	id SiteID,
) (SiteResponse, error) {
	return call[SiteResponse](
		ctx,
		c,
		remove,
		sitePath(id, "/meter-consent"),
		nil,
		nil,
	)
}

// DispatchConsent records consent to dispatch methods.
func (c *Client) DispatchConsent(
	ctx context.Context,
	id SiteID,
	in SiteDispatchConsentRequest,
) (SiteResponse, error) {
	return call[SiteResponse](
		ctx,
		c,
		post,
		sitePath(id, "/dispatch-consent"),
		nil,
		in,
	)
}

// DispatchDeconsent withdraws consent to dispatch methods.
func (c *Client) DispatchDeconsent(
	ctx context.Context,
	id SiteID,
	in SiteDispatchConsentRequest,
) (SiteResponse, error) {
	return call[SiteResponse](
		ctx,
		c,
		post,
		sitePath(id, "/dispatch-deconsent"),
		nil,
		in,
	)
}

// FlexEvents lists a site's flex events.
func (c *Client) FlexEvents(
	ctx context.Context,
	id SiteID,
) (SiteFlexEventsResponse, error) {
	return call[SiteFlexEventsResponse](
		ctx,
		c,
		get,
		sitePath(id, "/flex-events"),
		nil,
		nil,
	)
}

// IssueHouseholdToken returns a token with which a household's own program may ask what is planned at the
// site, and nothing else. It ends the one before.
func (c *Client) IssueHouseholdToken(
	ctx context.Context,
	id SiteID,
) (HouseholdToken, error) {
	return call[HouseholdToken](
		ctx,
		c,
		post,
		sitePath(id, "/home-assistant-token"),
		nil,
		nil,
	)
}

// EndHouseholdToken ends a site's household token, if it has one.
func (c *Client) EndHouseholdToken(ctx context.Context, id SiteID) error {
	return c.Do(
		ctx,
		http.MethodDelete,
		sitePath(id, "/home-assistant-token"),
		nil,
		nil,
		nil,
	)
}

// HouseholdEvent returns what a household's own program is shown of the site: what is under way or comes
// next, nil if nothing is planned.
func (c *Client) HouseholdEvent(
	ctx context.Context,
	id SiteID,
) (*HouseholdEvent, error) {
	return call[*HouseholdEvent](
		ctx,
		c,
		get,
		"/vpp/home-assistant/event",
		url.Values{"site_id": {id.String()}},
		nil,
	)
}

// SitePriceCurve returns the prices from now to the horizon.
func (c *Client) SitePriceCurve(
	ctx context.Context,
	id SiteID,
) (PriceCurveResponse, error) {
	return call[PriceCurveResponse](
		ctx,
		c,
		get,
		sitePath(id, "/price-curve"),
		nil,
		nil,
	)
}

// SolarForecast says what a site's roof is expected to give.
func (c *Client) SolarForecast(
	ctx context.Context,
	id SiteID,
) (SolarForecastResponse, error) {
	return call[SolarForecastResponse](
		ctx,
		c,
		get,
		sitePath(id, "/solar-forecast"),
		nil,
		nil,
	)
}

// SetSolarForecast says what a site's roof will give, in the place of what was said before.
func (c *Client) SetSolarForecast(
	ctx context.Context,
	id SiteID,
	in SolarForecast,
) (SolarForecastResponse, error) {
	return call[SolarForecastResponse](
		ctx,
		c,
		http.MethodPut,
		sitePath(id, "/solar-forecast"),
		nil,
		in,
	)
}

// PostReadings sends readings; the answer has a verdict for each, in the same order.
func (c *Client) PostReadings(
	ctx context.Context,
	readings []ReadingDataPoint,
) (ReadingsResponse, error) {
	return call[ReadingsResponse](
		ctx,
		c,
		post,
		"/data/readings",
		nil,
		ReadingsDataPoints{Readings: readings},
	)
}

// Transactions lists what a site was credited and paid, newest first.
func (c *Client) Transactions(
	ctx context.Context,
	id SiteID,
	p Page,
) (TransactionDataResponse, error) {
	return call[TransactionDataResponse](
		ctx,
		c,
		get,
		"/rewards/"+id.String()+"/transactions",
		p.query(),
		nil,
	)
}

// Balance returns a site's balance and the rules of withdrawal.
func (c *Client) Balance(
	ctx context.Context,
	id SiteID,
) (BalanceInfoResponse, error) {
	return call[BalanceInfoResponse](
		ctx,
		c,
		get,
		"/rewards/"+id.String()+"/info",
		nil,
		nil,
	)
}

// BalanceURL returns the address of a page where the site's user sees and withdraws the
// balance; redirectURI is where the page leads back to.
func (c *Client) BalanceURL(
	ctx context.Context,
	id SiteID,
	redirectURI string,
) (BalanceWithdrawalURLResponse, error) {
	return call[BalanceWithdrawalURLResponse](
		ctx,
		c,
		get,
		"/rewards/"+id.String()+"/url/balance",
		url.Values{"redirect_uri": {redirectURI}},
		nil,
	)
}

// ValidateMPAN says whether an MPAN names a connected import meter.
func (c *Client) ValidateMPAN(ctx context.Context, mpan string) (bool, error) {
	a, err := call[MPANValidationResponse](
		ctx,
		c,
		post,
		"/validation/mpan",
		nil,
		MPANValidationRequest{MPAN: mpan},
	)

	return a.IsValid, err
}

// SearchMeters lists the meters of a postcode for a person to pick from.
func (c *Client) SearchMeters(
	ctx context.Context,
	postcode, building string,
) ([]MeterSearchResponse, error) {
	q := url.Values{"postcode": {postcode}}
	if building != "" {
		q.Set("building_identifier", building)
	}

	return call[[]MeterSearchResponse](ctx, c, get, "/meter/search", q, nil)
}

// MeterByRef returns the meter that a search result refers to.
func (c *Client) MeterByRef(
	ctx context.Context,
	ref string,
) (MeterResponse, error) {
	return call[MeterResponse](
		ctx,
		c,
		get,
		"/meter/by-ref/"+url.PathEscape(ref),
		nil,
		nil,
	)
}

// SetEndpoint says where charging profiles are pushed to. The answer holds the secret when
// it was made now; keep it, it is not shown again.
func (c *Client) SetEndpoint(
	ctx context.Context,
	in EndpointRequest,
) (EndpointResponse, error) {
	return call[EndpointResponse](
		ctx,
		c,
		http.MethodPut,
		"/endpoints/schedule",
		nil,
		in,
	)
}

// Clock returns the organisation's time in the sandbox.
func (c *Client) Clock(ctx context.Context) (time.Time, error) {
	a, err := call[ClockResponse](ctx, c, get, "/sandbox/clock", nil, nil)
	return a.Now.Time, err
}

// SetClock turns the sandbox clock forward to the instant and returns when all that was due
// on the way has been done.
func (c *Client) SetClock(
	ctx context.Context,
	to time.Time,
) (time.Time, error) {
	a, err := call[ClockResponse](
		ctx,
		c,
		post,
		"/sandbox/clock",
		nil,
		ClockRequest{Now: At(to)},
	)

	return a.Now.Time, err
}
