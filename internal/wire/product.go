package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no products.

// ProductImportQuery holds the parameters of POST /grid/products.
//
//openapi:client
type ProductImportQuery struct {
	// Only say what the import would do.
	DryRun bool `json:"dry_run"`
}

// ProductsRequest is the body of POST /grid/products: products as a list, or as CSV.
//
//openapi:addition
type ProductsRequest struct {
	Products []ProductRequest `json:"products,omitzero" wire:"items=1000"`
	// With the names of a product's fields as columns.
	CSV string `json:"csv,omitzero" wire:"text=1000000"`
}

// ProductRequest is a product that is bought for a window, as by DFS or by a distribution operator.
//
//openapi:addition
type ProductRequest struct {
	// The buyer's, by which the product is known.
	Reference string `json:"reference" wire:"required,nonempty,text=128"`
	Service   string `json:"service" wire:"required,enum=InstructionService"`
	// down if it is not given: less is to be drawn.
	Direction string `json:"direction,omitzero" wire:"enum=OfferDirection"`
	// A whole minute later than now.
	StartTimestamp Time    `json:"start_timestamp" wire:"required,zoned"`
	EndTimestamp   Time    `json:"end_timestamp" wire:"required,zoned"` // 24 hours later at most
	VolumeKW       float64 `json:"volume_kw" wire:"required,min=0.001,max=1000000"`
	// For what is delivered: the flex events of whom it calls are settled at it, in place of the market's price.
	PriceGBPPerMWh float64 `json:"price_gbp_per_mwh" wire:"required,min=0.000001,max=6000"`
	// For being available: of the volume, as far as it is delivered.
	AvailabilityGBPPerMWPerHour float64 `json:"availability_gbp_per_mw_per_hour,omitzero" wire:"min=0,max=6000"`
	// By which a site's events of its day are settled; that of the terms if it is not given.
	Baseline string `json:"baseline,omitzero" wire:"enum=ProductBaseline"`
	// opt_in if it is not given: who accepts takes part. By opt_out, who does not refuse.
	Participation string `json:"participation,omitzero" wire:"enum=ProductParticipation"`
	// When it is sent to those who take part; half an hour before it begins if it is not given.
	AnswerBy Time   `json:"answer_by,omitzero" wire:"zoned"`
	Group    string `json:"group,omitzero" wire:"text=256"`
	GSPGroup string `json:"gsp_group,omitzero" wire:"text=256"`
}

// ProductsImported answers POST /grid/products.
//
//openapi:addition
type ProductsImported struct {
	Products []ProductImported `json:"products"`
}

// ProductImported is what the import of a product did, or would do.
//
//openapi:addition
type ProductImported struct {
	// Absent of a new one in a dry run.
	ID        flex.ProductID `json:"id,omitzero"`
	Reference string         `json:"reference"`
	Act       string         `json:"act" wire:"enum=ProductAct"`
	// Sites that are asked whether they take part.
	NumInvited int  `json:"num_invited"`
	AnswerBy   Time `json:"answer_by"`
}

// ProductPath holds the path parameter of a product.
type ProductPath struct {
	// The product's id.
	//
	//openapi:merge {"example": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55"}
	ID flex.ProductID `json:"id" wire:"required"`
}

// ProductListQuery holds the parameters of GET /grid/products.
//
//openapi:client
type ProductListQuery struct {
	Service string `json:"service" wire:"enum=InstructionService"`
	State   string `json:"state" wire:"enum=ProductState"`
	// The page that follows the product of this id.
	Before flex.ProductID `json:"before"`
	// Most items on the page.
	Limit int `json:"limit" wire:"min=1,max=100,default=10"`
}

// ProductReportQuery holds the parameters of GET /grid/products/{id}.
//
//openapi:client
type ProductReportQuery struct {
	// The page of sites that follows this one.
	After flex.SiteID `json:"after"`
	// Most sites on the page.
	Limit int `json:"limit" wire:"min=1,max=1000,default=100"`
}

// ProductPage is a page of products, the newest first.
//
//openapi:addition
type ProductPage struct {
	Products []Product      `json:"products"`
	NumTotal int            `json:"num_total"` // on all pages
	Next     flex.ProductID `json:"next,omitzero"`
}

// Product is a product with who was invited to it.
//
//openapi:addition
type Product struct {
	ID                          flex.ProductID `json:"id"`
	Reference                   string         `json:"reference"`
	State                       string         `json:"state" wire:"enum=ProductState"`
	Service                     string         `json:"service" wire:"enum=InstructionService"`
	Direction                   string         `json:"direction" wire:"enum=OfferDirection"`
	StartTimestamp              Time           `json:"start_timestamp"`
	EndTimestamp                Time           `json:"end_timestamp"`
	VolumeKW                    float64        `json:"volume_kw"`
	PriceGBPPerMWh              float64        `json:"price_gbp_per_mwh"`
	AvailabilityGBPPerMWPerHour float64        `json:"availability_gbp_per_mw_per_hour,omitzero"`
	Baseline                    string         `json:"baseline,omitzero" wire:"enum=ProductBaseline"`
	Participation               string         `json:"participation" wire:"enum=ProductParticipation"`
	AnswerBy                    Time           `json:"answer_by"`
	Group                       string         `json:"group,omitzero"`
	GSPGroup                    string         `json:"gsp_group,omitzero"`
	Who                         string         `json:"who"`
	MadeAt                      Time           `json:"made_at"`
	WithdrawnAt                 Time           `json:"withdrawn_at,omitzero"`
	WithdrawnBy                 string         `json:"withdrawn_by,omitzero"`
	// That it became; GET /grid/instructions/{id} has its report.
	InstructionID flex.InstructionID `json:"instruction_id,omitzero"`
	// Why it could not become one.
	Problem     string `json:"problem,omitzero"`
	NumInvited  int    `json:"num_invited"`
	NumAnswered int    `json:"num_answered"`
	NumTakePart int    `json:"num_take_part"`
}

// ProductReport answers GET /grid/products/{id}: a product with what came of it.
//
//openapi:addition
type ProductReport struct {
	Product Product `json:"product"`
	// The volume over the window.
	AskedKWh float64 `json:"asked_kwh"`
	// What is settled of it by now; less use is negative.
	FlexKWh    float64 `json:"flex_kwh"`
	NumEvents  int     `json:"num_events"`
	NumWaiting int     `json:"num_waiting"` // for readings or prices
	// What was delivered of what was asked for, 0 to 1.
	Delivered float64 `json:"delivered"`
	// Before loss factors and the household's share.
	UtilisationGBP float64 `json:"utilisation_gbp"`
	// The organisation's; no household's.
	AvailabilityGBP float64       `json:"availability_gbp"`
	Sites           []ProductSite `json:"sites"`
	Next            flex.SiteID   `json:"next,omitzero"`
}

// ProductSite is a site that was invited to a product.
//
//openapi:addition
type ProductSite struct {
	SiteID     flex.SiteID `json:"site_id"`
	InvitedAt  Time        `json:"invited_at"`
	TakesPart  bool        `json:"takes_part"`
	AnsweredAt Time        `json:"answered_at,omitzero"`
	AnsweredBy string      `json:"answered_by,omitzero"`
}

// ProductWithdrawRequest is the body of POST /grid/products/{id}/withdraw.
//
//openapi:addition
type ProductWithdrawRequest struct {
	Reason string `json:"reason" wire:"required,text=256"`
}

// SiteProductPath holds the path parameters of a product that a site was invited to.
type SiteProductPath struct {
	// The site's id.
	//
	//openapi:merge {"example": "a1b2c3d4-e5f6-7890-abcd-ef1234567890"}
	SiteID flex.SiteID `json:"site_id" wire:"required"`
	// The product's id.
	//
	//openapi:merge {"example": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55"}
	ID flex.ProductID `json:"id" wire:"required"`
}

// ProductAnswerRequest is the body of PUT /entities/site/{site_id}/products/{id}.
//
//openapi:addition
type ProductAnswerRequest struct {
	TakesPart *bool `json:"takes_part" wire:"required"`
}

// InvitationMessage is a push that tells what one of the sites is invited to, for its user to accept or to refuse.
//
//openapi:addition
type InvitationMessage struct {
	EventID   flex.EventID   `json:"event_id"`
	ProductID flex.ProductID `json:"product_id"`
	SiteID    flex.SiteID    `json:"site_id"`
	// Who the site is to you, if you said so.
	ExternalUserID string `json:"external_user_id,omitzero"`
	// `withdrawn`: nothing is asked for any more.
	Status         string  `json:"status" wire:"enum=InvitationStatus"`
	Reference      string  `json:"reference"`
	Service        string  `json:"service" wire:"enum=InstructionService"`
	Direction      string  `json:"direction" wire:"enum=OfferDirection"`
	StartTimestamp Time    `json:"start_timestamp"`
	EndTimestamp   Time    `json:"end_timestamp"`
	PriceGBPPerMWh float64 `json:"price_gbp_per_mwh"`
	Participation  string  `json:"participation" wire:"enum=ProductParticipation"`
	// Until then one may accept; until the end, refuse.
	AnswerBy  Time `json:"answer_by"`
	TakesPart bool `json:"takes_part"`
}

// Invitations answers GET /entities/site/{site_id}/products.
//
//openapi:addition
type Invitations struct {
	Products []Invitation `json:"products"`
}

// Invitation is a product that a site was invited to, and its part in it.
//
//openapi:addition
type Invitation struct {
	ID             flex.ProductID `json:"id"`
	Reference      string         `json:"reference"`
	State          string         `json:"state" wire:"enum=ProductState"`
	Service        string         `json:"service" wire:"enum=InstructionService"`
	Direction      string         `json:"direction" wire:"enum=OfferDirection"`
	StartTimestamp Time           `json:"start_timestamp"`
	EndTimestamp   Time           `json:"end_timestamp"`
	PriceGBPPerMWh float64        `json:"price_gbp_per_mwh"`
	Participation  string         `json:"participation" wire:"enum=ProductParticipation"`
	// Until then one may accept; until the end, refuse.
	AnswerBy   Time `json:"answer_by"`
	TakesPart  bool `json:"takes_part"`
	AnsweredAt Time `json:"answered_at,omitzero"`
}
