package wire

import "flexd/internal/flex"

// Intent is what a user wants of a charge. ReadyBy is asked for by the interface, but only
// its wall time counts, and only without ReadyByLocalTime.
type Intent struct {
	// To be added by ready-by.
	EnergyRequiredKWh float64 `json:"energy_required_kwh" wire:"required,min=0,max=2000"`
	// Still needed, but only its time of day counts, and only without ready_by_local_time.
	//
	//openapi:merge {"deprecated": true}
	ReadyBy Time `json:"ready_by" wire:"required"`
	// The deadline on the wall, next time round after plug-in.
	ReadyByLocalTime *WallTime `json:"ready_by_local_time,omitzero"`
	// Whether the user guessed the energy, rather than its coming from a target of the car.
	EnergyEstimated *bool `json:"energy_estimated,omitzero"`
	// Whether peak time may be used for what off-peak time cannot deliver.
	//
	//openapi:merge {"default": false}
	MayChargePeak bool `json:"may_charge_peak"`
	//openapi:merge {"default": null}
	ChargingMode flex.ChargingMode `json:"charging_mode" wire:"enum=ChargingMode,default=maximise_charging_time"`
}

// IntentResponse answers GET /entities/asset/{asset_id}/intent.
type IntentResponse struct {
	Intent     Intent `json:"intent"`
	ReceivedAt Time   `json:"received_at"`
}

// Vehicle is the car that was plugged in; a rate of 0 is one that is not known.
type Vehicle struct {
	// The most that the car can draw; 0 is unknown.
	ChargingRateKW float64 `json:"charging_rate_kw" wire:"required,min=0,max=1000000"`
}

// Tariff is the off-peak hours of an asset's user. Whether the text is a tariff is for
// control to say, for that is another failure (400).
type Tariff struct {
	// Ranges of every day's local time with a comma between them: 00:00-05:30, 23:30-24:00. No
	// days of the week.
	OffPeakTimes string `json:"off_peak_times" wire:"required"`
	// An IANA name, such as Europe/London.
	Timezone   string          `json:"timezone" wire:"required"`
	TariffType flex.TariffType `json:"tariff_type,omitzero" wire:"enum=TariffType"`
}

// The types of the generic event.
const (
	PlugIn           = "plug_in"
	PlugOut          = "plug_out"
	IntentUpdate     = "intent_update"
	ChargeNow        = "charge_now"
	ChargeNowDeleted = "charge_now_deleted"
)

// AssetEventRequest is the body of the generic POST /entities/asset/{asset_id}/event.
type AssetEventRequest struct {
	EventType string   `json:"event_type" wire:"required,enum=AssetEventType"`
	Intent    *Intent  `json:"intent,omitzero"`
	Vehicle   *Vehicle `json:"vehicle,omitzero"`
	Tariff    *Tariff  `json:"tariff,omitzero"`
	// For charge_now.
	EndAt Time `json:"end_at,omitzero"`
}

// PlugInEventRequest is the body of event/plug-in.
type PlugInEventRequest struct {
	Intent  *Intent  `json:"intent,omitzero"`
	Vehicle *Vehicle `json:"vehicle,omitzero"`
	Tariff  *Tariff  `json:"tariff,omitzero"`
}

// PlugOutEventRequest is the empty body of event/plug-out.
type PlugOutEventRequest struct{}

// IntentEventRequest is the body of event/intent.
type IntentEventRequest struct {
	Intent Intent `json:"intent" wire:"required"`
}

// ChargeNowEventRequest is the body of event/charge-now.
type ChargeNowEventRequest struct {
	EndAt Time `json:"end_at" wire:"required"`
}

// ChargeNowDeletedEventRequest is the empty body of event/charge-now-deleted.
type ChargeNowDeletedEventRequest struct{}

// TariffUpdateEventRequest is the body of event/tariff-update.
type TariffUpdateEventRequest struct {
	Tariff Tariff `json:"tariff" wire:"required"`
}

// DecodeTariffUpdate reads the body of event/tariff-update. The interface document has
// off_peak_times in the body itself, the published description within tariff: a body that
// has no tariff, but is one, is taken too.
func DecodeTariffUpdate(body []byte, ignored *Ignored) (TariffUpdateEventRequest, error) {
	var nested, bare Ignored
	in, err := Decode[TariffUpdateEventRequest](body, &nested)
	if err == nil {
		ignored.join(nested)
		return in, nil
	}

	flat, flatErr := Decode[struct {
		OffPeakTimes string          `json:"off_peak_times" wire:"required"`
		Timezone     string          `json:"timezone" wire:"required"`
		TariffType   flex.TariffType `json:"tariff_type,omitzero" wire:"enum=TariffType"`
		Tariff       *Tariff         `json:"tariff,omitzero"`
	}](body, &bare)

	// The faults are those of the form that was sent.
	isFlat := flat.Tariff == nil && nested.has("off_peak_times")
	if flatErr != nil && isFlat {
		ignored.join(bare)
		return in, flatErr
	}

	if flatErr != nil {
		ignored.join(nested)
		return in, err
	}

	ignored.join(bare)

	return TariffUpdateEventRequest{Tariff{
		flat.OffPeakTimes,
		flat.Timezone,
		flat.TariffType,
	}}, nil
}

// PlugInScheduleEventRequest is the body of event/plug-in-schedule.
type PlugInScheduleEventRequest struct {
	ChargingSchedule []ChargingScheduleBlock `json:"charging_schedule" wire:"required,items=96"`
}

// PlugInScheduleEventResponse answers it.
type PlugInScheduleEventResponse struct {
	ModifiedChargingSchedule []ChargingScheduleBlock `json:"modified_charging_schedule"`
}

// ChargingScheduleBlock is one time of charging in a client's own schedule. The texts are
// instants for ParseTime, kept as written so that an unchanged one goes back unchanged.
type ChargingScheduleBlock struct {
	// ISO 8601; in UTC if it bears no offset.
	StartTimestamp string `json:"start_timestamp" wire:"required,like=instant"`
	// ISO 8601; in UTC if it bears no offset.
	EndTimestamp string `json:"end_timestamp" wire:"required,like=instant"`
}

// Span reads the block's ends.
func (b ChargingScheduleBlock) Span() (flex.Span, error) {
	from, err := ParseTime(b.StartTimestamp)
	if err != nil {
		return flex.Span{}, err
	}

	to, err := ParseTime(b.EndTimestamp)
	if err != nil {
		return flex.Span{}, err
	}

	return flex.Span{From: from.Time, To: to.Time}, nil
}

// Part is a part of the block. An end that is the block's own stays as it was written; the
// others are written as the block's start is.
func (b ChargingScheduleBlock) Part(part flex.Span) ChargingScheduleBlock {
	whole, err := b.Span()
	if err != nil {
		return b
	}

	style := b.StartTimestamp
	if !part.From.Equal(whole.From) {
		b.StartTimestamp = formatLike(style, part.From)
	}

	if !part.To.Equal(whole.To) {
		b.EndTimestamp = formatLike(style, part.To)
	}

	return b
}
