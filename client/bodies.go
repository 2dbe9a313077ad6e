package client

import (
	"time"

	"flexd/internal/flex"
	"flexd/internal/wire"
)

// The bodies of requests and answers, as the interface names them.
type (
	AssetProperties               = wire.AssetProperties
	AssetRequest                  = wire.AssetRequest
	OnboardingAssetRequest        = wire.OnboardingAssetRequest
	AssetUpdateRequest            = wire.AssetUpdateRequest
	AssetResponse                 = wire.AssetResponse
	AssetResponsePage             = wire.AssetResponsePage
	EventResponse                 = wire.EventResponse
	BatteryScheduleResponse       = wire.BatteryScheduleResponse
	BatteryScheduleStep           = wire.BatteryScheduleStep
	PlainDispatchScheduleResponse = wire.PlainDispatchScheduleResponse
	PlainDispatchPeriod           = wire.PlainDispatchPeriod
	PriceCurveResponse            = wire.PriceCurveResponse
	HalfHourlyPrice               = wire.HalfHourlyPrice
	ComponentToken                = wire.ComponentToken
	User                          = wire.User
	DeliveryResponse              = wire.DeliveryResponse
	DeliveryResponsePage          = wire.DeliveryResponsePage
	DeliveryDetail                = wire.DeliveryDetail
	DeliveryAttempt               = wire.DeliveryAttempt
	EndpointRequest               = wire.EndpointRequest
	EndpointHeader                = wire.EndpointHeader
	EndpointResponse              = wire.EndpointResponse
	EndpointTestResponse          = wire.EndpointTestResponse
	EnrolRequest                  = wire.EnrolRequest
	EnrolResponse                 = wire.EnrolResponse
	UnenrolRequest                = wire.UnenrolRequest
	UnenrolResponse               = wire.UnenrolResponse
	InitialiseRequest             = wire.InitialiseRequest
	InitialiseResponse            = wire.InitialiseResponse
	InitialiseSiteResult          = wire.InitialiseSiteResult
	InitialiseAssetResult         = wire.InitialiseAssetResult
	OnboardRequest                = wire.OnboardRequest
	OnboardResponse               = wire.OnboardResponse
	OnboardingRequest             = wire.OnboardingRequest
	OnboardingResponse            = wire.OnboardingResponse
	Intent                        = wire.Intent
	IntentResponse                = wire.IntentResponse
	Vehicle                       = wire.Vehicle
	Tariff                        = wire.Tariff
	AssetEventRequest             = wire.AssetEventRequest
	PlugInEventRequest            = wire.PlugInEventRequest
	PlugOutEventRequest           = wire.PlugOutEventRequest
	IntentEventRequest            = wire.IntentEventRequest
	ChargeNowEventRequest         = wire.ChargeNowEventRequest
	ChargeNowDeletedEventRequest  = wire.ChargeNowDeletedEventRequest
	TariffUpdateEventRequest      = wire.TariffUpdateEventRequest
	PlugInScheduleEventRequest    = wire.PlugInScheduleEventRequest
	PlugInScheduleEventResponse   = wire.PlugInScheduleEventResponse
	ChargingScheduleBlock         = wire.ChargingScheduleBlock
	CurvesResponse                = wire.CurvesResponse
	CurvePrice                    = wire.CurvePrice
	Publication                   = wire.Publication
	GapsResponse                  = wire.GapsResponse
	Gap                           = wire.Gap
	ClockResponse                 = wire.ClockResponse
	ClockRequest                  = wire.ClockRequest
	MPANValidationRequest         = wire.MPANValidationRequest
	MPANValidationResponse        = wire.MPANValidationResponse
	MeterSearchResponse           = wire.MeterSearchResponse
	MeterByAddressRequest         = wire.MeterByAddressRequest
	MeterByMPANRequest            = wire.MeterByMPANRequest
	MeterResponse                 = wire.MeterResponse
	SetChargingProfileRequest     = wire.SetChargingProfileRequest
	ChargingProfile               = wire.ChargingProfile
	ChargingSchedule              = wire.ChargingSchedule
	ChargingSchedulePeriod        = wire.ChargingSchedulePeriod
	DispatchEvent                 = wire.DispatchEvent
	ReadingsDataPoints            = wire.ReadingsDataPoints
	ReadingDataPoint              = wire.ReadingDataPoint
	ReadingsResponse              = wire.ReadingsResponse
	ReadingResponse               = wire.ReadingResponse
	BalanceInfoResponse           = wire.BalanceInfoResponse
	BalanceWithdrawalURLResponse  = wire.BalanceWithdrawalURLResponse
	TransactionDataResponse       = wire.TransactionDataResponse
	TransactionDatumResponse      = wire.TransactionDatumResponse
	TransactionVehicle            = wire.TransactionVehicle
	ScheduleResponse              = wire.ScheduleResponse
	SchedulePeriod                = wire.SchedulePeriod
	ScheduleExplanation           = wire.ScheduleExplanation
	PlanFigures                   = wire.PlanFigures
	ExplainedPeriod               = wire.ExplainedPeriod
	EffectiveInput                = wire.EffectiveInput
	SessionResponse               = wire.SessionResponse
	SessionResponsePage           = wire.SessionResponsePage
	WhatIfRequest                 = wire.WhatIfRequest
	WhatIfIntent                  = wire.WhatIfIntent
	WhatIfResponse                = wire.WhatIfResponse
	WhatIfResult                  = wire.WhatIfResult
	SiteRequest                   = wire.SiteRequest
	SiteUpdateRequest             = wire.SiteUpdateRequest
	TariffRequest                 = wire.TariffRequest
	TariffResponse                = wire.TariffResponse
	SiteResponse                  = wire.SiteResponse
	SiteResponsePage              = wire.SiteResponsePage
	OAuthInitiateResponse         = wire.OAuthInitiateResponse
	EligibilityCheckRequest       = wire.EligibilityCheckRequest
	EligibilityCheckResponse      = wire.EligibilityCheckResponse
	PropositionEligibility        = wire.PropositionEligibility
	SiteEligibilityDetail         = wire.SiteEligibilityDetail
	SiteProperties                = wire.SiteProperties
	AssetEligibilityDetail        = wire.AssetEligibilityDetail
	SiteMeterConsentRequest       = wire.SiteMeterConsentRequest
	SiteDispatchConsentRequest    = wire.SiteDispatchConsentRequest
	SiteAuthTokenRequest          = wire.SiteAuthTokenRequest
	SiteFlexEventsResponse        = wire.SiteFlexEventsResponse
	FlexEventResponse             = wire.FlexEventResponse
	StatementResponse             = wire.StatementResponse
	StatementLine                 = wire.StatementLine
	StatementPeriod               = wire.StatementPeriod
	SolarForecast                 = wire.SolarForecast
	SolarHalfHour                 = wire.SolarHalfHour
	SolarForecastResponse         = wire.SolarForecastResponse
	SolarExpecting                = wire.SolarExpecting
	ForecastResponse              = wire.ForecastResponse
	ForecastHalfHour              = wire.ForecastHalfHour
	ChargingRateResponse          = wire.ChargingRateResponse
	ChargingRateSession           = wire.ChargingRateSession
	Caps                          = wire.Caps
	Cap                           = wire.Cap
	CapGroup                      = wire.CapGroup
	TradedHalf                    = wire.TradedHalf
	EnvelopeResponse              = wire.EnvelopeResponse
	EnvelopeWindow                = wire.EnvelopeWindow
	AheadResponse                 = wire.AheadResponse
	AheadJudged                   = wire.AheadJudged
	AheadWindow                   = wire.AheadWindow
	ProfileRequest                = wire.ProfileRequest
	ProfileHalf                   = wire.ProfileHalf
	ProfileResponse               = wire.ProfileResponse
	ProfileCertificate            = wire.ProfileCertificate
	ProfilePart                   = wire.ProfilePart
	InstructionRequest            = wire.InstructionRequest
	InstructionPage               = wire.InstructionPage
	Instruction                   = wire.Instruction
	InstructionPreview            = wire.InstructionPreview
	InstructionHalfHour           = wire.InstructionHalfHour
	InstructionAsset              = wire.InstructionAsset
	InstructionReport             = wire.InstructionReport
	InstructionReportHalf         = wire.InstructionReportHalf
	InstructionReportPart         = wire.InstructionReportPart
	InstructionsStopped           = wire.InstructionsStopped
	ExceptionsResponse            = wire.ExceptionsResponse
	Exception                     = wire.Exception
	ExceptionAsset                = wire.ExceptionAsset
	HeldReadingPage               = wire.HeldReadingPage
	HeldReading                   = wire.HeldReading
	HeldReleaseRequest            = wire.HeldReleaseRequest
	GapBeyond                     = wire.GapBeyond
	BindingCap                    = wire.BindingCap
	DeliveryCallback              = wire.DeliveryCallback
	StatementTotals               = wire.StatementTotals
	StatementPayer                = wire.StatementPayer
	StatementCustomer             = wire.StatementCustomer
	StatementCalculation          = wire.StatementCalculation
	StatementNetting              = wire.StatementNetting
	StatementMonth                = wire.StatementMonth
	StatementMonthEvent           = wire.StatementMonthEvent
)

// The parameters of queries. A field that is zero is not given.
type (
	ScheduleQuery          = wire.ScheduleQuery
	ForecastQuery          = wire.ForecastQuery
	CurvesQuery            = wire.CurvesQuery
	StatementQuery         = wire.StatementQuery
	HeldListQuery          = wire.HeldListQuery
	GapsQuery              = wire.GapsQuery
	DeliveryListQuery      = wire.DeliveryListQuery
	EnvelopeQuery          = wire.EnvelopeQuery
	AheadQuery             = wire.AheadQuery
	ProfileQuery           = wire.ProfileQuery
	InstructionQuery       = wire.InstructionQuery
	InstructionListQuery   = wire.InstructionListQuery
	InstructionReportQuery = wire.InstructionReportQuery
)

// The values that bodies are made of.
type (
	Time     = wire.Time     // an instant; make one with At
	WallTime = wire.WallTime // a time of day
	Day      = wire.Day      // a calendar day

	SiteID        = flex.SiteID
	AssetID       = flex.AssetID
	SessionID     = flex.SessionID
	EventID       = flex.EventID
	TransactionID = flex.TransactionID
	HeldID        = flex.HeldID
	InstructionID = flex.InstructionID

	AssetType      = flex.AssetType
	Proposition    = flex.Proposition
	DispatchMethod = flex.DispatchMethod
	ChargingMode   = flex.ChargingMode
	TariffType     = flex.TariffType
	Label          = flex.Label
	CallbackStatus = flex.CallbackStatus
)

// At returns the instant as bodies carry it.
func At(t time.Time) Time { return wire.Exact(t) }
