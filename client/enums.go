package client

// AssetType is what kind of thing an asset is.
type AssetType string

// The asset types. Meters and inverters are in answers; they cannot be created.
const (
	AssetCharger         AssetType = "charger"
	AssetBattery         AssetType = "battery"
	AssetHeatPump        AssetType = "heat pump"
	AssetElectricVehicle AssetType = "electric_vehicle"
	AssetHotWaterTank    AssetType = "hot water tank"
	AssetBoundaryMeter   AssetType = "boundary meter"
	AssetFrequencyMeter  AssetType = "frequency meter"
	AssetPVInverter      AssetType = "pv inverter"
)

// Proposition is what a site is enrolled in.
type Proposition string

// The propositions.
const (
	PropositionLimitedPause      Proposition = "limited_pause"
	PropositionFullAssetSchedule Proposition = "full_asset_schedule_control"
)

// DispatchMethod is what a site has consented to. Enrolling in a proposition consents to the
// method of the same name.
type DispatchMethod string

// The dispatch methods.
const (
	DispatchInfrequent        DispatchMethod = "cm_infrequent_dispatch"
	DispatchFullAssetSchedule DispatchMethod = "full_asset_schedule_control"
	DispatchLimitedPause      DispatchMethod = "limited_pause"
	DispatchLimitedControl    DispatchMethod = "vpp_limited_control"
)

// ChargingMode says what the energy of an intent means: the least that is charged, or all.
type ChargingMode string

// The charging modes.
const (
	// every off-peak second is used, and the energy is the least
	ChargingMaximise ChargingMode = "maximise_charging_time"
	// charging stops when the energy is there
	ChargingMinimise ChargingMode = "minimise_charging_time"
)

// TariffType is how a tariff is built.
type TariffType string

// The tariff types.
const (
	TariffSingleRate TariffType = "single_rate"
	TariffDualRate   TariffType = "dual_rate"
	TariffDynamic    TariffType = "dynamic"
	TariffSmart      TariffType = "smart"
	TariffUnknown    TariffType = "unknown"
)

// CallbackStatus is what became of a push or a dispatch.
type CallbackStatus string

// The callback statuses, in the order in which they may follow each other. Rejected and executed
// are final; failed may be followed by either, for what was repaired after all.
const (
	CallbackReceived CallbackStatus = "RECEIVED"
	CallbackAccepted CallbackStatus = "ACCEPTED"
	CallbackRejected CallbackStatus = "REJECTED"
	CallbackFailed   CallbackStatus = "FAILED"
	CallbackExecuted CallbackStatus = "EXECUTED"
)

// Role is something that a token may do.
type Role string

// The roles.
const (
	RoleEntityRead    Role = "entity_read"
	RoleEntityWrite   Role = "entity_write"
	RoleRewards       Role = "rewards"
	RoleLookup        Role = "lookup"
	RoleMetricsWrite  Role = "metrics_write"
	RoleComponents    Role = "components"
	RolePayouts       Role = "payouts"            // may link to the balance page without an e-mailed code
	RoleOpenADR       Role = "openadr_bl"         // OpenADR: runs programs
	RoleOpenADRNode   Role = "openadr_ven"        // OpenADR: answers their events
	RoleHomeAssistant Role = "vpp:home_assistant" // a household's static token
)

// Label says what a reading measures, in the unit that it ends in.
type Label string

// The reading labels.
const (
	LabelBoundaryImportPower    Label = "boundary_import_kw"
	LabelBatteryInverterPower   Label = "battery_inverter_import_kw"
	LabelChargerEnergy          Label = "charger_consumption_energy_kwh"
	LabelChargerRegister        Label = "charger_lifetime_consumption_energy_kwh"
	LabelBoundaryImportRegister Label = "boundary_lifetime_import_energy_kwh"
	LabelBoundaryExportRegister Label = "boundary_lifetime_export_energy_kwh"
	LabelProvisionalConsumption Label = "provisional_consumption_kwh"
	LabelSolarPower             Label = "solar_power_kw"
	LabelBatteryStateOfCharge   Label = "battery_state_of_charge_pct"
	LabelBatteryStoredEnergy    Label = "battery_stored_energy_kwh"
	LabelRoomTemperature        Label = "room_temperature_c"
	LabelTankTemperature        Label = "tank_temperature_c"
	LabelOutdoorTemperature     Label = "outdoor_temperature_c"
	// the electricity that a heat pump or a tank takes
	LabelHeatPower Label = "heat_power_kw"
)
