package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no offers.

// OfferQuery holds the parameters of POST /grid/offers and of the acceptance of one.
//
//openapi:client
type OfferQuery struct {
	// Only say what can be offered, or what the instruction would do.
	DryRun bool `json:"dry_run"`
}

// OfferRequest is the body of POST /grid/offers: a window in which less or more is to be drawn.
//
//openapi:addition
type OfferRequest struct {
	Service        string `json:"service" wire:"required,enum=InstructionService"`
	Direction      string `json:"direction" wire:"required,enum=OfferDirection"`
	StartTimestamp Time   `json:"start_timestamp" wire:"required,zoned"`
	EndTimestamp   Time   `json:"end_timestamp" wire:"required,zoned"`
	Group          string `json:"group,omitzero" wire:"text=256"`
	GSPGroup       string `json:"gsp_group,omitzero" wire:"text=256"`
	// Of the offer that is kept; 90 if it is not given.
	Confidence int `json:"confidence,omitzero" wire:"min=50,max=99"`
}

// OfferStack answers POST /grid/offers: what can be offered, and the offer that was kept.
//
//openapi:addition
type OfferStack struct {
	At          Time        `json:"at"`
	NumDays     int         `json:"num_days"`
	Rungs       []OfferRung `json:"rungs"`
	Reliability AheadJudged `json:"reliability"`
	// Not of a dry run.
	Offer *Offer `json:"offer,omitzero"`
}

// OfferRung is what can be offered with a confidence.
//
//openapi:addition
type OfferRung struct {
	Confidence     int     `json:"confidence"`
	PowerMW        float64 `json:"power_mw"`
	PriceGBPPerMWh float64 `json:"price_gbp_per_mwh"`
}

// OfferPath holds the path parameter of an offer.
type OfferPath struct {
	// The offer's id.
	//
	//openapi:merge {"example": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55"}
	ID flex.OfferID `json:"id" wire:"required"`
}

// OfferListQuery holds the parameters of GET /grid/offers.
//
//openapi:client
type OfferListQuery struct {
	// The page that follows the offer of this id.
	Before flex.OfferID `json:"before"`
	// Most items on the page.
	Limit int `json:"limit" wire:"min=1,max=100,default=10"`
	// As JSON, unless asked for as CSV.
	Format string `json:"format" wire:"enum=EnvelopeFormat"`
}

// OfferPage is a page of offers, the newest first.
//
//openapi:addition
type OfferPage struct {
	Offers   []Offer `json:"offers"`
	NumTotal int     `json:"num_total"` // on all pages
	// Of this page, whose day is over.
	NumJudged int `json:"num_judged"`
	// of these, in which at least what was offered came
	NumKept int          `json:"num_kept"`
	Next    flex.OfferID `json:"next,omitzero"`
}

// Offer is what was offered, what was accepted of it, and what came.
//
//openapi:addition
type Offer struct {
	ID             flex.OfferID       `json:"id"`
	Service        string             `json:"service" wire:"enum=InstructionService"`
	Direction      string             `json:"direction" wire:"enum=OfferDirection"`
	StartTimestamp Time               `json:"start_timestamp"`
	EndTimestamp   Time               `json:"end_timestamp"`
	Group          string             `json:"group,omitzero"`
	GSPGroup       string             `json:"gsp_group,omitzero"`
	Confidence     int                `json:"confidence"`
	PowerKW        float64            `json:"power_kw"`
	PriceGBPPerMWh float64            `json:"price_gbp_per_mwh"`
	Who            string             `json:"who"`
	MadeAt         Time               `json:"made_at"`
	AcceptedAt     Time               `json:"accepted_at,omitzero"`
	AcceptedKW     *float64           `json:"accepted_kw,omitzero"`
	InstructionID  flex.InstructionID `json:"instruction_id,omitzero"`
	CameKW         *float64           `json:"came_kw,omitzero"`
	Kept           *bool              `json:"kept,omitzero"`
	// What is settled by now of the flex events of whom its instruction called, less use is negative. An offer at no
	// price above zero has none: its events are the market's.
	DeliveredKWh *float64 `json:"delivered_kwh,omitzero"`
}

// OfferAcceptRequest is the body of POST /grid/offers/{id}/accept.
//
//openapi:addition
type OfferAcceptRequest struct {
	// All of it if it is not given.
	PowerKW float64 `json:"power_kw,omitzero" wire:"min=0,max=10000000"`
	Reason  string  `json:"reason" wire:"required,text=256"`
}
