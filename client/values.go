package client

import (
	"time"

	"flexd/internal/flex"
	"flexd/internal/wire"
)

// Values of which bodies are made: ids are 16 bytes, written as UUIDs; the others are texts and
// numbers of their own kind.
type (
	Time       = wire.Time       // an instant; make one with At
	LondonTime = wire.LondonTime // an instant, written in London's time
	WallTime   = wire.WallTime   // a time of day
	Day        = wire.Day        // a calendar day
	Pence      = flex.Pence      // an amount of money in whole pence

	SiteID        = flex.SiteID
	AssetID       = flex.AssetID
	SessionID     = flex.SessionID
	EventID       = flex.EventID
	FlexEventID   = flex.FlexEventID
	TransactionID = flex.TransactionID
	HeldID        = flex.HeldID
	InstructionID = flex.InstructionID
	OfferID       = flex.OfferID
	ProductID     = flex.ProductID
	ADRObjectID   = flex.ADRObjectID // of an OpenADR program or event
	AlertID       = flex.AlertID
	OrgID         = flex.OrgID
	EndpointID    = flex.EndpointID
	PublicationID = flex.PublicationID
	UserID        = flex.UserID

	AssetType      = flex.AssetType
	Proposition    = flex.Proposition
	DispatchMethod = flex.DispatchMethod
	ChargingMode   = flex.ChargingMode
	TariffType     = flex.TariffType
	Label          = flex.Label
	CallbackStatus = flex.CallbackStatus
	Role           = flex.Role
)

// At returns the instant as bodies carry it.
func At(t time.Time) Time { return wire.Exact(t) }
