package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no limits of feeders, and no OpenADR.

// LimitsQuery holds the parameters of GET /grid/limits.
//
//openapi:client
type LimitsQuery struct {
	// What binds this constraint group: its own limits, and those of the groups that it lies in.
	Group string `json:"group" wire:"text=256"`
	// What binds this site: the limits of its constraint group, and of the groups that this one lies in.
	SiteID flex.SiteID `json:"site_id"`
}

// LimitGroupQuery names the constraint group of which something is taken away.
//
//openapi:client
type LimitGroupQuery struct {
	// The constraint group.
	Group string `json:"group" wire:"required,nonempty,text=256"`
}

// FeederLimits answers GET /grid/limits: what limits constraint groups now and later, fallbacks of lost links first,
// and the links on which limits come.
//
//openapi:addition
type FeederLimits struct {
	Limits []FeederLimit `json:"limits"`
	Links  []LimitLink   `json:"links"`
}

// FeederLimit is the most that a constraint group draws, or that its batteries give to the grid, for a time.
//
//openapi:addition
type FeederLimit struct {
	Group     string `json:"group"`
	Direction string `json:"direction" wire:"enum=LimitDirection"`
	// Since when, of a fallback.
	StartTimestamp Time `json:"start_timestamp"`
	// Absent of a fallback, which binds until the link is heard.
	EndTimestamp Time    `json:"end_timestamp,omitzero"`
	LimitKW      float64 `json:"limit_kw"`
	// A file or a request (import), an OpenADR event, or the fallback of a link.
	Source string `json:"source" wire:"enum=LimitSource"`
	// Whether it binds now.
	Binds bool `json:"binds"`
	// Of those that bind the group now in its direction it is the lowest: the one that holds it.
	IsLowest bool `json:"is_lowest"`
	NumSites int  `json:"num_sites"` // in the group
}

// LimitLink is the link on which limits of a constraint group come, with what binds it when nothing is heard.
//
//openapi:addition
type LimitLink struct {
	Group string `json:"group"`
	// The most that it draws then.
	FallbackKW *float64 `json:"fallback_kw,omitzero"`
	// The most that its batteries give then.
	ExportFallbackKW *float64 `json:"export_fallback_kw,omitzero"`
	// After which the link counts as lost.
	SilenceSeconds int  `json:"silence_seconds"`
	HeardAt        Time `json:"heard_at"`
	// Since when the fallback binds; absent while the link is heard.
	LostAt Time `json:"lost_at,omitzero"`
}

// FeederLimitsRequest is the body of PUT /grid/limits: limits as a list, or as CSV.
//
//openapi:addition
type FeederLimitsRequest struct {
	Limits []FeederLimitRequest `json:"limits,omitzero" wire:"items=10000"`
	// With the columns group, start_timestamp, end_timestamp, limit_kw and, if not all are import, direction.
	CSV string `json:"csv,omitzero" wire:"text=1000000"`
}

// FeederLimitRequest is one limit of PUT /grid/limits.
//
//openapi:addition
type FeederLimitRequest struct {
	Group string `json:"group" wire:"required,nonempty,text=256"`
	// import if it is not given.
	Direction      string  `json:"direction,omitzero" wire:"enum=LimitDirection"`
	StartTimestamp Time    `json:"start_timestamp" wire:"required,zoned"`
	EndTimestamp   Time    `json:"end_timestamp" wire:"required,zoned"`
	LimitKW        float64 `json:"limit_kw" wire:"required,min=0,max=1000000"`
}

// LimitLinkRequest is the body of PUT /grid/limit-links. One of the two fallbacks is needed.
//
//openapi:addition
type LimitLinkRequest struct {
	Group            string   `json:"group" wire:"required,nonempty,text=256"`
	FallbackKW       *float64 `json:"fallback_kw,omitzero" wire:"min=0,max=1000000"`
	ExportFallbackKW *float64 `json:"export_fallback_kw,omitzero" wire:"min=0,max=1000000"`
	// How long nothing may be heard.
	SilenceSeconds int `json:"silence_seconds" wire:"required,min=10,max=604800"`
}

// LimitHeardRequest is the body of POST /grid/limit-links/heard.
//
//openapi:addition
type LimitHeardRequest struct {
	Group string `json:"group" wire:"required,nonempty,text=256"`
}
