package wire

// MPANValidationRequest is the body of POST /validation/mpan.
type MPANValidationRequest struct {
	MPAN string `json:"mpan" wire:"required"`
}

// MPANValidationResponse answers it. The name's case is the interface's.
type MPANValidationResponse struct {
	// Always true; an MPAN that cannot be used is an error that says why.
	IsValid bool `json:"isValid"`
}

// MeterSearchQuery holds the parameters of GET /meter/search.
type MeterSearchQuery struct {
	// The postcode.
	//
	//openapi:merge {"example": "SW1A 1AA"}
	Postcode string `json:"postcode" wire:"required"`
	// House number or name.
	BuildingIdentifier string `json:"building_identifier"`
}

// MeterSearchResponse is one meter that a search found; Ref stands for it in later calls.
type MeterSearchResponse struct {
	// Stands for the meter in later calls. Encrypted; another one at every search.
	Ref     string `json:"ref"`
	Address string `json:"address"`
}

// MeterByAddressRequest is the body of POST /meter/by-address.
type MeterByAddressRequest struct {
	// The whole address. It starts with the house number or name and holds the postcode.
	Address string `json:"address" wire:"required"`
}

// MeterByAddressQuery holds the parameters of the deprecated GET /meter/.
type MeterByAddressQuery struct {
	// The whole address.
	//
	//openapi:merge {"example": "10 Downing Street, London, SW1A 2AA"}
	Address string `json:"address" wire:"required"`
}

// MeterByMPANRequest is the body of POST /meter/by-mpan.
type MeterByMPANRequest struct {
	// 13 digits.
	MPAN string `json:"mpan" wire:"required"`
}

// MeterRefPath holds the path parameter of a meter reference.
type MeterRefPath struct {
	// As a search gave it.
	//
	//openapi:merge {"example": "mr1.9tXq"}
	MeterRef string `json:"meter_ref" wire:"required"`
}

// MPANPath holds the path parameter of the deprecated GET /meter/{mpan}.
type MPANPath struct {
	// 13 digits.
	//
	//openapi:merge {"example": "1234567890126"}
	MPAN string `json:"mpan" wire:"required"`
}

// MeterResponse is a meter as the directory knows it. EligibleMarkets are cm, dno and
// wholesale.
type MeterResponse struct {
	MPAN              string `json:"mpan"`
	HalfHourlySettled *bool  `json:"half_hourly_settled,omitzero"`
	SupplierMPID      string `json:"supplier_mpid,omitzero"`
	SupplierName      string `json:"supplier_name,omitzero"`
	//openapi:merge {"uniqueItems": true}
	EligibleMarkets []string `json:"eligible_markets" wire:"enum=EligibleMarket"`
}
