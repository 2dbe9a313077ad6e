package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// ExceptionsResponse answers GET /operations/exceptions. An empty list means that nothing is
// known to be wrong of the kinds that could be looked for.
//
//openapi:addition
type ExceptionsResponse struct {
	Exceptions []Exception `json:"exceptions"`
	// Kinds that could not be looked for: nothing is known of them. Absent where all could be.
	Unread []string `json:"unread,omitzero" wire:"enum=ExceptionKind"`
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

// AlertListQuery holds the parameters of GET /operations/alerts.
//
//openapi:client
type AlertListQuery struct {
	// Those alone that have not ended.
	Firing bool `json:"firing"`
	// The page that follows this alert, as an answer's next says.
	Before flex.AlertID `json:"before"`
	// Most items on the page.
	Limit int `json:"limit" wire:"min=1,max=1000,default=100"`
}

// AlertListResponse answers GET /operations/alerts, the newest first.
//
//openapi:addition
type AlertListResponse struct {
	Alerts []Alert `json:"alerts"`
	// The next page's before, absent on the last.
	Next flex.AlertID `json:"next,omitzero"`
}

// Alert is an exception of the organisation that lasted as long as the operator's rule asks.
//
//openapi:addition
type Alert struct {
	ID    flex.AlertID `json:"id"`
	Kind  string       `json:"kind" wire:"enum=ExceptionKind"`
	Level string       `json:"level" wire:"enum=ExceptionLevel"`
	// As the exception's, when it was last looked at.
	Count int    `json:"count"`
	Title string `json:"title"`
	Text  string `json:"text"`
	// Since when the exception is there.
	SinceAt Time `json:"since_at"`
	// When it had lasted as long as the rule asks.
	FiredAt Time `json:"fired_at"`
	// When it ended, absent before.
	ResolvedAt Time `json:"resolved_at,omitzero"`
	// When an operator took it on, absent before.
	AcknowledgedAt Time `json:"acknowledged_at,omitzero"`
	// Until when nobody is reminded of it, absent if that was not asked for.
	SnoozedUntil Time `json:"snoozed_until,omitzero"`
}

// AlertPath holds the path parameter of an alert.
type AlertPath struct {
	// The alert's id.
	//
	//openapi:merge {"example": "019b5a3c-0000-7000-8000-000000000001"}
	ID flex.AlertID `json:"id" wire:"required"`
}

// AlertAcknowledgement is the body of POST /operations/alerts/{id}/acknowledge.
//
//openapi:addition
type AlertAcknowledgement struct {
	// What there is to say of it, 500 bytes at most.
	Note string `json:"note,omitzero"`
}

// AlertSnooze is the body of POST /operations/alerts/{id}/snooze.
//
//openapi:addition
type AlertSnooze struct {
	// For how long nobody is reminded of it: 30 days at most.
	Minutes int `json:"minutes" wire:"required,min=1,max=43200"`
	// Why it may rest, 500 bytes at most.
	Note string `json:"note" wire:"required,nonempty"`
}

// SelectionQuery holds the parameters of what is done to a selection of assets.
//
//openapi:client
type SelectionQuery struct {
	// Only say what would become of each asset.
	DryRun bool `json:"dry_run"`
}

// SelectionRequest is the body of POST /operations/assets/act.
//
//openapi:addition
type SelectionRequest struct {
	Action   string         `json:"action" wire:"required,enum=AssetAction"`
	AssetIDs []flex.AssetID `json:"asset_ids" wire:"required,nonempty,items=500"`
	// For how long, of charge-now: 24 hours at most.
	Minutes int `json:"minutes,omitzero" wire:"min=1,max=1440"`
	// The time of day in the zone of the tariff, of ready-by.
	ReadyByLocalTime *WallTime `json:"ready_by_local_time,omitzero"`
}

// OffboardRequest is the body of POST /operations/assets/offboard.
//
//openapi:addition
type OffboardRequest struct {
	AssetIDs []flex.AssetID `json:"asset_ids" wire:"required,nonempty,items=500"`
	// What the dry run gave as confirm: without it nothing is done.
	Confirm string `json:"confirm,omitzero" wire:"text=100"`
}

// SelectionResult is what became, or would become, of each asset of a selection.
//
//openapi:addition
type SelectionResult struct {
	Action string `json:"action" wire:"enum=SelectionAction"`
	// Whether it is done; a dry run does nothing.
	Done bool `json:"done"`
	// Assets of which it is done, or could be.
	NumPossible int `json:"num_possible"`
	// What confirms it, of a dry run of what cannot be undone.
	Confirm string          `json:"confirm,omitzero"`
	Assets  []SelectedAsset `json:"assets"`
}

// SelectedAsset is what became, or would become, of one asset.
//
//openapi:addition
type SelectedAsset struct {
	AssetID flex.AssetID `json:"asset_id"`
	// Absent where the organisation has no such asset.
	ExternalID string         `json:"external_id,omitzero"`
	Type       flex.AssetType `json:"type,omitzero" wire:"enum=AssetType"`
	// In words; absent where it is refused.
	Outcome string `json:"outcome,omitzero"`
	// Why it is refused; absent where it is not.
	Fault string `json:"fault,omitzero"`
}
