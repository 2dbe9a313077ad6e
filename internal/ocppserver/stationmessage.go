package ocppserver

import (
	"math"
	"slices"
)

// Requests from a station in OCPP 2.0.1, with the members that are used here.
type (
	stationBoot struct {
		Reason  string       `json:"reason,omitempty"`
		Station stationModel `json:"chargingStation"`
	}
	stationModel struct {
		Vendor   string `json:"vendorName"`
		Model    string `json:"model"`
		Firmware string `json:"firmwareVersion"`
	}
	token struct {
		ID string `json:"idToken"`
	}
	stationAuthorize struct {
		Token token `json:"idToken"`
	}
	stationStatus struct {
		EVSE      integer `json:"evseId"`
		Connector integer `json:"connectorId,omitempty"`
		Status    string  `json:"connectorStatus"`
		At        stamp   `json:"timestamp"`
	}
	evse struct {
		ID        integer `json:"id"`
		Connector integer `json:"connectorId,omitempty"`
	}
	transactionEvent struct {
		Type   string             `json:"eventType"`
		At     stamp              `json:"timestamp"`
		Info   transactionInfo    `json:"transactionInfo"`
		Token  token              `json:"idToken"`
		EVSE   evse               `json:"evse"`
		Values list[stationValue] `json:"meterValue"`
	}
	transactionInfo struct {
		ID     string `json:"transactionId"`
		State  string `json:"chargingState"`
		Reason string `json:"stoppedReason"`
	}
	stationMeter struct {
		EVSE   integer            `json:"evseId"`
		Values list[stationValue] `json:"meterValue"`
	}
	stationValue struct {
		At      stamp                `json:"timestamp"`
		Sampled list[stationSampled] `json:"sampledValue"`
	}
	stationSampled struct {
		sampled
		Measure unitOfMeasure `json:"unitOfMeasure"`
	}
	unitOfMeasure struct {
		Unit       string  `json:"unit"`
		Multiplier integer `json:"multiplier"` // a power of ten
	}
)

// tokenAnswer answers Authorize and TransactionEvent.
type tokenAnswer struct {
	Token *tagInfo `json:"idTokenInfo,omitempty"`
}

// Requests to a station in OCPP 2.0.1, and its answers.
type (
	named struct {
		Name string `json:"name"`
	}
	variable struct {
		Status    string `json:"attributeStatus,omitempty"`
		Value     string `json:"attributeValue,omitempty"`
		Component named  `json:"component"`
		Variable  named  `json:"variable"`
	}
	getVariables struct {
		Data []variable `json:"getVariableData"`
	}
	variables struct {
		Result []variable `json:"getVariableResult"`
	}
	setVariables struct {
		Data []variable `json:"setVariableData"`
	}
	variablesSet struct {
		Result []variable `json:"setVariableResult"`
	}
	stationTrigger struct {
		Message string `json:"requestedMessage"`
		EVSE    evse   `json:"evse"`
	}
	setStationProfile struct {
		EVSE    int            `json:"evseId"`
		Profile stationProfile `json:"chargingProfile"`
	}
	stationProfile struct {
		ID          int               `json:"id"`
		StackLevel  int               `json:"stackLevel"`
		Purpose     string            `json:"chargingProfilePurpose"`
		Kind        string            `json:"chargingProfileKind"`
		Transaction string            `json:"transactionId,omitempty"`
		Schedules   []stationSchedule `json:"chargingSchedule"`
	}
	stationSchedule struct {
		ID       int             `json:"id"`
		Duration int             `json:"duration,omitempty"`
		Start    stamp           `json:"startSchedule,omitzero"`
		Unit     string          `json:"chargingRateUnit"`
		Periods  []stationPeriod `json:"chargingSchedulePeriod"`
		Least    float64         `json:"minChargingRate,omitempty"`
	}
	stationPeriod struct {
		Start  int      `json:"startPeriod"`
		Limit  *float64 `json:"limit,omitempty"` // 2.1 may leave it out
		Phases int      `json:"numberPhases,omitempty"`

		// of 2.1: what the car is to do at this power, below zero to discharge
		Mode     string   `json:"operationMode,omitempty"`
		Setpoint *float64 `json:"setpoint,omitempty"`
	}
	clearStationProfile struct {
		ID       int                    `json:"chargingProfileId,omitempty"`
		Criteria stationProfileCriteria `json:"chargingProfileCriteria,omitzero"`
	}
	stationProfileCriteria struct {
		EVSE    int    `json:"evseId,omitempty"`
		Purpose string `json:"chargingProfilePurpose,omitempty"`
	}
	getStationSchedule struct {
		EVSE     int    `json:"evseId"`
		Duration int    `json:"duration"`
		Unit     string `json:"chargingRateUnit"`
	}
	stationComposite struct {
		Status   string `json:"status"`
		Schedule *struct {
			Start   stamp           `json:"scheduleStart"`
			Unit    string          `json:"chargingRateUnit"`
			Periods []stationPeriod `json:"chargingSchedulePeriod"`
		} `json:"schedule"`
	}
)

// plain converts the message to OCPP 1.6.
func (m stationModel) plain() bootNotification {
	return bootNotification(m)
}

// station converts the message to OCPP 2.0.1.
func (m bootNotification) station() stationBoot {
	return stationBoot{Reason: "Unknown", Station: stationModel(m)}
}

// station converts the message to OCPP 2.0.1, in which a status only says whether a car is
// there.
func (m statusNotification) station() stationStatus {
	status := m.Status
	known := []string{statusAvailable, statusReserved, statusUnavailable, statusFaulted}
	if !slices.Contains(known, status) {
		status = statusOccupied
	}

	return stationStatus{
		EVSE:      m.Connector,
		Connector: 1,
		Status:    status,
		At:        m.At,
	}
}

// plainValues converts meter values to OCPP 1.6.
func plainValues(all list[stationValue]) list[meterValue] {
	var plain list[meterValue]
	for _, v := range all {
		m := meterValue{At: v.At}
		for _, s := range v.Sampled {
			factor := math.Pow10(int(s.Measure.Multiplier))
			s.Value.value *= factor
			s.Value.step *= factor
			if !(math.Abs(s.Value.value) <= registerMax) {
				s.Value.value = math.NaN() // which says nothing
			}

			s.Unit = s.Measure.Unit
			m.Sampled = append(m.Sampled, s.sampled)
		}

		plain = append(plain, m)
	}

	return plain
}

// plain converts the answer to OCPP 1.6.
func (s stationComposite) plain() compositeSchedule {
	plain := compositeSchedule{Status: s.Status}
	if s.Schedule != nil {
		plain.Start = s.Schedule.Start
		plain.Schedule = &schedule{
			Unit:    s.Schedule.Unit,
			Periods: plainPeriods(s.Schedule.Periods),
		}
	}

	return plain
}

const (
	// modeSetpoint has a car charge or discharge at a given power.
	modeSetpoint = "CentralSetpoint"
	// modeIdle has the car neither charge nor discharge.
	modeIdle = "Idle"
)

// stationScheduleOf converts a schedule to OCPP 2. A limit below zero becomes the setpoint of
// a car that discharges.
func stationScheduleOf(s schedule) stationSchedule {
	out := stationSchedule{
		ID:       1,
		Duration: s.Duration,
		Start:    s.Start,
		Unit:     s.Unit,
		Least:    s.Least,
	}

	for _, p := range s.Periods {
		next := stationPeriod{Start: p.Start, Phases: p.Phases}
		if p.Limit < 0 {
			next.Mode = modeSetpoint
			next.Setpoint = new(p.Limit)
		} else {
			next.Limit = new(p.Limit)
		}

		out.Periods = append(out.Periods, next)
	}

	return out
}

// plain converts a schedule to OCPP 1.6.
func (s stationSchedule) plain() schedule {
	return schedule{
		Duration: s.Duration,
		Start:    s.Start,
		Unit:     s.Unit,
		Periods:  plainPeriods(s.Periods),
		Least:    s.Least,
	}
}

// hardly is a limit below zero that is not read as "no limit".
const hardly = -1.001

// plainPeriods converts periods to OCPP 1.6. A setpoint below zero becomes a limit below zero.
// A period without a limit and a setpoint does not limit the car. In OCPP 1.6 a limit of -1
// means no limit, so that a setpoint of -1 is changed slightly.
func plainPeriods(all []stationPeriod) []period {
	var plain []period
	for _, p := range all {
		next := period{
			Start:  p.Start,
			Limit:  math.MaxInt32,
			Phases: p.Phases,
		}

		if p.Mode == modeIdle {
			next.Limit = 0
		}
		if p.Limit != nil && *p.Limit != unlimited {
			next.Limit = *p.Limit
		}

		if p.Setpoint != nil {
			next.Limit = min(next.Limit, *p.Setpoint)
		}
		if next.Limit == unlimited {
			next.Limit = hardly
		}

		plain = append(plain, next)
	}

	return plain
}
