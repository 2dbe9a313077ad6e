package ocppserver

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"
)

// The subprotocols of OCPP 2. They are handled alike, except that only 2.1 has cars that
// discharge.
const (
	subprotocol201 = "ocpp2.0.1"
	subprotocol21  = "ocpp2.1"
)

// ofStation reports whether a subprotocol is OCPP 2.0.1 or 2.1.
func ofStation(subprotocol string) bool {
	return subprotocol == subprotocol201 || subprotocol == subprotocol21
}

// The kinds of TransactionEvent.
const (
	eventStarted = "Started"
	eventEnded   = "Ended"
)

// takeStation answers a call in OCPP 2.0.1 or 2.1. It converts the call to the same facts as
// in 1.6, so that the same rules apply.
func (c *charger) takeStation(
	action string,
	payload json.RawMessage,
) (any, error) {
	now := c.b.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.saveState() // what was answered must survive a crash

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
			c.noteMeterValues(meterValues{
				Connector: m.EVSE,
				Values:    plainValues(m.Values),
			}, now)

			return empty{}
		})
	case actionSign:
		return decodeThen(payload, func(m signCertificate) any {
			if reason := c.takeRequest(m, payload, now); reason != nil {
				return stationStatusAnswer{rejected, reason}
			}
			return stationStatusAnswer{Status: accepted}
		})
	}

	c.noteStationReport(action, payload, now)

	return takeStationOther(action)
}

// takeStationOther answers calls that change nothing here.
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

// stationStatus handles the status of an EVSE's connector.
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

// withCar are the statuses that show that a car is there.
var withCar = []string{
	statusPreparing,
	statusCharging,
	statusSuspendedEV,
	statusSuspendedEVSE,
	statusFinishing,
}

// takeOutlet handles the status of one of an EVSE's connectors. Occupied only means that a car
// is there, so that a more precise status from the transaction stays. The status of a
// connector other than the car's is ignored.
func (n *connector) takeOutlet(
	e chargerEvent,
	at, arrived time.Time,
	patience time.Duration,
) {
	occupied := e.Word == statusOccupied
	if !occupied && n.isOtherOutlet(e.Outlet) {
		return
	}

	status := e.Word
	if occupied {
		status = statusPreparing
		if n.pluggedIn && slices.Contains(withCar, n.status) {
			status = n.status
		}
	}

	newest := !at.Before(n.heard)
	n.takeStatus(status, at, arrived)
	n.tookStatus(status, at, patience)

	// While one car charges, another may be plugged in at the next connector. The EVSE charges
	// one at a time.
	waits := n.tx != 0 && n.outlet != 0
	if occupied && newest && !waits {
		n.outlet = e.Outlet
	}
}

// isOtherOutlet reports whether a connector of the EVSE is not the one with the car.
func (n *connector) isOtherOutlet(outlet int) bool {
	known := outlet != 0 && n.outlet != 0
	return n.pluggedIn && known && outlet != n.outlet
}

// event handles a TransactionEvent: the start and end of a transaction, its meter values and
// the state of the car come in one message.
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
		c.noteMeterValues(meterValues{
			Connector:   integer(n.number),
			Transaction: integer(number),
			Values:      values,
		}, now)
	}

	if status := m.chargerStatus(); status != "" {
		c.at(m.At, now, chargerEvent{
			What:      saidStatus,
			Connector: n.number,
			Outlet:    int(m.EVSE.Connector),
			Word:      status,
		})
	}

	return answer
}

// start converts the event into a StartTransaction of OCPP 1.6.
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

// stop converts the event into a StopTransaction of OCPP 1.6.
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

// chargerStatus returns the OCPP 1.6 status that a TransactionEvent implies; empty if none.
// After the end of a transaction the car stays until a status reports that it has gone.
func (m transactionEvent) chargerStatus() string {
	state := m.Info.State
	switch {
	case state == "Idle":
		return statusAvailable
	case m.Type == eventEnded && m.Info.Reason == reasonDisconnected:
		return "" // the event's type is enough
	case m.Type == eventEnded:
		return statusFinishing
	case state == "EVConnected":
		return statusPreparing
	}

	return state
}

// numberOf returns the number for a transaction's textual id: 31 bits of a hash, never 0. It
// is the same after a restart.
func numberOf(id string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails

	return int(max(1, h.Sum32()&math.MaxInt32))
}

// registerOf returns the energy register at the start or end of a transaction, in Wh. It is
// the latest value, because the end may repeat all samples of the transaction. It is -1, an
// impossible register, if there is none.
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

// isRegister reports whether a value is the total imported energy at the outlet.
func (v sampled) isRegister() bool {
	outlet := v.Location == "" || v.Location == "Outlet"
	energy := v.Measurand == "" || v.Measurand == measurand

	return outlet && energy && v.Phase == ""
}
