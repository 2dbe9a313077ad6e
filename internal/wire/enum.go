package wire

import (
	"flexd/internal/flex"
)

// enums are the permitted values of each enumeration, under the name that the interface
// gives it and that a field's tag uses, byte for byte and in the interface's order.
var enums = map[string][]string{
	"Proposition":    {"limited_pause", "full_asset_schedule_control"},
	"AssetEventType": {"plug_in", "plug_out", "intent_update", "charge_now", "charge_now_deleted"},
	"AssetType": {
		"boundary meter",
		"charger",
		"battery",
		"heat pump",
		"hot water tank",
		"frequency meter",
		"electric_vehicle",
		"pv inverter",
	},
	"CreatableAssetType": {"charger", "battery", "heat pump", "electric_vehicle", "hot water tank"},
	"ChargingMode":       {"maximise_charging_time", "minimise_charging_time"},
	"TariffType":         {"single_rate", "dual_rate", "dynamic", "smart", "unknown"},
	"EventStatus":        {"RECEIVED", "ACCEPTED", "REJECTED", "FAILED", "EXECUTED"},
	"DispatchMethod": {
		"cm_infrequent_dispatch",
		"full_asset_schedule_control",
		"limited_pause",
		"vpp_limited_control",
	},
	"MarketResponse": {"cm", "dfs", "dno", "lcm", "sffr", "wholesale"},
	"EligibleMarket": {"cm", "dno", "wholesale"},
	"EligibilityCode": {
		"asset_model_not_set",
		"asset_model_not_found",
		"asset_model_not_cop11_qualified",
		"asset_installation_date_not_set",
		"asset_model_enrol_eligibility_override",
		"non_domestic_site",
	},
	"EnrolStatus":      {"enrolled", "already_enrolled"},
	"UnenrolStatus":    {"unenrolled", "already_unenrolled"},
	"BatteryAction":    {"charge_max", "discharge_max", "avoid_export", "avoid_import"},
	"SolarOrigin":      {"given", "metered", "none"},
	"DischargeForm":    {"none", "negative_limits"},
	"DispatchAction":   {"CHARGE", "DISCHARGE", "LOCK", "FEED_IN", "SELF_USE"},
	"ChargingRateUnit": {"W", "A"},
	"ProfilePurpose":   {"ChargePointMaxProfile", "TxDefaultProfile", "TxProfile"},
	"ProfileKind":      {"Absolute", "Recurring", "Relative"},
	"RecurrencyKind":   {"Daily", "Weekly"},
	"OAuthProvider": {
		"foxess",
		"solaredge",
		"solax",
		"huawei",
		"myenergi",
		"nexblue",
		"givenergy",
		"volvo",
		"deye",
		"ideal",
	},
	"PaymentStatus": {
		"pending_approval",
		"approved",
		"processing",
		"posted",
		"failed",
		"rejected",
		"cancelled",
		"returned",
	},
	"TransactionType": {
		"flex period",
		"flex period top-up",
		"flex event",
		"withdrawal",
		"invoice paid",
		"goodwill credit",
		"signup bonus",
		"correction",
		"VPP Signup Bonus",
		"Referred Credit",
		"Referrer Credit",
		"Recurring Referrer Credit",
		"FR SC Referred Credit",
		"FR SC Referrer Credit",
		"FR SC Signup Bonus",
	},
	"ReadingLabel":       labels(),
	"HeatSteering":       {"windows", "sg_ready", "temperature_offset"},
	"CapBound":           {"power", "starts_per_minute"},
	"DeliveryKind":       {"schedule", "dispatch", "invitation", "test"},
	"CapacitySource":     {"set", "default"},
	"HeldState":          {"waiting", "released", "meter_replaced", "discarded"},
	"DeliveryStatus":     {"pending", "accepted", "rejected", "superseded", "expired", "retracted"},
	"EndpointName":       {"schedule", "dispatch", "invitation"},
	"StatementFormat":    {"json", "csv"},
	"EnvelopeFormat":     {"json", "csv"},
	"InstructionService": {"wholesale", "cm", "dno", "dfs", "lcm", "sffr", "other"},
	"OfferDirection":     {"down", "up"},
	"ProgramBindingKind": {"instruction", "limit", "import_limit"},
	"ProgramOrderState":  {"waiting", "sent", "limited", "short", "refused", "outranked", "withdrawn"},
	"ProductAct":         {"new", "changed", "unchanged"},
	"ProductBaseline":    {"mean", "mid_8_of_10", "nominated"},
	"ProductState":       {"open", "sent", "over", "failed", "withdrawn"},

	"InvitationStatus":     {"open", "withdrawn"},
	"ProductParticipation": {"opt_in", "opt_out"},
	"LimitDirection":       {"import", "export"},
	"LimitSource":          {"import", "openadr", "fallback"},
	"InstructionState":     {"previewed", "ordered", "running", "stopped", "ended"},
	"AssetAction": {
		"replan",
		"resend",
		"release",
		"charge-now",
		"ready-by",
		"exclude",
		"include",
	},
	"SelectionAction": {
		"replan",
		"resend",
		"release",
		"charge-now",
		"ready-by",
		"exclude",
		"include",
		"offboard",
	},
	"ExceptionKind": {
		"halted",
		"refused",
		"dispatch_refused",
		"waiting",
		"offline",
		"endpoint_disabled",
		"endpoint_missing",
		"short_of_time",
		"short_of_off_peak",
		"short_of_headroom",
		"not_released",
		"order_unmet",
		"limit_link_lost",
		"openadr_silent",
		"database_failing",
		"job_failed",
		"price_stale",
		"plan_refused",
		"unplanned",
		"excluded",
		"tank_cold",
		"room_cold",
		"site_cut_short",
		"readings_missing",
		"charge_missing",
		"readings_held",
		"payout_waiting",
	},
	"ExceptionLevel": {"critical", "warning"},
}

// ReadingLabels are the labels of a reading, in the interface's order, and ours after them.
var ReadingLabels = []flex.Label{
	flex.BoundaryImportPower, flex.BatteryInverterPower, flex.ChargerEnergy, flex.ChargerRegister,
	flex.BoundaryImportRegister, flex.BoundaryExportRegister, flex.ProvisionalConsumption,
	flex.SolarPower, flex.BatteryStateOfCharge, flex.BatteryStoredEnergy,
	flex.RoomTemperature, flex.TankTemperature, flex.OutdoorTemperature, flex.HeatPower,
}

func labels() []string {
	var s []string
	for _, l := range ReadingLabels {
		s = append(s, string(l))
	}
	return s
}

// Enum returns the permitted values of an enumeration in the interface's order, or nil if
// there is none of that name.
func Enum(name string) []string { return enums[name] }
