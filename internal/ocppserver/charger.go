package ocppserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"flexd/client"
	"flexd/internal/bridge"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
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
	// apartFor is how long after one car's plug-out the next one is reported: flexd takes a
	// plug that was out for a minute at most for a flicker of the same session's.
	apartFor = time.Minute + time.Second
	// pendingMax is how many samples wait until the connector's asset is known.
	pendingMax = 4096
)

// charger is one charge point: its reported state, and what was last sent to it and to flexd.
type charger struct {
	b      *Bridge
	id     string
	stop   context.CancelFunc
	wakeup chan struct{}

	connections int // under b.mu
	failures    int // of the work for it before
	// the platform that it belongs to, if there is one
	up *upstream

	mu           sync.Mutex
	link         *link // nil while it is offline
	aborted      bool  // the work for it broke off, and it is the bridge's no more
	noPassword   bool  // it connected without a password
	configured   bool  // its capabilities were read since it connected or booted
	configureAt  time.Time
	boots        int // how often it booted
	settings     settings
	model        bootNotification // what it is
	capabilities capabilities
	clock        clock
	late         []lateEvent
	connectors   map[int]*connector
	// the ids of the profiles that it took for all of its connectors, when it had said only one
	allConnectorProfiles []int
	// how often their clearing was not answered; the worker's alone
	unbinds int

	reports  []report // flexd lacks them
	sending  []report // those under way to it
	reportAt time.Time
	posting  posting // the worker's alone

	callbacks   []callback // not yet sent
	lateAnswers []lateAnswer
	// that was signed for it and that it was not yet sent, nil if there is none
	certificate *certificateSigned

	transactions   []bridge.Transaction // the newest last
	stationReports []bridge.Report      // the newest last

	savedHash [sha256.Size]byte // of what was saved last
}

// connector is one plug of a charger.
type connector struct {
	number int
	asset  client.AssetResponse // its ID is zero while it is not known
	// the asset is as an earlier run of the bridge knew it
	stored    bool
	nextQuery time.Time // when flexd is asked for it again, if it had none
	readAt    time.Time // and if it had one; the worker's alone
	status    string
	heard     time.Time // of the newest status, by the charger
	pluggedIn bool
	since     time.Time // of plugged
	// when a transaction stopped after which the charger has sent nothing; zero else
	doubtful time.Time
	reported plugState
	// when a car was last reported to flexd
	reportedAt time.Time
	// by the charger: when a car was last gone; zero for never
	unpluggedAt time.Time
	// by the charger: when the same car was there again after its plug had flickered last
	repluggedAt time.Time
	// another car came than the one that was reported to flexd, for a plug is not free for so
	// long by a flicker
	another bool
	// when that one can be reported; zero for at once
	nextAt time.Time
	// flexd was sent that a car is there since the last one was reported gone, and may know of it
	announced bool
	// flexd may have a schedule that was pushed before the bridge was started
	fetch bool

	tx        int // transaction that runs, 0 if none
	start     startTransaction
	startedAt time.Time // of the last transaction
	lastTx    int       // its number
	txName    string    // its text, with OCPP 2.0.1
	// with OCPP 2, which of the EVSE's connectors the car is at, as it was said last; 0 if it
	// was not
	outlet int

	pending []sample // until the asset is known
	// when flexd was last sent the car's state of charge
	socAt  time.Time
	phases int // as its meter showed, 0 if it did not
	// flexd refused them, and is not asked again
	phasesRefused bool
	// the version that flexd refused, and is not asked again
	firmwareRefused string
	unread          string // why the last sample could not be used
	meter           meter
	// the half-hour's edge at which the meter was last asked for
	edge time.Time
	// when it was last asked for its meter to see whether it obeys
	meterAskedAt time.Time
	allowed      []flex.Step

	// the charger refused to have its car discharge since it connected
	refusesDischarge bool

	// the id of the profile that the charger took last, until it is taken off; 0 if there is none
	profile  int
	takeOffs int // how often that was not answered

	// the charger was sent its floor since it connected, and nothing replaced it
	floorSent  bool
	floorCount int  // it counts how often it was to be sent
	covered    bool // but for a plan, which ends with it
	// the forms of it that were refused by late answers since it connected; the worker's alone
	floorRefused []form

	want   *pushTarget
	newest client.EventID // of the schedules that came
}

// plugState is the state of a connector that was reported to flexd.
type plugState int

const (
	reportedNothing plugState = iota
	reportedOut
	reportedIn
)

// handleCall answers a call of the charger, without waiting for anything else.
func (c *charger) handleCall(action string, payload json.RawMessage) (any, error) {
	return c.handleVersion(action, payload, 0)
}

// handleVersion is take, with the number for a StartTransaction; 0 for any.
func (c *charger) handleVersion(
	action string,
	payload json.RawMessage,
	number int,
) (any, error) {
	now := c.b.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.saveState() // nothing that was answered may be lost

	switch action {
	case "BootNotification":
		return decodeThen(payload, func(m bootNotification) any {
			return c.boot(m, now)
		})
	case "Heartbeat":
		return heartbeatAnswer{stamp{now}}, nil
	case "Authorize":
		return decodeThen(payload, func(m authorize) any {
			return authorizeAnswer{c.b.tagInfo(m.Tag)}
		})

	case "StatusNotification":
		return decodeThen(payload, func(m statusNotification) any {
			c.status(m, now)
			return empty{}
		})
	case "StartTransaction":
		return decodeThen(payload, func(m startTransaction) any {
			return startAnswer{
				c.startTransaction(m, number, now),
				c.b.tagInfo(m.Tag),
			}
		})

	case "StopTransaction":
		return decodeThen(payload, func(m stopTransaction) any {
			c.stopTransaction(m, now)
			return authorizeAnswer{tagInfo{accepted}}
		})
	case "MeterValues":
		return decodeThen(payload, func(m meterValues) any {
			c.noteMeterValues(m, now)
			return empty{}
		})

	case actionSign:
		return decodeThen(payload, func(m signCertificate) any {
			if c.takeRequest(m, payload, now) != nil {
				return statusAnswer{rejected}
			}
			return statusAnswer{accepted}
		})
	}

	return c.handleUnknown(action)
}

// handleUnknown answers calls that change nothing in the bridge. Chargers repeat the messages of
// the security extension until they are answered.
func (c *charger) handleUnknown(action string) (any, error) {
	switch action {
	case "DataTransfer":
		return statusAnswer{"UnknownVendorId"}, nil
	case "FirmwareStatusNotification", "DiagnosticsStatusNotification", "SecurityEventNotification",
		"LogStatusNotification", "SignedFirmwareStatusNotification":
		return empty{}, nil
	}

	return nil, &callError{
		codeNotImplemented,
		fmt.Sprintf("%.50q is not an operation of OCPP 1.6 for a central system", action),
	}
}

// decodeThen decodes a payload and calls f with it.
func decodeThen[T any](payload json.RawMessage, f func(T) any) (any, error) {
	var m T
	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, &callError{codeFormation, err.Error()}
	}

	return f(m), nil
}

// boot records that the charger restarted: it may have lost its profiles, and its clock may
// have been set.
func (c *charger) boot(m bootNotification, now time.Time) bootAnswer {
	c.b.Log.Info(
		"charger booted",
		"charger",
		c.id,
		"vendor",
		m.Vendor,
		"model",
		m.Model,
		"firmware",
		m.Firmware,
	)

	c.boots++
	c.configured = false
	c.configureAt = now
	c.settings.checked = false
	c.settings.NoTrigger = false
	if c.model != m {
		c.model = m
		c.capabilities = capabilities{}
	}

	return bootAnswer{accepted, stamp{now}, int(heartbeat / time.Second)}
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

// plug records whether a car is connected.
func (n *connector) plug(in bool, at time.Time) {
	n.doubtful = time.Time{}
	if n.pluggedIn != in || n.since.IsZero() {
		n.pluggedIn = in
		n.since = at
	}
	if !in {
		n.outlet = 0
	}
}

// carGone records that a car was gone at an instant by the charger's clock. If the car is known
// to have been there soon after, it was not gone: the plug flickered. That holds too if the
// same is reported once more, or follows from the end of its transaction long afterwards.
func (n *connector) carGone(at time.Time, patience time.Duration) {
	soonAfter := func(t time.Time) bool { return at.Before(t) && t.Before(at.Add(patience)) }
	if n.pluggedIn && soonAfter(n.heard) || soonAfter(n.repluggedAt) {
		return
	}

	n.unpluggedAt = flex.Later(n.unpluggedAt, at)
}

// carBack records that there was a car at an instant by the charger's clock. If the reported car
// had been gone for a while by then, this is another one: after a charger was offline, its
// messages contain the end of one car's charge and the beginning of the next one's together.
func (n *connector) carBack(at time.Time, patience time.Duration) {
	if at.Before(n.unpluggedAt) {
		return
	}
	if at.Before(n.unpluggedAt.Add(patience)) { // the plug flickered
		n.unpluggedAt, n.repluggedAt = time.Time{}, at
		return
	}

	if n.reported == reportedIn && n.unpluggedAt.After(n.reportedAt) {
		n.another = true
	}
}

// status records a connector's state. One that is older than the known state is ignored;
// Unavailable and Faulted do not say whether there is a car.
func (c *charger) status(m statusNotification, now time.Time) {
	n := c.connector(int(m.Connector))
	if n == nil {
		return
	}

	c.at(m.At, now, chargerEvent{
		What:      saidStatus,
		Connector: n.number,
		Word:      m.Status,
	})
}

// startTransaction returns the number of the transaction: the given one, or a new one. If a
// message is repeated without a number, it gets the same number as before.
func (c *charger) startTransaction(
	m startTransaction,
	number int,
	now time.Time,
) int {
	n := c.connector(int(m.Connector))
	isRepeated := n != nil && n.lastTx != 0 && n.start == m && !m.At.IsZero()
	if isRepeated && (number == 0 || number == n.lastTx) {
		return n.lastTx
	}

	if number == 0 {
		number = c.b.nextTransaction()
	}
	if n == nil {
		return number
	}

	n.start = m
	n.tx = number
	c.noteStart(m, number)
	n.lastTx = n.tx
	n.startedAt = m.At.Add(-c.clock.Offset)
	c.bindLimits(n)
	n.resendProfile() // a TxProfile rules one transaction

	begin := sample{
		Value: m.Meter.value,
		Step:  1,
		Rank:  rankSession,
		Begin: true,
	}

	c.at(m.At, now, chargerEvent{
		What:      saidStart,
		Connector: n.number,
		Sample:    begin,
	})

	return n.tx
}

// stopTransaction ends a transaction. One that is unknown, or ended already, is accepted too,
// because the charger would repeat it for ever.
func (c *charger) stopTransaction(m stopTransaction, now time.Time) {
	c.noteStop(m)
	n := c.transaction(int(m.Transaction))
	if n == nil {
		return
	}

	for _, v := range m.Data {
		c.sample(n, v, 0, now)
	}

	// The end of an earlier transaction, said late or twice, is not the end of the one that runs.
	number := int(m.Transaction)
	running := n.tx != 0 && (n.tx == number || !c.began(number))
	if running {
		n.tx = 0
	}

	end := sample{
		Value: m.Meter.value,
		Step:  1,
		Rank:  rankSession,
		End:   true,
	}

	c.at(m.At, now, chargerEvent{
		What:      saidStop,
		Connector: n.number,
		Sample:    end,
		Word:      m.Reason,
		Running:   running,
	})
}

// began reports whether a transaction of that number is known.
func (c *charger) began(number int) bool {
	return slices.ContainsFunc(c.transactions, func(t bridge.Transaction) bool {
		return t.Number == number
	})
}

// transaction returns the connector of a transaction, running or ended. If a charger has one
// connector it is that one, whatever number the charger invented while it was offline.
func (c *charger) transaction(number int) *connector {
	var single *connector
	for _, n := range c.connectors {
		if n.lastTx == number {
			return n
		}
		single = n
	}

	if len(c.connectors) == 1 {
		return single
	}

	// The end of an earlier one may be said after the next one has begun.
	for _, t := range slices.Backward(c.transactions) {
		if t.Number == number {
			return c.connectors[t.Connector]
		}
	}

	return nil
}

// noteMeterValues records the meter values of a connector. Those of the whole charge point are the
// first connector's, if there is no other.
func (c *charger) noteMeterValues(m meterValues, now time.Time) {
	n := c.connector(int(m.Connector))
	rank := 0
	if m.Connector == 0 && len(c.connectors) <= 1 {
		n = c.connector(1)
		rank = rankChargePoint
	}
	if n == nil {
		return
	}

	for _, v := range m.Values {
		c.sample(n, v, rank, now)
	}

	if m.Transaction > 0 && n.tx == 0 && n.lastTx != int(m.Transaction) {
		c.adopt(n, int(m.Transaction))
	}
}

// adopt records a transaction that began before this bridge was started.
func (c *charger) adopt(n *connector, tx int) {
	n.tx = tx
	n.lastTx = tx
	c.bindLimits(n)
	n.resendProfile()
	c.b.Log.Info(
		"a transaction runs that began earlier",
		"charger",
		c.id,
		"connector",
		n.number,
		"transaction",
		tx,
	)
}

// sample records the meter values of one instant.
func (c *charger) sample(n *connector, v meterValue, rank int, now time.Time) {
	if rank == 0 {
		c.learnPhases(n, v.Sampled)
	}

	c.passSoC(n, v, now)
	s, reason := observe(v.Sampled)
	if reason != "" {
		c.logUnreadable(n, reason)
		return
	}

	s.Rank += rank
	c.at(v.At, now, chargerEvent{
		What:      saidSample,
		Connector: n.number,
		Sample:    s,
	})
}

// logUnreadable logs once why a connector's meter cannot be used.
func (c *charger) logUnreadable(n *connector, reason string) {
	if n.unread != reason {
		n.unread = reason
		c.b.Log.Warn(
			"a charger's meter value says nothing of the energy",
			"charger",
			c.id,
			"connector",
			n.number,
			"why",
			reason,
		)
	}
}

// noteSample queues a sample for the worker.
func (n *connector) noteSample(s sample) {
	if math.IsNaN(s.Value) || s.Value < 0 || s.Value > registerMax {
		return
	}

	n.pending = append(n.pending, s)
	if len(n.pending) > pendingMax {
		n.pending = n.pending[1:]
	}
}

// resendProfile makes the connector's schedule be sent once more.
func (n *connector) resendProfile() {
	if n.want != nil {
		n.want.sent = profileFit{}
		n.want.isOver = false
		n.want.tries = 0
		n.want.refusedForms = nil
		n.want.unknown = 0
		n.want.resendCount++
	}
}

// Why a push is refused.
var (
	errOtherAsset = errors.New("the profile is another asset's")
	errOlder      = errors.New("a newer schedule has been pushed")
)

// want gives a connector a schedule to follow. The same schedule again changes nothing, except
// that one that had failed is tried once more, because an operator sent it again. The schedule
// of another asset, or an older one than before, is refused. Event ids are in the order of
// time.
func (c *charger) want(number int, p *pushTarget) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	n := c.connector(number)
	if n.want != nil && n.want.event == p.event {
		if n.want.isOver {
			n.resendProfile()
			c.wake()
		}

		return nil
	}

	if p.profile.ID != ocpp.ProfileID(flex.AssetID(n.asset.ID)) {
		return errOtherAsset
	}

	if olderThan(p.event, n.newest) {
		return errOlder
	}

	n.want = p
	n.newest = p.event
	c.wake()

	return nil
}

// isOwn reports whether one of the charger's connectors is an asset of flexd, or messages wait
// for its platform.
func (c *charger) isOwn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known() || len(c.up.queue) > 0
}

// numbers returns the connectors that have sent messages, in order. The caller holds mu.
func (c *charger) numbers() []int {
	return slices.Sorted(maps.Keys(c.connectors))
}
