package wire

import "flexd/internal/flex"

// The structs of this file are ours: they are what the console shows of an asset, a site and a
// fleet, and its pages answer them as JSON too.

// AssetViewQuery holds the parameters of GET /operations/asset/{asset_id}.
//
//openapi:client
type AssetViewQuery struct {
	// The first day that is shown, in London. The last plug session's time if no day is given.
	//
	//openapi:merge {"example": "2026-01-15"}
	From *Day `json:"from"`
	// The last day, at most 62 days after the first.
	//
	//openapi:merge {"example": "2026-01-16"}
	To *Day `json:"to"`
	// The push of the schedule that is explained. The newest if not given.
	Schedule flex.EventID `json:"schedule"`
}

// AssetView is an asset as it is, what its schedules in a time were, and why.
//
//openapi:addition
type AssetView struct {
	AssetID    flex.AssetID   `json:"asset_id"`
	ExternalID string         `json:"external_id"`
	Type       flex.AssetType `json:"type" wire:"enum=AssetType"`
	// Rated. Null if it was never given.
	PowerKW *float64 `json:"power_kw"`
	// Null if it was never given.
	CapacityKWh *float64 `json:"capacity_kwh"`
	// That it is planned on: as given, else by its power.
	Phases int `json:"phases" wire:"min=1,max=3"`
	// Of an asset on one phase, which: L1, L2 or L3. Absent if it was not given.
	Phase string `json:"phase,omitzero"`
	// The heat that a heat pump or a tank keeps, as it was given. Absent if it was not.
	Heat         *HeatProperties `json:"heat,omitzero"`
	Model        string          `json:"model"`
	Firmware     string          `json:"firmware"`
	SerialNumber string          `json:"serial_number"`
	CreatedAt    Time            `json:"created_at"`

	OrganisationID flex.OrgID  `json:"organisation_id"`
	Organisation   string      `json:"organisation"`
	SiteID         flex.SiteID `json:"site_id"`
	Address        string      `json:"address"`
	Postcode       string      `json:"postcode"`

	// Its site has consented to full schedule control.
	Controlled bool `json:"controlled"`
	PluggedIn  bool `json:"plugged_in"`
	// Of the last session. Absent if there never was one.
	PluggedInAt  Time `json:"plugged_in_at,omitzero"`
	PluggedOutAt Time `json:"plugged_out_at,omitzero"`
	ReadyBy      Time `json:"ready_by,omitzero"`
	// The newest schedule that the client has taken. Absent for none.
	AcceptedGeneration *int64 `json:"accepted_generation,omitzero"`

	Now Time `json:"now"`
	// Of the time that is shown.
	From Time `json:"from"`
	To   Time `json:"to"`
	// Of the last session in that time, the oldest first.
	Schedules []ScheduleView `json:"schedules"`
	// What became of the pauses that its client asked for in schedules of its own, the oldest first. Absent without any.
	Pauses []PauseView `json:"pauses,omitzero"`
	// Why the chosen schedule is as it is. Absent without any.
	Why *ScheduleExplanation `json:"why,omitzero"`
	// What was asked for by each time of the days shown that has passed, and what came of it, the oldest first. Absent without any.
	Deadlines []DeadlineView `json:"deadlines,omitzero"`
	// What it is planned with and has drawn. Absent for what does not charge.
	ChargingRate *ChargingRateResponse `json:"charging_rate,omitzero"`
	// The plan of a battery. Absent without one.
	Battery *BatteryView `json:"battery,omitzero"`
	// Why a battery has no plan.
	BatteryNote string `json:"battery_note,omitzero"`
}

// DeadlineView is what was asked for by a time that has passed, what the last schedule towards it promised, and what came of it.
//
//openapi:addition
type DeadlineView struct {
	// Of the schedule.
	EventID     flex.EventID `json:"event_id"`
	Generation  int64        `json:"generation"`
	PluggedInAt Time         `json:"plugged_in_at"`
	// Absent while the car is plugged in.
	PluggedOutAt Time    `json:"plugged_out_at,omitzero"`
	ReadyBy      Time    `json:"ready_by"`
	NeededKWh    float64 `json:"needed_kwh"`
	// By the schedule, with what counted as delivered before it.
	PromisedKWh float64 `json:"promised_kwh"`
	MissingKWh  float64 `json:"missing_kwh"`
	// Until ready_by, or the plug-out if that came first. Null unless readings cover all of that time.
	MeteredKWh *float64 `json:"metered_kwh"`
	// Why energy was missing: they add up to missing_kwh, but for rounding.
	Reasons []MissingReason `json:"reasons"`
	// The plan worked out again is the schedule.
	Exact bool `json:"exact"`
	// The same in words.
	Text string `json:"text"`
}

// MissingReason is why a part of what was asked for is missing.
//
//openapi:addition
type MissingReason struct {
	// headroom, off_peak, learned_power, time, drew_less or unplugged_early.
	Reason    string  `json:"reason"`
	EnergyKWh float64 `json:"energy_kwh"`
	Text      string  `json:"text"`
}

// PauseView is what became of a pause that a client asked for in its own schedule.
//
//openapi:addition
type PauseView struct {
	// When the schedule came.
	AskedAt Time `json:"asked_at"`
	// Absent if nothing is paused.
	StartTimestamp Time `json:"start_timestamp,omitzero"`
	EndTimestamp   Time `json:"end_timestamp,omitzero"`
	// Why, in words: the price, and what it saves; or why nothing is paused.
	Text string `json:"text"`
}

// ScheduleView is a schedule, and what became of its push.
//
//openapi:addition
type ScheduleView struct {
	EventID    flex.EventID `json:"event_id"`
	Generation int64        `json:"generation"`
	MadeAt     Time         `json:"made_at"`
	// What the schedule was made for, such as plug_in or prices.
	Cause string `json:"cause"`
	// Of its push. Absent if none is known.
	Delivery string           `json:"delivery,omitzero" wire:"enum=DeliveryStatus"`
	Periods  []SchedulePeriod `json:"periods"`
}

// BatteryView is the plan of a battery.
//
//openapi:addition
type BatteryView struct {
	PowerKW     float64 `json:"power_kw"`
	CapacityKWh float64 `json:"capacity_kwh"`
	// When the running half-hour began.
	StoredKWh float64 `json:"stored_kwh"`
	// What the home pays in these periods, less what is left stored is worth. Wear is not counted.
	CostPence float64 `json:"cost_pence"`
	// What wear of the battery counts for in its plan, beside `cost_pence`. Nobody is billed for it.
	WearPence float64 `json:"wear_pence"`
	// What `cost_pence` would be if the battery only covered the home.
	IdleCostPence float64 `json:"idle_cost_pence"`
	// What `wear_pence` would be then.
	IdleWearPence float64 `json:"idle_wear_pence"`
	// The rates of a fixed tariff by which it was planned, in pence, and where each comes from. Absent where the market's
	// prices were used.
	Rates   []EffectiveInput    `json:"rates,omitzero"`
	Periods []BatteryViewPeriod `json:"periods"`
}

// BatteryViewPeriod is a half-hour of a battery's plan.
//
//openapi:addition
type BatteryViewPeriod struct {
	StartTimestamp Time `json:"start_timestamp"`
	// CHARGE, DISCHARGE, LOCK, FEED_IN or SELF_USE.
	Mode string `json:"mode"`
	// Of LOCK, what it waits for: car, car_gives, fuse, export, feeder or cap. Absent if any mode was possible.
	WaitsFor string `json:"waits_for,omitzero"`
	// Why it does this, in words.
	Reason            string  `json:"reason"`
	ImportPencePerKWh float64 `json:"import_pence_per_kwh"`
	ExportPencePerKWh float64 `json:"export_pence_per_kwh"`
	HomeKWh           float64 `json:"home_kwh"`
	SolarKWh          float64 `json:"solar_kwh"`
	StoredKWh         float64 `json:"stored_kwh"` // at its end
}

// SiteView is a site with its assets, its consents and enrolments, and its metering point.
//
//openapi:addition
type SiteView struct {
	SiteID         flex.SiteID `json:"site_id"`
	OrganisationID flex.OrgID  `json:"organisation_id"`
	Organisation   string      `json:"organisation"`
	Address        string      `json:"address"`
	Postcode       string      `json:"postcode"`
	Email          string      `json:"email"`
	MPAN           string      `json:"mpan"`
	ExternalUserID string      `json:"external_user_id"`
	CreatedAt      Time        `json:"created_at"`

	Tariff SiteTariffView `json:"tariff"`
	// What the connection can carry from the grid.
	ImportCapacityKW float64 `json:"import_capacity_kw"`
	// What it can carry to the grid.
	ExportCapacityKW float64 `json:"export_capacity_kw"`
	CapacitySource   string  `json:"capacity_source" wire:"enum=CapacitySource"`
	// The main fuse that import_capacity_kw was given as. Absent if it was given in kW, or not.
	MainFuse *MainFuse `json:"main_fuse,omitzero"`
	// How often the site may be called by instructions of the grid. Absent without a limit.
	AgreedCalls *AgreedCalls `json:"agreed_calls,omitzero"`
	// Calls by instructions that begin in this London day, and in this calendar month.
	CallsToday     int `json:"calls_today"`
	CallsThisMonth int `json:"calls_this_month"`
	// The connection's and the assets', the oldest first.
	Ratings []RatingView `json:"ratings"`
	// The metering point. Absent if the MPAN is on no list.
	Meter  *MeterView      `json:"meter,omitzero"`
	Assets []SiteAssetView `json:"assets"`

	DispatchMethods []flex.DispatchMethod `json:"dispatch_methods" wire:"enum=DispatchMethod"`
	Enrolments      []EnrolmentView       `json:"enrolments"`
	// To the use of the boundary meter. Absent while there is none.
	ConsentAt Time `json:"consent_at,omitzero"`
	// To the same, the newest first.
	Consents []ConsentView `json:"consents"`
	// The newest first.
	Changes []SiteChangeView `json:"changes"`
}

// SiteTariffView is the tariff of a site's record.
//
//openapi:addition
type SiteTariffView struct {
	Type flex.TariffType `json:"type,omitzero" wire:"enum=TariffType"`
	// By London's clock. Absent if it was never given.
	CheapStart string `json:"cheap_start,omitzero"`
	CheapEnd   string `json:"cheap_end,omitzero"`
	// In pence for each kWh. Absent if it was never given.
	ImportRate  *float64 `json:"import_p_per_kwh,omitzero"`
	OffPeakRate *float64 `json:"off_peak_p_per_kwh,omitzero"`
	ExportRate  *float64 `json:"export_p_per_kwh,omitzero"`
}

// RatingView is what a connection could carry, or an asset's power, during a time.
//
//openapi:addition
type RatingView struct {
	// Absent for the connection.
	ExternalID string `json:"external_id,omitzero"`
	// Absent: from the beginning.
	From Time `json:"from,omitzero"`
	// Absent: on and on.
	Until Time `json:"until,omitzero"`
	// Absent: before ratings were dated.
	RecordedAt Time `json:"recorded_at,omitzero"`
	// It was not replaced by a later record.
	Counts bool `json:"counts"`
	// Of an asset, its power. 0 if it is not known.
	ImportKW float64 `json:"import_kw"`
	// Of the connection alone.
	ExportKW float64 `json:"export_kw"`
}

// MeterView is a metering point as the lists have it.
//
//openapi:addition
type MeterView struct {
	// Its direction: import, or else export.
	Import            bool   `json:"import"`
	HalfHourlySettled bool   `json:"half_hourly_settled"`
	Energised         bool   `json:"energised"`
	Domestic          bool   `json:"domestic"`
	SupplierMPID      string `json:"supplier_mpid"`
	SupplierName      string `json:"supplier_name"`
	GSPGroup          string `json:"gsp_group"`
}

// SiteAssetView is an asset of a site.
//
//openapi:addition
type SiteAssetView struct {
	AssetID    flex.AssetID   `json:"asset_id"`
	ExternalID string         `json:"external_id"`
	Type       flex.AssetType `json:"type" wire:"enum=AssetType"`
	// Rated. Null if it was never given.
	PowerKW *float64 `json:"power_kw"`
	Model   string   `json:"model"`
	// Absent while nothing is plugged in.
	PluggedInAt Time `json:"plugged_in_at,omitzero"`
	// Of the open session. Absent before it was planned.
	ReadyBy Time `json:"ready_by,omitzero"`
}

// EnrolmentView is where a site is in a proposition.
//
//openapi:addition
type EnrolmentView struct {
	Proposition flex.Proposition `json:"proposition" wire:"enum=Proposition"`
	// enrolled or withdrawn. Absent if it was never enrolled.
	State string `json:"state,omitzero"`
}

// ConsentView is a time for which the use of the boundary meter was consented to.
//
//openapi:addition
type ConsentView struct {
	From Time `json:"from"`
	To   Time `json:"to"`
	// It was not withdrawn.
	Holds bool `json:"holds"`
}

// SiteChangeView is a consent or an enrolment that changed.
//
//openapi:addition
type SiteChangeView struct {
	At Time `json:"at"`
	// What was consented to. Absent for an enrolment.
	Consent string `json:"consent,omitzero"`
	// Whether the consent was given, or else withdrawn.
	Given       bool             `json:"given"`
	Proposition flex.Proposition `json:"proposition,omitzero" wire:"enum=Proposition"`
	State       string           `json:"state,omitzero"`
}

// FleetView is a fleet as it is now, what it will draw, and what needs looking at.
//
//openapi:addition
type FleetView struct {
	Now    Time `json:"now"`
	Sites  int  `json:"sites"`
	Assets int  `json:"assets"`
	// Assets.
	PluggedIn int `json:"plugged_in"`
	// Assets that charge by plan now.
	Charging int `json:"charging"`
	// Assets that will not have what they need by ready-by.
	Short int `json:"short"`
	// Assets that are plugged in without a schedule.
	Unplanned int `json:"unplanned"`
	// By the schedules, now.
	DrawingKW float64 `json:"drawing_kw"`
	// Of the next 24 hours.
	HalfHours []FleetHalfHour `json:"half_hours"`
	// The gravest kind first, as GET /operations/exceptions has them.
	Exceptions []Exception `json:"exceptions"`
	// Kinds of exceptions that could not be looked for, as GET /operations/exceptions has them.
	Unread []string `json:"unread,omitzero" wire:"enum=ExceptionKind"`
}

// FleetHalfHour is what a fleet will draw in a half-hour, and could.
//
//openapi:addition
type FleetHalfHour struct {
	StartTimestamp Time    `json:"start_timestamp"`
	PlannedKW      float64 `json:"planned_kw"`
	// Had each car begun at full power when it was plugged in.
	WithoutFlexdKW float64 `json:"without_flexd_kw"`
	// The least that this half-hour alone could draw, every need being met.
	LowestKW float64 `json:"lowest_kw"`
	// The most.
	HighestKW float64 `json:"highest_kw"`
	// What dispatches that were sent ask batteries for, below zero to the grid. It is in none of the others.
	BatteryDispatchKW float64 `json:"battery_dispatch_kw"`
	// What batteries are expected to draw by their plans, or by a dispatch in place of the plan; below zero they give,
	// to their homes first. Of the others only `battery_dispatch_kw` is a part of it.
	BatteryKW float64 `json:"battery_kw"`
	// The least that batteries could draw in this half-hour alone, or the most that they could give, below zero.
	BatteryLowestKW float64 `json:"battery_lowest_kw"`
	// The most that they could draw.
	BatteryHighestKW float64 `json:"battery_highest_kw"`
	// What hot-water tanks and heat pumps are expected to draw by their plans. It is in none of the others.
	HeatKW float64 `json:"heat_kw"`
}
