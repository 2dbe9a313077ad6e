package wire

import "flexd/internal/flex"

// SiteRequest is the body of POST /entities/site, and the site of an onboarding.
type SiteRequest struct {
	// Empty for a site without a British metering point, where the organisation may have such: it is planned and
	// pushed, and nothing of it is settled.
	MPAN          string `json:"mpan" wire:"required"`
	Postcode      string `json:"postcode" wire:"required,nonempty"`
	StreetAddress string `json:"street_address,omitzero"`
	// Needed for payments.
	Email string `json:"email,omitzero"`
	// With an offset.
	GaveBoundaryMeterConsentAt Time `json:"gave_boundary_meter_consent_at,omitzero" wire:"zoned"`
	// What the connection can carry from the grid. 100 A on one phase is 23, which is taken if
	// nothing is given; 100 A on three phases is 69.
	//
	//openapi:addition
	ImportCapacityKW *float64 `json:"import_capacity_kw,omitzero" wire:"min=1,max=10000"`
	// What it can carry to the grid; 0 if the site may not export.
	//
	//openapi:addition
	ExportCapacityKW *float64 `json:"export_capacity_kw,omitzero" wire:"min=0,max=10000"`
	// The main fuse, in the place of import_capacity_kw, which then is what it carries.
	//
	//openapi:addition
	MainFuse *MainFuse `json:"main_fuse,omitzero"`
}

// SiteUpdateRequest is the body of PATCH /entities/site/{site_id}; what is nil stays.
//
// What is not given stays as it is.
type SiteUpdateRequest struct {
	Tariff   *TariffRequest `json:"tariff,omitzero"`
	Address  *string        `json:"address,omitzero"`
	Postcode *string        `json:"postcode,omitzero" wire:"nonempty"`
	MPAN     *string        `json:"mpan,omitzero" wire:"nonempty"`
	Email    *string        `json:"email,omitzero"`
	// What the connection can carry from the grid. 100 A on one phase is 23, which is taken if
	// nothing is given; 100 A on three phases is 69.
	//
	//openapi:addition
	ImportCapacityKW *float64 `json:"import_capacity_kw,omitzero" wire:"min=1,max=10000"`
	// What it can carry to the grid; 0 if the site may not export.
	//
	//openapi:addition
	ExportCapacityKW *float64 `json:"export_capacity_kw,omitzero" wire:"min=0,max=10000"`
	// The main fuse, in the place of import_capacity_kw, which then is what it carries.
	//
	//openapi:addition
	MainFuse *MainFuse `json:"main_fuse,omitzero"`
	// The London day from which the capacity counts, today or earlier, and later than what was
	// settled of the site; from now on if it is not given.
	//
	//openapi:addition
	CapacityFrom *Day `json:"capacity_from,omitzero"`
	// How often the site may be called by instructions of the grid. It replaces what was agreed before:
	// an empty object ends every limit.
	//
	//openapi:addition
	AgreedCalls *AgreedCalls `json:"agreed_calls,omitzero"`
}

// TariffRequest is the tariff of a site, which is apart from the assets' own.
type TariffRequest struct {
	TariffType           flex.TariffType `json:"tariff_type" wire:"required,enum=TariffType"`
	TariffCheapStartTime *WallTime       `json:"tariff_cheap_start_time,omitzero"`
	TariffCheapEndTime   *WallTime       `json:"tariff_cheap_end_time,omitzero"`
	// What a kWh costs in dear hours, or in all where none are cheap, in pence. What is not given is the
	// organisation's rate, or assumed; under a dynamic tariff the market's price counts.
	//
	//openapi:addition
	ImportPPerKWh *float64 `json:"import_p_per_kwh,omitzero" wire:"min=0,max=1000"`
	// What it costs in cheap hours.
	//
	//openapi:addition
	OffPeakPPerKWh *float64 `json:"off_peak_p_per_kwh,omitzero" wire:"min=0,max=1000"`
	// What one earns that is exported, under a dynamic tariff too.
	//
	//openapi:addition
	ExportPPerKWh *float64 `json:"export_p_per_kwh,omitzero" wire:"min=0,max=1000"`
}

// TariffResponse shows it.
type TariffResponse struct {
	TariffType           flex.TariffType `json:"tariff_type,omitzero" wire:"enum=TariffType"`
	TariffCheapStartTime *WallTime       `json:"tariff_cheap_start_time,omitzero"`
	TariffCheapEndTime   *WallTime       `json:"tariff_cheap_end_time,omitzero"`
	// What a kWh costs in dear hours, or in all where none are cheap, in pence. What is not given is the
	// organisation's rate, or assumed; under a dynamic tariff the market's price counts.
	//
	//openapi:addition
	ImportPPerKWh *float64 `json:"import_p_per_kwh,omitzero" wire:"min=0,max=1000"`
	// What it costs in cheap hours.
	//
	//openapi:addition
	OffPeakPPerKWh *float64 `json:"off_peak_p_per_kwh,omitzero" wire:"min=0,max=1000"`
	// What one earns that is exported, under a dynamic tariff too.
	//
	//openapi:addition
	ExportPPerKWh *float64 `json:"export_p_per_kwh,omitzero" wire:"min=0,max=1000"`
}

// SiteResponse is a site.
type SiteResponse struct {
	ID       flex.SiteID `json:"id"`
	MPAN     string      `json:"mpan,omitzero"`
	Postcode string      `json:"postcode,omitzero"`
	Address  string      `json:"address,omitzero"`
	//openapi:optional
	//openapi:merge {"default": []}
	AssetIDs []flex.AssetID `json:"asset_ids"`
	//openapi:optional
	//openapi:merge {"uniqueItems": true}
	Markets []string `json:"markets" wire:"enum=MarketResponse"`
	//openapi:optional
	//openapi:merge {"uniqueItems": true}
	DispatchMethods            []flex.DispatchMethod `json:"dispatch_methods" wire:"enum=DispatchMethod"`
	Tariff                     *TariffResponse       `json:"tariff,omitzero"`
	GaveBoundaryMeterConsentAt Time                  `json:"gave_boundary_meter_consent_at,omitzero"`
	// Since when the user has consented to the site's cars being discharged. Absent without that consent.
	//
	//openapi:addition
	GaveDischargeConsentAt Time `json:"gave_discharge_consent_at,omitzero"`
	// What the connection can carry from the grid.
	//
	//openapi:addition
	//openapi:optional
	ImportCapacityKW float64 `json:"import_capacity_kw"`
	// What it can carry to the grid.
	//
	//openapi:addition
	//openapi:optional
	ExportCapacityKW float64 `json:"export_capacity_kw"`
	//openapi:addition
	//openapi:optional
	CapacitySource string `json:"capacity_source" wire:"enum=CapacitySource"`
	// The main fuse that import_capacity_kw was given as. Absent if it was given in kW, or not.
	//
	//openapi:addition
	MainFuse *MainFuse `json:"main_fuse,omitzero"`
	// How often the site may be called by instructions of the grid. Absent without a limit.
	//
	//openapi:addition
	AgreedCalls *AgreedCalls `json:"agreed_calls,omitzero"`
}

// AgreedCalls is how often a household agreed to be called by instructions of the grid, products that became one too.
// An instruction is one call, however many assets of the site it calls, in the London day and calendar month in which
// it begins. What is not given has no limit.
//
//openapi:addition
type AgreedCalls struct {
	// 0 for none.
	PerDay *int `json:"per_day,omitzero" wire:"min=0,max=1000"`
	// 0 for none.
	PerMonth *int `json:"per_month,omitzero" wire:"min=0,max=1000"`
}

// MainFuse is a site's main fuse: it carries 230 V times the amperes on each of its phases.
//
//openapi:addition
type MainFuse struct {
	// For each phase.
	Amperes float64 `json:"amperes" wire:"required,min=5,max=800"`
	// 1 or 3. Readings are checked as if three were evenly loaded; what is planned keeps each phase by itself.
	Phases int `json:"phases" wire:"required,min=1,max=3"`
}

// SiteListQuery holds the parameters of GET /entities/site; an empty filter takes all.
type SiteListQuery struct {
	// Only the site of this MPAN.
	MPAN string `json:"mpan"`
	// Only sites of this postcode.
	Postcode string `json:"postcode"`
	// Most items on the page.
	Limit int `json:"limit" wire:"min=1,max=5000,default=10"`
	// Items to pass over.
	Offset int `json:"offset" wire:"min=0,default=0"`
}

// SiteResponsePage is one page of sites.
type SiteResponsePage struct {
	Sites         []SiteResponse `json:"sites"`
	TotalNumSites int            `json:"total_num_sites"`
	TotalNumPages int            `json:"total_num_pages"`
	// From 1.
	PageNumber int `json:"page_number"`
}

// SitePath holds the path parameter of a site.
type SitePath struct {
	// The site's id.
	//
	//openapi:merge {"example": "a1b2c3d4-e5f6-7890-abcd-ef1234567890"}
	SiteID flex.SiteID `json:"site_id" wire:"required"`
}

// OAuthPath holds the path parameters of GET /entities/site/{site_id}/oauth/{provider}/initiate.
type OAuthPath struct {
	// The site's id.
	//
	//openapi:merge {"example": "a1b2c3d4-e5f6-7890-abcd-ef1234567890"}
	SiteID flex.SiteID `json:"site_id" wire:"required"`
	// The manufacturer.
	//
	//openapi:merge {"example": "myenergi"}
	Provider string `json:"provider" wire:"required,enum=OAuthProvider"`
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
	IsHalfHourlySettled bool `json:"is_half_hourly_settled"`
	//openapi:optional
	//openapi:merge {"default": []}
	Propositions []PropositionEligibility `json:"propositions"`
}

// PropositionEligibility says whether a proposition is open, and what stands in its way.
type PropositionEligibility struct {
	Proposition flex.Proposition `json:"proposition" wire:"enum=Proposition"`
	IsEligible  bool             `json:"is_eligible"`
	// What stands in its way.
	//
	//openapi:optional
	//openapi:merge {"default": []}
	Issues []string `json:"issues" wire:"enum=EligibilityCode"`
}

// SiteEligibilityDetail answers GET /entities/site/{site_id}/eligibility.
type SiteEligibilityDetail struct {
	//openapi:optional
	//openapi:merge {"default": []}
	EligiblePropositions []flex.Proposition `json:"eligible_propositions" wire:"enum=Proposition"`
	SiteID               flex.SiteID        `json:"site_id"`
	SiteProperties       SiteProperties     `json:"site_properties"`
	//openapi:optional
	//openapi:merge {"default": []}
	Assets []AssetEligibilityDetail `json:"assets"`
}

// SiteProperties are the facts of a site that eligibility rests on.
type SiteProperties struct {
	IsHalfHourlySettled bool `json:"is_half_hourly_settled"`
	HasMeterConsent     bool `json:"has_meter_consent"`
}

// AssetEligibilityDetail is the eligibility of one asset.
type AssetEligibilityDetail struct {
	AssetID    flex.AssetID `json:"asset_id"`
	ExternalID string       `json:"external_id"`
	//openapi:optional
	//openapi:merge {"default": []}
	Propositions []PropositionEligibility `json:"propositions"`
}

// SiteMeterConsentRequest is the body of POST /entities/site/{site_id}/meter-consent.
type SiteMeterConsentRequest struct {
	// With an offset.
	GaveBoundaryMeterConsentAt Time `json:"gave_boundary_meter_consent_at" wire:"required,zoned"`
}

// SiteDischargeConsentRequest is the body of POST /entities/site/{site_id}/discharge-consent.
//
//openapi:addition
type SiteDischargeConsentRequest struct {
	// With an offset.
	GaveDischargeConsentAt Time `json:"gave_discharge_consent_at" wire:"required,zoned"`
}

// DischargeConsentResponse answers GET /entities/site/{site_id}/discharge-consent.
//
//openapi:addition
type DischargeConsentResponse struct {
	// Since when the consent holds; absent if it does not.
	GaveDischargeConsentAt Time `json:"gave_discharge_consent_at,omitzero"`
	// All that was ever given and withdrawn, the first first.
	History []DischargeConsentStep `json:"history"`
}

// DischargeConsentStep is one step of its history.
//
//openapi:addition
type DischargeConsentStep struct {
	Given bool `json:"given"`
	// When the user gave it; absent where it was withdrawn.
	GivenAt    Time `json:"given_at,omitzero"`
	RecordedAt Time `json:"recorded_at"`
}

// SiteDispatchConsentRequest is the body of dispatch-consent and dispatch-deconsent.
type SiteDispatchConsentRequest struct {
	DispatchMethods []flex.DispatchMethod `json:"dispatch_methods" wire:"required,unique,enum=DispatchMethod"`
}

// SiteAuthTokenRequest is the body of POST /entities/site/{site_id}/token: access to a
// manufacturer's cloud.
//
// Access to the manufacturer's cloud that the site's assets hang on.
type SiteAuthTokenRequest struct {
	// Needed unless token_type is API_KEY.
	RefreshToken string `json:"refresh_token,omitzero" wire:"text=16384"`
	AccessToken  string `json:"access_token,omitzero" wire:"text=16384"`
	TokenType    string `json:"token_type,omitzero"`
	ExpiresUTC   Time   `json:"expires_utc,omitzero"`
	// Seconds.
	ExpiresIn *int `json:"expires_in,omitzero" wire:"min=0,max=4294967295"`
}

// SiteFlexEventsResponse answers GET /entities/site/{site_id}/flex-events.
type SiteFlexEventsResponse struct {
	SiteID flex.SiteID         `json:"site_id"`
	Events []FlexEventResponse `json:"events"`
}

// FlexEventResponse is one flex event; the final revenue is absent until it is known.
type FlexEventResponse struct {
	StartAt Time `json:"start_at"`
	EndAt   Time `json:"end_at"`
	// Before any share. Negative where the market moved against it.
	EstimatedGrossRevenueGBP float64 `json:"estimated_gross_revenue_gbp"`
	// Once the market's final run is in.
	FinalGrossRevenueGBP *float64 `json:"final_gross_revenue_gbp,omitzero"`

	// Where the prices are from that it was settled at. Absent until it is settled, and of what
	// was settled before sources were kept.
	//
	//openapi:addition
	Prices []FlexEventPrice `json:"prices,omitempty"`
}

// FlexEventPrice says where the price of some half-hours of a flex event is from.
//
//openapi:addition
type FlexEventPrice struct {
	// The source of prices, such as elexon-mid, or `instruction`.
	Source string `json:"source"`
	// As what the source counted: `contract`, `settlement` or `instruction`. A planning price settles nothing.
	Role string `json:"role"`
	// From when the prices counted as known; an instruction's, when it was given.
	PublishedAt Time `json:"published_at"`
	// When flexd had them.
	ImportedAt Time `json:"imported_at"`
	// How many half-hours of the event have this price, whole or for a part of their time.
	NumHalfHours int `json:"num_half_hours"`
	// The instruction of the grid that pays it, in place of the market.
	InstructionID flex.InstructionID `json:"instruction_id,omitzero"`
}

// SiteNow answers GET /entities/site/{site_id}/live: a site's assets as they are, and is the data of each
// of its events.
//
//openapi:addition
type SiteNow struct {
	SiteID flex.SiteID `json:"site_id"`
	// By the organisation's clock.
	AsOf   Time       `json:"as_of"`
	Assets []AssetNow `json:"assets"`
}

// AssetNow is what there is to follow of an asset.
//
//openapi:addition
type AssetNow struct {
	AssetID    flex.AssetID   `json:"asset_id"`
	ExternalID string         `json:"external_id"`
	Type       flex.AssetType `json:"type" wire:"enum=AssetType"`
	PluggedIn  bool           `json:"plugged_in"`
	// The newest session.
	SessionID    flex.SessionID `json:"session_id,omitzero"`
	PluggedInAt  Time           `json:"plugged_in_at,omitzero"`
	PluggedOutAt Time           `json:"plugged_out_at,omitzero"`
	ReadyBy      Time           `json:"ready_by,omitzero"`
	// Of the schedule in force, as its push and its callbacks name it.
	EventID    flex.EventID `json:"event_id,omitzero"`
	Generation int64        `json:"generation,omitzero"`
	// The newest generation that the client has taken.
	AcceptedGeneration *int64 `json:"accepted_generation,omitzero"`
	// Until when it charges at once.
	ChargeNowUntil Time `json:"charge_now_until,omitzero"`
	// Until when nothing is needed.
	AwayUntil Time `json:"away_until,omitzero"`
}
