package ocppserver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

const (
	// connectorMax is the highest connector that is served.
	connectorMax = 16
	// heartbeat is how often chargers are asked to say that they are there.
	heartbeat = 5 * time.Minute
	// stale is how old a StartTransaction may be and still say that a car is there now; an
	// older one waited in the charger while it was offline.
	stale = 5 * time.Minute
	// doubt is how long a connector whose transaction stopped may keep quiet about its state
	// before it counts as free.
	doubt = time.Minute
)

// charger is one charge point: what it said, and what it and flexd were told.
type charger struct {
	b     *Bridge
	id    string
	stop  context.CancelFunc
	nudge chan struct{}

	visitors int // connections, under b.mu

	mu         sync.Mutex
	link       *link // nil while it is offline
	greeted    bool  // its ability is known since it connected or booted
	greetAt    time.Time
	ability    ability
	connectors map[int]*connector

	reports  []report  // not yet told to flexd
	reportAt time.Time // when they are due

	letters []letter // callbacks not yet sent; the worker's alone
}

// connector is one socket of a charger.
type connector struct {
	number   int
	asset    client.AssetResponse // its ID is zero while it is not known
	lookAt   time.Time            // when flexd is asked for it again
	heard    time.Time            // of the newest status, by the charger's clock
	plugged  bool
	since    time.Time // of plugged, by ours
	doubtful time.Time // a transaction stopped then, and nothing was heard since
	told     plugState
	fetch    bool // flexd may have a schedule that was pushed before we were there

	tx     int // transaction that runs, 0 if none
	start  startTransaction
	lastTx int
	meter  meter
	want   *wanted
}

// plugState is what flexd was told of a connector.
type plugState int

const (
	toldNothing plugState = iota
	toldOut
	toldIn
)

// take answers a call of the charger. It waits for nobody.
func (c *charger) take(action string, payload json.RawMessage) (any, error) {
	now := c.b.Now()
	c.mu.Lock()
	defer c.mu.Unlock()

	switch action {
	case "BootNotification":
		return with(payload, func(m bootNotification) any {
			c.boot(m, now)
			return bootAnswer{accepted, stamp{now}, int(heartbeat / time.Second)}
		})
	case "Heartbeat":
		return heartbeatAnswer{stamp{now}}, nil
	case "Authorize":
		return authorizeAnswer{tagInfo{accepted}}, nil
	case "StatusNotification":
		return with(payload, func(m statusNotification) any { c.status(m, now); return empty{} })
	case "StartTransaction":
		return with(payload, func(m startTransaction) any {
			return startAnswer{c.startTransaction(m, now), tagInfo{accepted}}
		})
	case "StopTransaction":
		return with(payload, func(m stopTransaction) any {
			c.stopTransaction(m, now)
			return authorizeAnswer{tagInfo{accepted}}
		})
	case "MeterValues":
		return with(payload, func(m meterValues) any { c.metered(m, now); return empty{} })
	case "DataTransfer":
		return statusAnswer{"UnknownVendorId"}, nil
	case "FirmwareStatusNotification", "DiagnosticsStatusNotification":
		return empty{}, nil
	}

	return nil, &callError{codeNotImplemented, fmt.Sprintf("%.50q is not an operation of OCPP 1.6 for a central system", action)}
}

// with reads a payload and hands it on.
func with[T any](payload json.RawMessage, f func(T) any) (any, error) {
	var m T
	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, &callError{codeFormation, err.Error()}
	}
	return f(m), nil
}

// boot takes note that the charger began anew: it may have forgotten its profiles, and its
// clock may have been set.
func (c *charger) boot(m bootNotification, now time.Time) {
	c.b.Log.Info("charger booted", "charger", c.id, "vendor", m.Vendor, "model", m.Model, "firmware", m.Firmware)
	c.greeted, c.greetAt, c.ability = false, now, ability{}
	for _, n := range c.connectors {
		n.heard = time.Time{}
	}
}

// connector returns the connector of that number; nil for the charger as a whole and for
// numbers that no charger has.
func (c *charger) connector(number int) *connector {
	if number < 1 || number > connectorMax {
		return nil
	}

	n := c.connectors[number]
	if n == nil {
		n = &connector{number: number, fetch: true}
		c.connectors[number] = n
	}

	return n
}

// plug notes whether a car is connected.
func (n *connector) plug(in bool, now time.Time) {
	n.doubtful = time.Time{}
	if n.plugged != in || n.since.IsZero() {
		n.plugged, n.since = in, now
	}
}

// status takes a connector's state. One that is older than what is known is passed over;
// Unavailable and Faulted say nothing of the car.
func (c *charger) status(m statusNotification, now time.Time) {
	n := c.connector(m.Connector)
	if n == nil || !m.At.IsZero() && m.At.Before(n.heard) {
		return
	}

	if !m.At.IsZero() {
		n.heard = m.At.Time
	}

	switch m.Status {
	case statusPreparing, statusCharging, statusSuspendedEV, statusSuspendedEVSE, statusFinishing:
		n.plug(true, now)
	case statusAvailable, statusReserved:
		n.plug(false, now)
	}
}

// startTransaction returns the number of the transaction. One that is told again has the
// number that it was given before.
func (c *charger) startTransaction(m startTransaction, now time.Time) int {
	n := c.connector(m.Connector)
	if n == nil {
		return c.b.nextTransaction()
	}
	if n.lastTx != 0 && n.start == m && !m.At.IsZero() {
		return n.lastTx
	}

	n.start, n.tx = m, c.b.nextTransaction()
	n.lastTx = n.tx

	if m.At.IsZero() || now.Sub(m.At.Time) < stale {
		n.plug(true, now)
		if n.heard.Before(m.At.Time) {
			n.heard = m.At.Time
		}
	}

	if n.want != nil { // a TxProfile rules one transaction
		n.want.sent = fitted{}
		n.want.over = false
		n.want.tries = 0
	}

	c.mark(n, m.At.Time, m.Meter, now)
	return n.tx
}

// stopTransaction ends a transaction. One that is not known, or was ended before, is taken
// all the same: the charger would tell it again for ever.
func (c *charger) stopTransaction(m stopTransaction, now time.Time) {
	for _, n := range c.connectors {
		if n.tx == 0 || n.tx != m.Transaction {
			continue
		}

		for _, v := range m.Data {
			c.sample(n, v, now)
		}

		c.mark(n, m.At.Time, m.Meter, now)

		n.tx = 0
		if m.At.IsZero() || !m.At.Before(n.heard) {
			if m.Reason == reasonDisconnected {
				n.plug(false, now)
			} else if n.plugged {
				n.doubtful = now
			}
		}
	}
}

func (c *charger) metered(m meterValues, now time.Time) {
	if n := c.connector(m.Connector); n != nil {
		for _, v := range m.Values {
			c.sample(n, v, now)
		}
	}
}

func (c *charger) sample(n *connector, v meterValue, now time.Time) {
	if wh, ok := registerOf(v.Sampled); ok {
		c.mark(n, v.At.Time, wh, now)
	}
}

// mark takes a register's mark and keeps what flexd is to be told of it. A charger whose
// clock is wrong by far is not believed.
func (c *charger) mark(n *connector, at time.Time, wh float64, now time.Time) {
	if at.IsZero() || wh < 0 || at.After(now.Add(stale)) {
		return
	}

	done, pass := n.meter.read(mark{at, wh})
	for _, h := range done {
		c.report(report{n, h.Span(), flex.ChargerEnergy, h.wh / 1000})
	}

	if pass {
		c.report(report{n, flex.Span{From: at, To: at}, flex.ChargerRegister, wh / 1000})
	}
}

// want gives a connector a schedule to follow. The same one again changes nothing.
func (c *charger) want(number int, p *wanted) {
	c.mu.Lock()
	defer c.mu.Unlock()

	n := c.connector(number)
	if n.want != nil && n.want.event == p.event {
		return
	}

	n.want = p
	c.wake()
}

// ours reports whether one of the charger's connectors is an asset of flexd's.
func (c *charger) ours() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, n := range c.connectors {
		if !n.asset.ID.IsZero() {
			return true
		}
	}

	return false
}
