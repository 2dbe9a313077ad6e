package main

// enumeration is one that has a schema of its own, with the mark of flexd's own. The values of
// others stand where they are used.
type enumeration struct {
	enum        string
	schema      string
	description string
	addition    bool
}

// enumerations are in the order of the document.
var enumerations = []enumeration{
	{"EligibleMarket", "EligibleMarket", "", false},
	{"MarketResponse", "MarketResponse", "", false},
	{"DispatchMethod", "DispatchMethodResponse", "", false},
	{"TariffType", "TariffType", "", false},
	{"OAuthProvider", "OAuthProvider", "", false},
	{"EligibilityCode", "EligibilityCode", "", false},
	{"AssetType", "AssetType", "", false},
	{"CreatableAssetType", "CreatableAssetType", "heat_pump and hot_water_tank are taken as well.", false},
	{"EventStatus", "EventStatus", "", false},
	{
		"BatteryAction",
		"BatteryScheduleAction",
		"avoid_export leaves import open, and avoid_import export.",
		false,
	},
	{"DispatchAction", "PlainDispatchAction", "LOCK holds the battery at its state of charge.", false},
	{
		"ChargingMode",
		"ChargingMode",
		"Maximise opens every off-peak second and takes the energy as the least; minimise stops when the energy is there.",
		false,
	},
	{"AssetEventType", "AssetEventType", "", false},
	{
		"ReadingLabel",
		"ReadingDataPointLabel",
		"What is measured, in the unit that the label ends in. The two import powers may be negative (export, discharge), and the temperatures of rooms and outdoors; the state of charge runs from 0 to 100; all else is 0 or more, and the lifetime registers never fall. Temperatures and heat_power_kw, of heat pumps and tanks, are an addition.",
		false,
	},
	{"TransactionType", "UserTransactionType", "", false},
	{"PaymentStatus", "PaymentStatus", "", false},
	{"ProfilePurpose", "ChargingProfilePurposeType", "", false},
	{"ProfileKind", "ChargingProfileKindType", "", false},
	{"RecurrencyKind", "RecurrencyKindType", "", false},
	{"ChargingRateUnit", "ChargingRateUnitType", "", false},
	{"CapBound", "CapBound", "", true},
	{"SolarOrigin", "SolarOrigin", "", true},
	{"DeliveryKind", "DeliveryKind", "", true},
	{"DeliveryStatus", "DeliveryStatus", "", true},
	{"EndpointName", "EndpointName", "", true},
	{"EnvelopeFormat", "EnvelopeFormat", "", true},
	{"InstructionService", "InstructionService", "", true},
	{"OfferDirection", "OfferDirection", "", true},
	{"InstructionState", "InstructionState", "", true},
	{"ExceptionKind", "ExceptionKind", "", true},
	{"ExceptionLevel", "ExceptionLevel", "", true},
	{
		"CapacitySource",
		"CapacitySource",
		"Whether the capacity was set for the site; else it is the default, 100 A on one phase.",
		true,
	},
	{
		"HeldState",
		"HeldState",
		"Whether it waits, or what was decided. `meter_replaced` is released, and the register started again with it.",
		true,
	},
	{"StatementFormat", "StatementFormat", "", true},
}
