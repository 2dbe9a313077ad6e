package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// ExceptionsResponse answers GET /operations/exceptions. An empty list means that nothing is
// known to be wrong.
type ExceptionsResponse struct {
	Exceptions []Exception `json:"exceptions"`
}

// Exception is something that somebody should look at.
type Exception struct {
	Kind      string           `json:"kind" wire:"enum=ExceptionKind"`
	Level     string           `json:"level" wire:"enum=ExceptionLevel"`
	Count     int              `json:"count"`
	EnergyKWh float64          `json:"energy_kwh,omitzero"` // that will be missing, of a shortfall
	Title     string           `json:"title"`
	Text      string           `json:"text"`
	Assets    []ExceptionAsset `json:"assets,omitzero"` // examples, the worst first
	More      int              `json:"more,omitzero"`   // beyond the examples
}

// ExceptionAsset names an asset of an exception.
type ExceptionAsset struct {
	AssetID    flex.AssetID `json:"asset_id"`
	ExternalID string       `json:"external_id"`
}
