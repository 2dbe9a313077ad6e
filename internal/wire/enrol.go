package wire

import "flexd/internal/flex"

// EnrolRequest is the body of POST /entities/site/{site_id}/enrol.
type EnrolRequest struct {
	Proposition flex.Proposition `json:"proposition" wire:"required,enum=Proposition"`
	// Enrol a site that has left the proposition before.
	//
	//openapi:merge {"default": false}
	OverrideWithdrawal bool `json:"override_withdrawal"`
	// With an offset. Replaces the one that is stored.
	GaveBoundaryMeterConsentAt Time `json:"gave_boundary_meter_consent_at,omitzero" wire:"zoned"`
}

// EnrolResponse answers it: enrolled or already_enrolled.
type EnrolResponse struct {
	SiteID flex.SiteID `json:"site_id"`
	Status string      `json:"status" wire:"enum=EnrolStatus"`
}

// UnenrolRequest is the body of POST /entities/site/{site_id}/unenrol.
type UnenrolRequest struct {
	Proposition flex.Proposition `json:"proposition" wire:"required,enum=Proposition"`
}

// UnenrolResponse answers it: unenrolled or already_unenrolled.
type UnenrolResponse struct {
	SiteID flex.SiteID `json:"site_id"`
	Status string      `json:"status" wire:"enum=UnenrolStatus"`
}

// InitialiseRequest is the body of POST /entities/site/initialise.
type InitialiseRequest struct {
	Site   SiteRequest              `json:"site" wire:"required"`
	Assets []OnboardingAssetRequest `json:"assets" wire:"required,nonempty,items=100"`
}

// InitialiseResponse answers it.
type InitialiseResponse struct {
	Site        InitialiseSiteResult    `json:"site"`
	Assets      []InitialiseAssetResult `json:"assets"`
	Eligibility SiteEligibilityDetail   `json:"eligibility"`
}

// InitialiseSiteResult says what became of the site.
type InitialiseSiteResult struct {
	SiteID      flex.SiteID `json:"site_id"`
	SiteCreated bool        `json:"site_created"`
	//openapi:optional
	FieldsUpdated []string `json:"fields_updated"`
	// What was given and not taken.
	//
	//openapi:optional
	Warnings []string `json:"warnings"`
}

// InitialiseAssetResult says what became of an asset.
type InitialiseAssetResult struct {
	AssetID      flex.AssetID `json:"asset_id"`
	ExternalID   string       `json:"external_id"`
	AssetCreated bool         `json:"asset_created"`
	//openapi:optional
	FieldsUpdated []string `json:"fields_updated"`
	// What was given and not taken.
	//
	//openapi:optional
	Warnings []string `json:"warnings"`
}

// OnboardRequest is the body of POST /entities/site/onboard.
type OnboardRequest struct {
	Site        SiteRequest              `json:"site" wire:"required"`
	Assets      []OnboardingAssetRequest `json:"assets" wire:"required,nonempty,items=100"`
	Proposition flex.Proposition         `json:"proposition" wire:"required,enum=Proposition"`
	//openapi:merge {"default": false}
	OverrideWithdrawal bool `json:"override_withdrawal"`
}

// OnboardResponse answers it.
type OnboardResponse struct {
	Site      InitialiseSiteResult    `json:"site"`
	Assets    []InitialiseAssetResult `json:"assets"`
	Enrolment EnrolResponse           `json:"enrolment"`
}

// OnboardingRequest is the body of the deprecated POST /entities/site/onboard-site-and-asset.
type OnboardingRequest struct {
	Site            SiteRequest                `json:"site" wire:"required"`
	Asset           OnboardingAssetRequest     `json:"asset" wire:"required"`
	DispatchConsent SiteDispatchConsentRequest `json:"dispatch_consent" wire:"required"`
}

// OnboardingResponse answers it, and the offboarding of a site. Assets is ours: the
// interface has room for one.
type OnboardingResponse struct {
	Site SiteResponse `json:"site"`
	// Absent only where a site without assets was removed.
	Asset *AssetResponse `json:"asset,omitzero"`
	// All of them, where there may be several.
	//
	//openapi:addition
	Assets []AssetResponse `json:"assets,omitzero"`
}
