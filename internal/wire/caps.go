package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// Caps is the body of PUT /caps, and answers it and GET /caps: what binds an organisation's
// assets to each other. What is not given is not bound.
//
// What is not given is not bound.
//
//openapi:addition
type Caps struct {
	// all assets of the organisation
	Fleet    *Cap         `json:"fleet,omitzero"`
	Groups   []CapGroup   `json:"groups,omitzero" wire:"items=1000"`
	Position []TradedHalf `json:"position,omitzero" wire:"items=336"`
}

// Cap bounds what assets do together.
//
//openapi:addition
type Cap struct {
	// The most that is drawn at any instant.
	CapKW *float64 `json:"cap_kw,omitzero" wire:"min=0,max=1000000"`
	// How many assets begin to charge in one minute at most.
	StartsPerMinute int `json:"starts_per_minute,omitzero" wire:"min=1,max=100000"`
}

// CapGroup is a constraint group: sites behind one thing that can carry so much. A site lies
// in one at most.
//
// A constraint group. A site lies in one at most.
//
//openapi:addition
type CapGroup struct {
	// Of 1 to 64 characters, the first and the last not blank.
	Name string `json:"name" wire:"required,nonempty,text=256"`
	// The name of the group that this one lies in, as a feeder lies in a substation: its cap binds the sites of this
	// one too. It is among the groups. At most four groups lie in each other.
	Parent          string        `json:"parent,omitzero" wire:"nonempty,text=256"`
	CapKW           *float64      `json:"cap_kw,omitzero" wire:"min=0,max=1000000"`
	StartsPerMinute int           `json:"starts_per_minute,omitzero" wire:"min=1,max=100000"`
	SiteIDs         []flex.SiteID `json:"site_ids" wire:"required,unique,items=20000"`
}

// TradedHalf is what was bought ahead for a half-hour: what is drawn beyond it is bought at
// one price, what is left of it sold at another, which is no higher.
//
// What was bought ahead for a half-hour. Selling is not dearer than buying.
//
//openapi:addition
type TradedHalf struct {
	// Of the half-hour, with an offset.
	StartTimestamp Time    `json:"start_timestamp" wire:"required,zoned"`
	EnergyKWh      float64 `json:"energy_kwh" wire:"required,min=0,max=1000000"`
	// Of what is drawn beyond the position.
	BuyPriceGBPPerMWh float64 `json:"buy_price_gbp_per_mwh" wire:"required,min=-100000,max=100000"`
	// Of what is left of it.
	SellPriceGBPPerMWh float64 `json:"sell_price_gbp_per_mwh" wire:"required,min=-100000,max=100000"`
}
