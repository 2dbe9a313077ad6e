package client

import "context"

// DischargeConsent returns the consent to discharge a site's cars, with its history.
func (c *Client) DischargeConsent(
	ctx context.Context,
	id SiteID,
) (DischargeConsentResponse, error) {
	return call[DischargeConsentResponse](
		ctx,
		c,
		get,
		sitePath(id, "/discharge-consent"),
		nil,
		nil,
	)
}

// GiveDischargeConsent records the user's consent to discharge a site's cars.
func (c *Client) GiveDischargeConsent(
	ctx context.Context,
	id SiteID,
	in SiteDischargeConsentRequest,
) (SiteResponse, error) {
	return call[SiteResponse](
		ctx,
		c,
		post,
		sitePath(id, "/discharge-consent"),
		nil,
		in,
	)
}

// WithdrawDischargeConsent ends that consent.
func (c *Client) WithdrawDischargeConsent(
	ctx context.Context,
	id SiteID,
) (SiteResponse, error) {
	return call[SiteResponse](
		ctx,
		c,
		remove,
		sitePath(id, "/discharge-consent"),
		nil,
		nil,
	)
}
