package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// Caps is the body of PUT /caps, and answers it and GET /caps: what binds an organisation's
// assets to each other. What is not given is not bound.
type Caps struct {
	Fleet    *Cap         `json:"fleet,omitzero"` // all assets of the organisation
	Groups   []CapGroup   `json:"groups,omitzero" wire:"items=1000"`
	Position []TradedHalf `json:"position,omitzero" wire:"items=336"`
}

// Cap bounds what assets do together.
type Cap struct {
	CapKW           *float64 `json:"cap_kw,omitzero" wire:"min=0,max=1000000"`
	StartsPerMinute int      `json:"starts_per_minute,omitzero" wire:"min=1,max=100000"`
}

// CapGroup is a constraint group: sites behind one thing that can carry so much. A site lies
// in one at most.
type CapGroup struct {
	Name            string        `json:"name" wire:"required,nonempty,text=256"`
	CapKW           *float64      `json:"cap_kw,omitzero" wire:"min=0,max=1000000"`
	StartsPerMinute int           `json:"starts_per_minute,omitzero" wire:"min=1,max=100000"`
	SiteIDs         []flex.SiteID `json:"site_ids" wire:"required,unique,items=20000"`
}

// TradedHalf is what was bought ahead for a half-hour: what is drawn beyond it is bought at
// one price, what is left of it sold at another, which is no higher.
type TradedHalf struct {
	StartTimestamp     Time    `json:"start_timestamp" wire:"required,zoned"`
	EnergyKWh          float64 `json:"energy_kwh" wire:"required,min=0,max=1000000"`
	BuyPriceGBPPerMWh  float64 `json:"buy_price_gbp_per_mwh" wire:"required,min=-100000,max=100000"`
	SellPriceGBPPerMWh float64 `json:"sell_price_gbp_per_mwh" wire:"required,min=-100000,max=100000"`
}
