package wire

import "flexd/internal/flex"

// HouseholdEventQuery is the query of GET /vpp/home-assistant/event.
type HouseholdEventQuery struct {
	// The site that is asked about. Needed with an organisation's token; a household's has its own.
	//
	//openapi:merge {"example": "a1b2c3d4-e5f6-7890-abcd-ef1234567890"}
	SiteID flex.SiteID `json:"site_id,omitzero"`
}

// HouseholdEvent is a time in which a home takes energy from the grid by plan, or gives it.
type HouseholdEvent struct {
	StartTime Time `json:"start_time"`
	EndTime   Time `json:"end_time"`
	// Either import, from the grid, or export, to it.
	ImportExport string `json:"import_export"`
	// When the plan was made that says so.
	UpdatedAt Time `json:"updated_at"`
}

// HouseholdToken answers POST /entities/site/{site_id}/home-assistant-token.
type HouseholdToken struct {
	AccessToken string `json:"access_token"`
	// Always bearer.
	TokenType string `json:"token_type"`
	ExpiresAt Time   `json:"expires_at"`
}
