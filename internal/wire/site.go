package wire

import "flexd/internal/flex"

// SiteRequest is the body of POST /entities/site, and the site of an onboarding.
type SiteRequest struct {
	MPAN                       string   `json:"mpan" wire:"required,nonempty"`
	Postcode                   string   `json:"postcode" wire:"required,nonempty"`
	StreetAddress              string   `json:"street_address,omitzero"`
	Email                      string   `json:"email,omitzero"`
	GaveBoundaryMeterConsentAt Time     `json:"gave_boundary_meter_consent_at,omitzero" wire:"zoned"`
	ImportCapacityKW           *float64 `json:"import_capacity_kw,omitzero" wire:"min=1,max=10000"`
	ExportCapacityKW           *float64 `json:"export_capacity_kw,omitzero" wire:"min=0,max=10000"`
}

// SiteUpdateRequest is the body of PATCH /entities/site/{site_id}; what is nil stays.
type SiteUpdateRequest struct {
	Tariff           *TariffRequest `json:"tariff,omitzero"`
	Address          *string        `json:"address,omitzero"`
	Postcode         *string        `json:"postcode,omitzero" wire:"nonempty"`
	MPAN             *string        `json:"mpan,omitzero" wire:"nonempty"`
	Email            *string        `json:"email,omitzero"`
	ImportCapacityKW *float64       `json:"import_capacity_kw,omitzero" wire:"min=1,max=10000"`
	ExportCapacityKW *float64       `json:"export_capacity_kw,omitzero" wire:"min=0,max=10000"`
	CapacityFrom     *Day           `json:"capacity_from,omitzero"` // London; nil: from now on
}

// TariffRequest is the tariff of a site, which is apart from the assets' own.
type TariffRequest struct {
	TariffType           flex.TariffType `json:"tariff_type" wire:"required,enum=TariffType"`
	TariffCheapStartTime *WallTime       `json:"tariff_cheap_start_time,omitzero"`
	TariffCheapEndTime   *WallTime       `json:"tariff_cheap_end_time,omitzero"`
}

// TariffResponse shows it.
type TariffResponse struct {
	TariffType           flex.TariffType `json:"tariff_type,omitzero" wire:"enum=TariffType"`
	TariffCheapStartTime *WallTime       `json:"tariff_cheap_start_time,omitzero"`
	TariffCheapEndTime   *WallTime       `json:"tariff_cheap_end_time,omitzero"`
}

// SiteResponse is a site.
type SiteResponse struct {
	ID                         flex.SiteID           `json:"id"`
	MPAN                       string                `json:"mpan,omitzero"`
	Postcode                   string                `json:"postcode,omitzero"`
	Address                    string                `json:"address,omitzero"`
	AssetIDs                   []flex.AssetID        `json:"asset_ids"`
	Markets                    []string              `json:"markets" wire:"enum=MarketResponse"`
	DispatchMethods            []flex.DispatchMethod `json:"dispatch_methods" wire:"enum=DispatchMethod"`
	Tariff                     *TariffResponse       `json:"tariff,omitzero"`
	GaveBoundaryMeterConsentAt Time                  `json:"gave_boundary_meter_consent_at,omitzero"`
	ImportCapacityKW           float64               `json:"import_capacity_kw"`
	ExportCapacityKW           float64               `json:"export_capacity_kw"`
	CapacitySource             string                `json:"capacity_source" wire:"enum=CapacitySource"`
}

// SiteListQuery holds the parameters of GET /entities/site; an empty filter takes all.
type SiteListQuery struct {
	MPAN     string `json:"mpan"`
	Postcode string `json:"postcode"`
	Limit    int    `json:"limit" wire:"min=1,max=5000,default=10"`
	Offset   int    `json:"offset" wire:"min=0,default=0"`
}

// SiteResponsePage is one page of sites.
type SiteResponsePage struct {
	Sites         []SiteResponse `json:"sites"`
	TotalNumSites int            `json:"total_num_sites"`
	TotalNumPages int            `json:"total_num_pages"`
	PageNumber    int            `json:"page_number"` // from 1
}

// SitePath holds the path parameter of a site.
type SitePath struct {
	SiteID flex.SiteID `json:"site_id" wire:"required"`
}

// OAuthPath holds the path parameters of GET /entities/site/{site_id}/oauth/{provider}/initiate.
type OAuthPath struct {
	SiteID   flex.SiteID `json:"site_id" wire:"required"`
	Provider string      `json:"provider" wire:"required,enum=OAuthProvider"`
}

// OAuthInitiateResponse answers it.
type OAuthInitiateResponse struct {
	AuthorizationURL string `json:"authorization_url"`
}

// EligibilityCheckRequest is the body of POST /entities/site/check-eligibility.
type EligibilityCheckRequest struct {
	MPAN       string `json:"mpan" wire:"required,nonempty"`
	AssetModel string `json:"asset_model,omitzero"`
}

// EligibilityCheckResponse answers it.
type EligibilityCheckResponse struct {
	IsHalfHourlySettled bool                     `json:"is_half_hourly_settled"`
	Propositions        []PropositionEligibility `json:"propositions"`
}

// PropositionEligibility says whether a proposition is open, and what stands in its way.
type PropositionEligibility struct {
	Proposition flex.Proposition `json:"proposition" wire:"enum=Proposition"`
	IsEligible  bool             `json:"is_eligible"`
	Issues      []string         `json:"issues" wire:"enum=EligibilityCode"`
}

// SiteEligibilityDetail answers GET /entities/site/{site_id}/eligibility.
type SiteEligibilityDetail struct {
	EligiblePropositions []flex.Proposition       `json:"eligible_propositions" wire:"enum=Proposition"`
	SiteID               flex.SiteID              `json:"site_id"`
	SiteProperties       SiteProperties           `json:"site_properties"`
	Assets               []AssetEligibilityDetail `json:"assets"`
}

// SiteProperties are the facts of a site that eligibility rests on.
type SiteProperties struct {
	IsHalfHourlySettled bool `json:"is_half_hourly_settled"`
	HasMeterConsent     bool `json:"has_meter_consent"`
}

// AssetEligibilityDetail is the eligibility of one asset.
type AssetEligibilityDetail struct {
	AssetID      flex.AssetID             `json:"asset_id"`
	ExternalID   string                   `json:"external_id"`
	Propositions []PropositionEligibility `json:"propositions"`
}

// SiteMeterConsentRequest is the body of POST /entities/site/{site_id}/meter-consent.
type SiteMeterConsentRequest struct {
	GaveBoundaryMeterConsentAt Time `json:"gave_boundary_meter_consent_at" wire:"required,zoned"`
}

// SiteDispatchConsentRequest is the body of dispatch-consent and dispatch-deconsent.
type SiteDispatchConsentRequest struct {
	DispatchMethods []flex.DispatchMethod `json:"dispatch_methods" wire:"required,unique,enum=DispatchMethod"`
}

// SiteAuthTokenRequest is the body of POST /entities/site/{site_id}/token: access to a
// manufacturer's cloud.
type SiteAuthTokenRequest struct {
	RefreshToken string `json:"refresh_token,omitzero" wire:"text=16384"`
	AccessToken  string `json:"access_token,omitzero" wire:"text=16384"`
	TokenType    string `json:"token_type,omitzero"`
	ExpiresUTC   Time   `json:"expires_utc,omitzero"`
	ExpiresIn    *int   `json:"expires_in,omitzero" wire:"min=0,max=4294967295"`
}

// SiteFlexEventsResponse answers GET /entities/site/{site_id}/flex-events.
type SiteFlexEventsResponse struct {
	SiteID flex.SiteID         `json:"site_id"`
	Events []FlexEventResponse `json:"events"`
}

// FlexEventResponse is one flex event; the final revenue is absent until it is known.
type FlexEventResponse struct {
	StartAt                  Time     `json:"start_at"`
	EndAt                    Time     `json:"end_at"`
	EstimatedGrossRevenueGBP float64  `json:"estimated_gross_revenue_gbp"`
	FinalGrossRevenueGBP     *float64 `json:"final_gross_revenue_gbp,omitzero"`

	Prices []FlexEventPrice `json:"prices,omitempty"` // flexd's own; absent until it is settled
}

// FlexEventPrice says where the price of some half-hours of a flex event is from.
type FlexEventPrice struct {
	Source       string `json:"source"`
	Role         string `json:"role"` // contract or settlement
	PublishedAt  Time   `json:"published_at"`
	ImportedAt   Time   `json:"imported_at"`
	NumHalfHours int    `json:"num_half_hours"`
}
