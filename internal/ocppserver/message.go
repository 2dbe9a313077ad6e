package ocppserver

import (
	"encoding/json"
	"time"
)

// stamp is an instant in a message. Chargers write it in many ways; one that cannot be read
// is zero, and one without a zone is in UTC.
type stamp struct{ time.Time }

func (s *stamp) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		return nil
	}

	for _, layout := range []string{
		time.RFC3339Nano,
		"2006-01-02T15:04:05.999999999",
		"2006-01-02 15:04:05Z07:00",
	} {
		t, err := time.Parse(layout, text)
		if err == nil && t.Year() >= 2000 && t.Year() < 2100 {
			s.Time = t.UTC()
			return nil
		}
	}

	return nil
}

// MarshalJSON writes whole seconds with a Z, which every charger reads.
func (s stamp) MarshalJSON() ([]byte, error) {
	return json.Marshal(s.UTC().Format("2006-01-02T15:04:05Z"))
}

// list is an array in a message; some chargers omit the brackets around a single item.
type list[T any] []T

func (l *list[T]) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var one T
		err := json.Unmarshal(b, &one)
		*l = list[T]{one}

		return err
	}

	return json.Unmarshal(b, (*[]T)(l))
}

// Requests from a charger, in OCPP 1.6.
type (
	bootNotification struct {
		Vendor   string `json:"chargePointVendor"`
		Model    string `json:"chargePointModel"`
		Firmware string `json:"firmwareVersion"`
	}
	authorize struct {
		Tag string `json:"idTag"`
	}
	statusNotification struct {
		Connector integer `json:"connectorId"`
		Error     string  `json:"errorCode"`
		Status    string  `json:"status"`
		At        stamp   `json:"timestamp"`
	}
	startTransaction struct {
		Connector integer `json:"connectorId"`
		Tag       string  `json:"idTag"`
		Meter     decimal `json:"meterStart"`
		At        stamp   `json:"timestamp"`
	}
	stopTransaction struct {
		Transaction integer          `json:"transactionId"`
		Meter       decimal          `json:"meterStop"`
		At          stamp            `json:"timestamp"`
		Reason      string           `json:"reason"`
		Data        list[meterValue] `json:"transactionData"`
	}
	meterValues struct {
		Connector   integer          `json:"connectorId"`
		Transaction integer          `json:"transactionId"`
		Values      list[meterValue] `json:"meterValue"`
	}
	meterValue struct {
		At      stamp         `json:"timestamp"`
		Sampled list[sampled] `json:"sampledValue"`
	}
	sampled struct {
		Value     decimal `json:"value"`
		Context   string  `json:"context"`
		Format    string  `json:"format"`
		Measurand string  `json:"measurand"`
		Phase     string  `json:"phase"`
		Location  string  `json:"location"`
		Unit      string  `json:"unit"`
	}
)

// Answers to a charger's requests.
type (
	bootAnswer struct {
		Status   string `json:"status"`
		Now      stamp  `json:"currentTime"`
		Interval int    `json:"interval"` // s between heartbeats
	}
	heartbeatAnswer struct {
		Now stamp `json:"currentTime"`
	}
	tagInfo struct {
		Status string `json:"status"`
	}
	authorizeAnswer struct {
		Tag tagInfo `json:"idTagInfo"`
	}
	startAnswer struct {
		Transaction int     `json:"transactionId"`
		Tag         tagInfo `json:"idTagInfo"`
	}
	statusAnswer struct {
		Status string `json:"status"`
	}
	empty struct{}
)

// Requests to a charger, and its answers.
type (
	getConfiguration struct {
		Keys []string `json:"key"`
	}
	configurationKey struct {
		Key      string `json:"key"`
		ReadOnly bool   `json:"readonly"`
		Value    string `json:"value"`
	}
	configuration struct {
		Known   []configurationKey `json:"configurationKey"`
		Unknown []string           `json:"unknownKey"`
	}
	changeConfiguration struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	triggerMessage struct {
		Message   string `json:"requestedMessage"`
		Connector int    `json:"connectorId,omitempty"`
	}
	setChargingProfile struct {
		Connector int             `json:"connectorId"`
		Profile   chargingProfile `json:"csChargingProfiles"`
	}
	clearChargingProfile struct {
		ID        int    `json:"id,omitempty"`
		Connector int    `json:"connectorId,omitempty"`
		Purpose   string `json:"chargingProfilePurpose,omitempty"`
	}
	getCompositeSchedule struct {
		Connector int    `json:"connectorId"`
		Duration  int    `json:"duration"`
		Unit      string `json:"chargingRateUnit"`
	}
	compositeSchedule struct {
		Status   string    `json:"status"`
		Start    stamp     `json:"scheduleStart"`
		Schedule *schedule `json:"chargingSchedule"`
	}
	chargingProfile struct {
		ID          int      `json:"chargingProfileId"`
		Transaction int      `json:"transactionId,omitempty"`
		StackLevel  int      `json:"stackLevel"`
		Purpose     string   `json:"chargingProfilePurpose"`
		Kind        string   `json:"chargingProfileKind"`
		Schedule    schedule `json:"chargingSchedule"`
	}
	schedule struct {
		Duration int      `json:"duration,omitempty"`
		Start    stamp    `json:"startSchedule,omitzero"`
		Unit     string   `json:"chargingRateUnit"`
		Periods  []period `json:"chargingSchedulePeriod"`
		Least    float64  `json:"minChargingRate,omitempty"`
	}
	period struct {
		Start  int     `json:"startPeriod"`
		Limit  float64 `json:"limit"`
		Phases int     `json:"numberPhases,omitempty"`
	}
)

// Values of OCPP 1.6 that the bridge's decisions depend on.
const (
	accepted = "Accepted"
	rejected = "Rejected"

	statusAvailable     = "Available"
	statusPreparing     = "Preparing"
	statusCharging      = "Charging"
	statusSuspendedEV   = "SuspendedEV"
	statusSuspendedEVSE = "SuspendedEVSE"
	statusFinishing     = "Finishing"
	statusReserved      = "Reserved"
	statusUnavailable   = "Unavailable"
	statusFaulted       = "Faulted"
	statusOccupied      = "Occupied" // of OCPP 2.0.1

	reasonDisconnected = "EVDisconnected"

	purposeTx        = "TxProfile"
	purposeTxDefault = "TxDefaultProfile"
	purposeMax       = "ChargePointMaxProfile"
)
