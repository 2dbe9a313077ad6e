package ocppserver

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"
)

// The versions of OCPP in JSON that a charging station speaks. They are one dialect, but that
// 2.1 alone knows cars that discharge.
const (
	subprotocol201 = "ocpp2.0.1"
	subprotocol21  = "ocpp2.1"
)

// ofStation reports whether a subprotocol is one of the dialect of OCPP 2.
func ofStation(subprotocol string) bool {
	return subprotocol == subprotocol201 || subprotocol == subprotocol21
}

// The kinds of TransactionEvent.
const (
	eventStarted = "Started"
	eventEnded   = "Ended"
)

// takeStation answers a call in OCPP 2.0.1 or 2.1: what it says becomes the same facts as in
// 1.6, and the rules for them are the same.
func (c *charger) takeStation(
	action string,
	payload json.RawMessage,
) (any, error) {
	now := c.b.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.keep() // nothing that was answered may be lost

	switch action {
	case "BootNotification":
		return decodeThen(payload, func(m stationBoot) any {
			return c.boot(m.Station.plain(), now)
		})
	case "Heartbeat":
		return heartbeatAnswer{stamp{now}}, nil
	case "Authorize":
		return decodeThen(payload, func(m stationAuthorize) any {
			return tokenAnswer{new(c.b.tagInfo(m.Token.ID))}
		})

	case "StatusNotification":
		return decodeThen(payload, func(m stationStatus) any {
			c.stationStatus(m, now)
			return empty{}
		})
	case "TransactionEvent":
		return decodeThen(payload, func(m transactionEvent) any {
			return c.event(m, now)
		})

	case "MeterValues":
		return decodeThen(payload, func(m stationMeter) any {
			c.metered(meterValues{
				Connector: m.EVSE,
				Values:    plainValues(m.Values),
			}, now)

			return empty{}
		})
	case actionSign:
		return decodeThen(payload, func(m signCertificate) any {
			if why := c.takeRequest(m, payload, now); why != nil {
				return stationStatusAnswer{rejected, why}
			}
			return stationStatusAnswer{Status: accepted}
		})
	}

	c.noteStationReport(action, payload, now)

	return takeStationOther(action)
}

// takeStationOther answers what changes nothing here.
func takeStationOther(action string) (any, error) {
	switch action {
	case "DataTransfer":
		return statusAnswer{"UnknownVendorId"}, nil
	case "Get15118EVCertificate":
		return contractAnswer{refuse("Failed", reasonRequest, noISO15118), ""}, nil
	case "GetCertificateStatus":
		return refuse("Failed", reasonRequest, noISO15118), nil
	case "NotifyEVChargingNeeds",
		"OpenPeriodicEventStream", "PullDynamicScheduleUpdate", "VatNumberValidation":
		return statusAnswer{rejected}, nil
	case "NotifyEVChargingSchedule":
		return statusAnswer{accepted}, nil

	case "ClearedChargingLimit", "FirmwareStatusNotification", "LogStatusNotification",
		"NotifyChargingLimit", "NotifyCustomerInformation", "NotifyDisplayMessages",
		"NotifyEvent", "NotifyMonitoringReport", "NotifyReport", "PublishFirmwareStatusNotification",
		"ReportChargingProfiles", "ReservationStatusUpdate", "SecurityEventNotification":
		return empty{}, nil

	case "BatterySwap", "ClosePeriodicEventStream", "NotifyDERAlarm", "NotifyDERStartStop",
		"NotifyPriorityCharging", "NotifySettlement", "NotifyWebPaymentStarted", "ReportDERControl": // of 2.1
		return empty{}, nil
	}

	return nil, &callError{
		codeNotImplemented,
		fmt.Sprintf("%.50q is not an operation of OCPP 2.0.1 or 2.1 that is served here", action),
	}
}

// stationStatus takes the state of an EVSE's connector.
func (c *charger) stationStatus(m stationStatus, now time.Time) {
	n := c.connector(int(m.EVSE))
	if n == nil {
		return
	}

	c.at(m.At, now, chargerEvent{
		What:      saidOutlet,
		Connector: n.number,
		Outlet:    int(m.Connector),
		Word:      m.Status,
	})
}

// withCar are the statuses that say that a car is there.
var withCar = []string{
	statusPreparing,
	statusCharging,
	statusSuspendedEV,
	statusSuspendedEVSE,
	statusFinishing,
}

// takeOutlet takes the state of one of an EVSE's connectors. Occupied says no more than that a
// car is there: what its transaction said of it stays. What another of them than the car's
// says meanwhile is not of the car.
func (n *connector) takeOutlet(
	e chargerEvent,
	at, arrived time.Time,
	patience time.Duration,
) {
	occupied := e.Word == statusOccupied
	if !occupied && n.elsewhere(e.Outlet) {
		return
	}

	word := e.Word
	if occupied {
		word = statusPreparing
		if n.plugged && slices.Contains(withCar, n.status) {
			word = n.status
		}
	}

	newest := !at.Before(n.heard)
	n.takeStatus(word, at, arrived)
	n.tookStatus(word, at, patience)

	// While one charges, another car may come to the next connector: the EVSE charges one at a
	// time.
	waits := n.tx != 0 && n.outlet != 0
	if occupied && newest && !waits {
		n.outlet = e.Outlet
	}
}

// elsewhere reports whether a connector of the EVSE is another than the one that the car is at.
func (n *connector) elsewhere(outlet int) bool {
	known := outlet != 0 && n.outlet != 0
	return n.plugged && known && outlet != n.outlet
}

// event takes what a station says of a transaction: its beginning, its end, its meter and the
// state of the car, in one message.
func (c *charger) event(m transactionEvent, now time.Time) tokenAnswer {
	var answer tokenAnswer
	if m.Token.ID != "" {
		answer.Token = new(c.b.tagInfo(m.Token.ID))
	}

	number := numberOf(m.Info.ID)
	n := c.connector(int(m.EVSE.ID))
	if n == nil {
		n = c.transaction(number)
	}
	if n == nil {
		return answer
	}

	values := plainValues(m.Values)
	if n.tx == 0 || n.tx == number || m.Type == eventStarted {
		n.txName = m.Info.ID
	}

	if m.Type == eventStarted {
		c.startTransaction(m.start(n, values), number, now)
	}

	if m.Type == eventEnded {
		c.stopTransaction(m.stop(number, values), now)
	} else {
		c.metered(meterValues{
			Connector:   integer(n.number),
			Transaction: integer(number),
			Values:      values,
		}, now)
	}

	if word := m.word(); word != "" {
		c.at(m.At, now, chargerEvent{
			What:      saidStatus,
			Connector: n.number,
			Outlet:    int(m.EVSE.Connector),
			Word:      word,
		})
	}

	return answer
}

// start is the event as a StartTransaction of OCPP 1.6.
func (m transactionEvent) start(
	n *connector,
	values list[meterValue],
) startTransaction {
	return startTransaction{
		Connector: integer(n.number),
		Tag:       m.Token.ID,
		Meter:     registerOf(values),
		At:        m.At,
	}
}

// stop is the event as a StopTransaction of OCPP 1.6.
func (m transactionEvent) stop(
	number int,
	values list[meterValue],
) stopTransaction {
	return stopTransaction{
		Transaction: integer(number),
		Meter:       registerOf(values),
		At:          m.At,
		Reason:      m.Info.Reason,
		Data:        values,
	}
}

// word is the status of OCPP 1.6 that a transaction's event stands for, empty if it says nothing.
// After the end of a transaction a car stays until a status says that it has gone.
func (m transactionEvent) word() string {
	state := m.Info.State
	switch {
	case state == "Idle":
		return statusAvailable
	case m.Type == eventEnded && m.Info.Reason == reasonDisconnected:
		return "" // the end says so
	case m.Type == eventEnded:
		return statusFinishing
	case state == "EVConnected":
		return statusPreparing
	}

	return state
}

// numberOf is the number that stands for a transaction's text: 31 bits of a hash, never 0, so
// that it is the same after a restart.
func numberOf(id string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails

	return int(max(1, h.Sum32()&math.MaxInt32))
}

// registerOf is the energy register of a transaction's beginning or end, in Wh: the latest one, for
// the end may bring all samples of the transaction along. It is -1, which no register shows, if
// there is none among the values.
func registerOf(values list[meterValue]) decimal {
	found := decimal{value: -1}
	var at time.Time
	for _, v := range values {
		if v.At.Before(at) {
			continue
		}

		for _, s := range v.Sampled {
			if !s.isRegister() || math.IsNaN(s.Value.value) {
				continue
			}

			found = s.Value
			at = v.At.Time
			if s.Unit == "kWh" {
				found.value *= 1000
				found.step *= 1000
			}
		}
	}

	return found
}

// isRegister reports whether a value is the total energy at the outlet.
func (v sampled) isRegister() bool {
	outlet := v.Location == "" || v.Location == "Outlet"
	energy := v.Measurand == "" || v.Measurand == measurand

	return outlet && energy && v.Phase == ""
}
