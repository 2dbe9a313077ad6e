package flex

import (
	"math"
	"time"
)

// Environment says which of the service's two environments this is.
type Environment string

// The environments. Dispatch plans exist in production alone.
const (
	Production Environment = "production"
	Sandbox    Environment = "sandbox"
)

// Role is something that an organisation's token may do.
type Role string

// The roles of the interface.
const (
	EntityRead   Role = "entity_read"
	EntityWrite  Role = "entity_write"
	Rewards      Role = "rewards"
	Lookup       Role = "lookup"
	MetricsWrite Role = "metrics_write"
	Components   Role = "components"
	// Payouts is ours: only with it may a link to the balance page do without the e-mailed code.
	Payouts Role = "payouts"
)

// The roles of OpenADR's clients, which have none of the interface's.
const (
	OpenADRBusiness Role = "openadr_bl" // business logic: who runs programs
	// a virtual end node: who answers their events
	OpenADRNode Role = "openadr_ven"
)

// HomeAssistant is the one role of a household's static token, by the name of its scope.
const HomeAssistant Role = "vpp:home_assistant"

// Roles lists the roles of the interface, which an organisation's first credential has.
var Roles = []Role{
	EntityRead,
	EntityWrite,
	Rewards,
	Lookup,
	MetricsWrite,
	Components,
}

// Proposition is what a site is enrolled in.
type Proposition string

// The propositions of the interface.
const (
	LimitedPause      Proposition = "limited_pause"
	FullAssetSchedule Proposition = "full_asset_schedule_control"
)

// Propositions lists every proposition.
var Propositions = []Proposition{LimitedPause, FullAssetSchedule}

// DispatchMethod is what a site has consented to. Enrolling in a proposition consents to
// the method of the same name.
type DispatchMethod string

// The dispatch methods of the interface.
const (
	InfrequentDispatch   DispatchMethod = "cm_infrequent_dispatch"
	FullScheduleMethod   DispatchMethod = "full_asset_schedule_control"
	LimitedPauseMethod   DispatchMethod = "limited_pause"
	LimitedControlMethod DispatchMethod = "vpp_limited_control"
)

// AssetType is what kind of thing an asset is. The words are the interface's, blanks
// and underscores as they come.
type AssetType string

// The asset types. Meters and inverters appear in answers, but cannot be created.
const (
	Charger         AssetType = "charger"
	Battery         AssetType = "battery"
	HeatPump        AssetType = "heat pump"
	ElectricVehicle AssetType = "electric_vehicle"
	HotWaterTank    AssetType = "hot water tank"
	BoundaryMeter   AssetType = "boundary meter"
	FrequencyMeter  AssetType = "frequency meter"
	PVInverter      AssetType = "pv inverter"
)

// Charges reports whether assets of the type have plug sessions.
func (t AssetType) Charges() bool {
	return t == Charger || t == ElectricVehicle
}

// Org is an organisation: the tenant that all else belongs to.
type Org struct {
	ID   OrgID
	Name string
	// how far the organisation's sandbox clock runs ahead
	ClockOffset time.Duration
	// whether it has taken the clock into its own hands
	ClockHeld          bool
	MeterConsentExempt bool
	Settings           OrgSettings
	CreatedAt          time.Time
}

// OrgSettings are what an organisation may set that holds at once, for all it does from then
// on; their zero values stand for the printed defaults. What is dated is in the terms.
type OrgSettings struct {
	DefaultNeed     WattHours
	FleetCap        Watts
	StartsPerMinute int
	Rates           BatteryRates
	Books           BooksSettings
	Payout          PayoutSettings
	Page            PageSettings

	// Metering points with a greater export in any half-hour are not eligible; not given: not checked.
	ExportLimit Optional[WattHours]
	// OpenADR says whether the organisation's OpenADR clients are served.
	OpenADR bool
	// WithoutMPAN says whether sites may be registered that have no British metering point. They are planned
	// and pushed like others, and nothing of them is settled.
	WithoutMPAN bool
}

// BooksSettings are an organisation's choices of its books; their zero values stand for the
// printed defaults.
type BooksSettings struct {
	// a month is closed by itself so many days after its end; zero is never
	CloseAfterDays int
	Counterparty   string // who pays for the organisation's flexibility
	PayerName      string // who pays the users, as their statements name it
	PayerAddress   string
	PayerContact   string
	// the most that one goodwill, bonus or write-off may be
	GiftLimit Pence
	// after which a balance that nobody can withdraw counts as unclaimed
	UnclaimedDays int
}

// PageSettings are how an organisation's name, colours and contact stand on its households' page; what is
// blank is not shown, but for the name and the colours, which have defaults.
type PageSettings struct {
	Name       string
	Colour     string // of links and buttons on white, as in #0b5d51
	DarkColour string // of the same on a dark page
	Email      string
	Phone      string
	URL        string // https or http
}

// PayoutSettings are an organisation's rules for paying its users; what is not given and blank stand for
// the printed defaults.
type PayoutSettings struct {
	// a link by a credential that may pay out needs no e-mailed code
	WithoutCode bool
	// before anything is paid to an account that was linked
	CoolingHours Optional[int]
	// more to one account on one day needs two operators
	TwoAbove   Optional[Pence]
	DailyCap   Optional[Pence] // of what is approved
	FileFormat string          // of payment files
	Payer      PayerSettings
}

// PayerSettings are whom payment files name as the one who pays.
type PayerSettings struct {
	SortCode string // six digits
	Number   string // eight digits
	SUN      string // the service user number at Bacs, six digits
	// in the place of sort code and number, where a bank asks for it
	IBAN string
	BIC  string
}

// BatteryRates are what home batteries, tanks and cars that may discharge are planned on under a tariff whose rates nobody
// has given, in pence per kilowatt-hour; the printed default stands for what was not given.
type BatteryRates struct {
	Peak    Optional[float64]
	OffPeak Optional[float64]
	Export  Optional[float64]
	// what a kWh that a home battery discharges counts as wear; 0 if it was not given
	BatteryWear Optional[float64]
}

// Site is a premises with an electricity meter.
type Site struct {
	ID        SiteID
	MPAN      Personal
	Postcode  Personal
	Address   Personal
	Email     Personal
	ConsentAt time.Time // of the boundary meter; zero if never given
	// since when its user has consented to its cars being discharged; zero if they have not
	DischargeConsentAt time.Time
	// what the connection can carry; the default if it was never given
	Supply         Supply
	Tariff         SiteTariff
	Calls          AgreedCalls // by instructions of the grid
	ExternalUserID string
	CreatedAt      time.Time
}

// SiteRecord is a site with what belongs to it, as it is shown: without its email, end user
// and instant of making.
type SiteRecord struct {
	Site
	Assets  []AssetID
	Methods []DispatchMethod
	// what its markets rest on; nil if its MPAN is on no list
	Meter *Meter
}

// SiteTariff is the tariff as the site record keeps it, apart from the assets' own.
type SiteTariff struct {
	Type       TariffType
	CheapStart *WallTime
	CheapEnd   *WallTime
	Rates      TariffRates
}

// TariffRates are what a kilowatt-hour costs and earns under a tariff, in pence; nil where it was not given.
type TariffRates struct {
	Import  *float64 // in dear hours, or in all where none are cheap
	OffPeak *float64
	Export  *float64
}

// TariffRateMax is the most that a kilowatt-hour may be said to cost or earn, in pence.
const TariffRateMax = 1000.0

// Asset is a thing at a site whose power can be steered.
type Asset struct {
	ID           AssetID
	SiteID       SiteID
	ExternalID   string
	Type         AssetType
	Power        *Watts     // rated; nil if never given
	Capacity     *WattHours // nil if never given
	Phases       int        // 1 or 3; 0 if never given: PhasesOf says what its power implies
	Phase        int        // of three, that one on one phase is on: 1, 2 or 3; 0 if never given
	Model        string
	Firmware     string // its version; empty if never given
	Heat         Heat   // of a heat pump or a tank; zero if never given
	Discharge    Discharge
	InstalledOn  string // YYYY-MM-DD, or empty
	SerialNumber string
	CreatedAt    time.Time
}

// RatedPower is the asset's power, or DefaultPower if it is not known.
func (a *Asset) RatedPower() Watts {
	if a.Power == nil {
		return DefaultPower
	}
	return a.Power.OrDefault()
}

// DefaultPower is the power of a charger whose own is not known.
const DefaultPower Watts = 7400

// OrDefault is the power, or DefaultPower if it is not known.
func (w Watts) OrDefault() Watts {
	if w <= 0 {
		return DefaultPower
	}
	return w
}

// Model is an entry of the asset model catalogue.
type Model struct {
	Name string
	Type AssetType
	// qualified under Code of Practice 11 for settlement by the asset's own meter
	CoP11    bool
	Power    *Watts
	Capacity *WattHours
	Enrol    EnrolOverride
}

// EnrolOverride is an operator's own word on whether a model's assets may be enrolled.
type EnrolOverride string

// The overrides: none leaves it to the market's rules.
const (
	EnrolByRule EnrolOverride = ""
	EnrolAllow  EnrolOverride = "allow"
	EnrolDeny   EnrolOverride = "deny"
)

// Meter is a metering point as the directory knows it.
type Meter struct {
	MPAN         string
	Import       bool // direction; false is export
	Address      string
	Postcode     string
	UPRN         string
	Energised    bool
	HalfHourly   bool // settled half-hourly
	Domestic     bool
	SupplierMPID string
	SupplierName string
	GSPGroup     string
}

// EnrolmentState is where a site stands in a proposition.
type EnrolmentState string

// The enrolment states that are kept. A site that was never enrolled has none.
const (
	Enrolled EnrolmentState = "enrolled"
	// the end user left; enrolling again needs the override
	Withdrawn EnrolmentState = "withdrawn"
)

// TariffType is the interface's word for how a tariff is built.
type TariffType string

// The tariff types.
const (
	SingleRate    TariffType = "single_rate"
	DualRate      TariffType = "dual_rate"
	DynamicTariff TariffType = "dynamic"
	SmartTariff   TariffType = "smart"
	UnknownTariff TariffType = "unknown"
)

// Tariff is the off-peak hours of an asset's user, the same every day.
type Tariff struct {
	// as the client wrote it, for example "00:00-05:30, 23:30-24:00"
	OffPeak string
	Zone    string // IANA name
	Type    TariffType
}

// ChargingMode says what the need means.
type ChargingMode string

// The charging modes: maximise opens every off-peak second and takes the need as a
// floor; minimise stops when the need is met.
const (
	Maximise ChargingMode = "maximise_charging_time"
	Minimise ChargingMode = "minimise_charging_time"
)

// Intent is what a user wants of a charge.
type Intent struct {
	Need WattHours
	// as sent; only its wall time counts, and only without ReadyByLocal
	ReadyBy       time.Time
	ReadyByOffset time.Duration // the UTC offset that ReadyBy was written with
	ReadyByLocal  *WallTime
	Estimated     *bool
	MayChargePeak bool
	Mode          ChargingMode
	ReceivedAt    time.Time
}

// Session is one stay of a car at a charger, from plug-in to plug-out. At most one
// session of an asset is open.
type Session struct {
	ID           SessionID
	AssetID      AssetID
	SiteID       SiteID
	VehicleRate  Watts // zero if never given
	PluggedInAt  time.Time
	PluggedOutAt time.Time // zero while open
	ReadyBy      time.Time
	ChargeNow    Span // zero if none
}

// Step is one line of a schedule: at most Limit during Span.
type Step struct {
	Span
	Limit Watts
}

// AppendStep appends a step that follows those there are, or lengthens the last one if that has the same limit. An empty span adds
// nothing.
func AppendStep(steps []Step, in Span, limit Watts) []Step {
	if in.Empty() {
		return steps
	}

	if n := len(steps); n > 0 && steps[n-1].Limit == limit {
		steps[n-1].To = in.To
		return steps
	}

	return append(steps, Step{Span: in, Limit: limit})
}

// NoLimit is the limit of a step that leaves the charger to its rated power. It is the
// interface's own number (99999.0 W). A charger that can draw as much has its power named: FullLimit.
const NoLimit Watts = 99999

// Unbounded is more than anything draws: what bounds a power where nothing does. It is in no step that is sent.
const Unbounded Watts = math.MaxInt32

// FullLimit is the limit of a step that leaves an asset of this power to it.
func FullLimit(power Watts) Watts { return max(NoLimit, power) }

// Schedule is a plan committed for an asset: its limits from the first step to the last,
// after which the asset may charge at will. A later generation replaces all of it.
type Schedule struct {
	AssetID    AssetID
	SessionID  SessionID
	EventID    EventID // of its push
	Generation int64
	Steps      []Step
	// what a car gives within the time that the steps leave closed
	Discharges   []Step
	MayDischarge bool // its car was planned as one that may give energy back
	MadeAt       time.Time
	Heat         *HeatSignals // of a heat pump that windows do not steer
	// that its profile names: 3 where the asset's own field said so when it was made, else 0 for the published 1
	Phases int
}

// Limits are the steps of the schedule, with a limit below zero where its car gives.
func (s *Schedule) Limits() []Step { return WithDischarges(s.Steps, s.Discharges) }

// WithDischarges are steps with a limit below zero where a car gives. Where they let it charge, it gives nothing.
func WithDischarges(steps, gives []Step) []Step {
	if len(gives) == 0 {
		return steps
	}

	var all []Step
	for _, s := range steps {
		for _, g := range gives {
			in := g.Meet(s.Span)
			if in.Empty() || s.Limit > 0 {
				continue
			}

			before := Span{From: s.From, To: in.From}
			if !before.Empty() {
				all = append(all, Step{Span: before, Limit: s.Limit})
			}

			all = append(all, Step{Span: in, Limit: -g.Limit})
			s.From = in.To
		}

		if !s.Empty() {
			all = append(all, s)
		}
	}

	return all
}

// CallbackStatus is what a client reports of an event.
type CallbackStatus string

// The callback statuses, in the order in which they may follow each other. Rejected and
// Executed are final; Failed may be followed by either, for what was mended after all.
const (
	Received CallbackStatus = "RECEIVED"
	Accepted CallbackStatus = "ACCEPTED"
	Rejected CallbackStatus = "REJECTED"
	Failed   CallbackStatus = "FAILED"
	Executed CallbackStatus = "EXECUTED"
)

// Stage returns how far along the status is; a report only ever moves an event to a later
// stage. The final statuses are of one stage, Failed is of the one before, and an unknown one
// is of none.
func (s CallbackStatus) Stage() int {
	switch s {
	case Received:
		return 1
	case Accepted:
		return 2
	case Failed:
		return 3
	case Rejected, Executed:
		return 4
	}

	return 0
}

// Solar is what a roof is said to give in a half-hour.
type Solar struct {
	Period Period
	Energy WattHours
}

// PricedPeriod is a settlement period and its market price, if one is known.
type PricedPeriod struct {
	Period  Period
	Price   Price
	Known   bool
	Derived bool // from the price of a longer time, such as an hour
}

// Quote is the price of a settlement period with the publication and the source that it is
// from, which are zero if none covers the period.
type Quote struct {
	PricedPeriod
	From        PublicationID
	Source      string
	Preliminary bool
}

// Label says what a reading measures, in the interface's words.
type Label string

// The reading labels of the interface.
const (
	BoundaryImportPower    Label = "boundary_import_kw"
	BatteryInverterPower   Label = "battery_inverter_import_kw"
	ChargerEnergy          Label = "charger_consumption_energy_kwh"
	ChargerRegister        Label = "charger_lifetime_consumption_energy_kwh"
	BoundaryImportRegister Label = "boundary_lifetime_import_energy_kwh"
	BoundaryExportRegister Label = "boundary_lifetime_export_energy_kwh"
	ProvisionalConsumption Label = "provisional_consumption_kwh"
	SolarPower             Label = "solar_power_kw"
	BatteryStateOfCharge   Label = "battery_state_of_charge_pct"
	BatteryStoredEnergy    Label = "battery_stored_energy_kwh"
)

// The reading labels that are ours: of heat pumps and tanks.
const (
	RoomTemperature    Label = "room_temperature_c"
	TankTemperature    Label = "tank_temperature_c"
	OutdoorTemperature Label = "outdoor_temperature_c"
	HeatPower          Label = "heat_power_kw" // the electricity that a heat pump or a tank takes
)

// HeatLabels are those that a heat pump or a tank is planned again by.
var HeatLabels = []Label{
	RoomTemperature,
	TankTemperature,
	OutdoorTemperature,
}

// Register reports whether the label is a register, which is kept by the instant of its
// reading's end.
func (l Label) Register() bool {
	return l == ChargerRegister || l == BoundaryImportRegister ||
		l == BoundaryExportRegister
}

// Micro is a reading's value in millionths of its label's unit.
type Micro int64

// Reading is one value that an asset's meter or device reported.
type Reading struct {
	AssetID AssetID
	Span
	Label Label
	Value Micro

	// Restarted says of a register that was read at the edge of half-hours that it restarted, as its
	// meter was replaced or reset, since the edge before: no difference is taken across that.
	// Readings that are looked up carry it; it is not kept with them.
	Restarted bool
}

// KeptAt is the instant by which a reading is kept and found.
func (r *Reading) KeptAt() time.Time {
	if r.Label.Register() {
		return r.To
	}
	return r.From
}
