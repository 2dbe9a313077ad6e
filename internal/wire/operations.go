package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// ExceptionsResponse answers GET /operations/exceptions. An empty list means that nothing is
// known to be wrong.
//
//openapi:addition
type ExceptionsResponse struct {
	Exceptions []Exception `json:"exceptions"`
}

// Exception is something that somebody should look at.
//
//openapi:addition
type Exception struct {
	Kind  string `json:"kind" wire:"enum=ExceptionKind"`
	Level string `json:"level" wire:"enum=ExceptionLevel"`
	// Assets, pushes, readings, withdrawals, endpoints, jobs or sources, as the kind says.
	Count int `json:"count"`
	// That will be missing by ready-by.
	EnergyKWh float64 `json:"energy_kwh,omitzero"`
	Title     string  `json:"title"`
	// What it means and what to do.
	Text string `json:"text"`
	// Examples, the worst first.
	Assets []ExceptionAsset `json:"assets,omitzero"`
	// Assets beyond the examples.
	More int `json:"more,omitzero"`
}

// ExceptionAsset names an asset of an exception.
//
//openapi:addition
type ExceptionAsset struct {
	AssetID    flex.AssetID `json:"asset_id"`
	ExternalID string       `json:"external_id"`
}
