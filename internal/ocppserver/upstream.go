package ocppserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/coder/websocket"
)

const (
	// queueMax is the most messages that wait for a platform that is down. Messages that do
	// not affect billing are dropped first.
	queueMax = 5000
	// queueBytesMax is their largest total size.
	queueBytesMax = 16 << 20
	// queueTries is how often a message is sent that the platform answers with an error.
	queueTries = 3
	// numbersMax is the most stored pairs of transaction numbers.
	numbersMax = 200
)

// upstream is the platform that a charger belongs to, which bills and authorises. The bridge
// is between the two. It forwards the charger's messages in order. Messages that the platform
// must answer are answered by it while it is connected, and otherwise by the bridge. The
// fields are guarded by the charger's mu.
type upstream struct {
	c   *charger
	url string // with the charger's id; empty while it has no platform
	// empty means the charger's own password
	password     string
	login        string // what the charger logs in with
	readOnly     bool
	version      string // the subprotocol that the charger speaks, and the bridge above
	addressCount int    // counts changes of the address, so that a connection can detect one
	start        func() // starts run, once
	signal       chan struct{}

	link *link // nil while there is no connection
	// the last attempt to reach the platform failed, or its connection broke
	down    bool
	queue   []*queuedMessage
	numbers []renumbered
	// the settings as the platform reads them
	values map[string]string
	limits []platformProfile
}

// queuedMessage is a message from the charger to the platform.
type queuedMessage struct {
	Action  string          `json:"action"`
	Payload json.RawMessage `json:"payload"`
	// it is of OCPP 2
	Station bool `json:"station,omitempty"`
	// the subprotocol in which it came; absent in files from before OCPP 2.1 was supported
	Version string `json:"version,omitempty"`
	// the transaction's number, if the bridge assigned it
	Local int `json:"local,omitempty"`

	// closed when there is a result, or nobody waits for one any longer
	done   chan struct{}
	isDone bool
	result *reply
	tries  int
}

// renumbered is a transaction that began while the platform was down, so that the charger and
// the platform use different numbers for it.
type renumbered struct {
	Local int `json:"local"`
	Above int `json:"above"`
}

// answeredAbove are the messages that the platform must answer, of OCPP 1.6 and 2.0.1.
var answeredAbove = []string{
	"Authorize",
	"BootNotification",
	"DataTransfer",
	"Get15118EVCertificate",
	"GetCertificateStatus",
	"NotifyEVChargingNeeds",
	actionSign,
	"StartTransaction",
	"StopTransaction",
	"TransactionEvent",
}

// wake has the worker check for work.
func (u *upstream) wake() {
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

// run maintains the connection to the platform while the charger is connected or messages
// wait.
func (u *upstream) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !u.isNeeded() {
			select {
			case <-ctx.Done():
			case <-u.signal:
			}
			continue
		}

		err := u.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil || errors.Is(err, errPlatformChanged) {
			continue
		}

		u.c.b.Log.Warn(
			"a charger's platform is not connected",
			"charger",
			u.c.id,
			"err",
			err,
		)

		select {
		case <-ctx.Done():
		case <-time.After(u.c.b.Timing.Retry):
		}
	}
}

func (u *upstream) isNeeded() bool {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	return u.hasPlatform() && (u.c.link != nil || len(u.queue) > 0)
}

// session is one connection to the platform.
func (u *upstream) session(ctx context.Context) error {
	d := u.platform()
	addressCount := d.addressCount
	l, err := u.dial(ctx, d)
	if err != nil {
		return u.linkLost(addressCount, err)
	}
	defer l.conn.CloseNow()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	u.c.work(func() { _ = l.run(ctx) })
	u.c.work(func() { l.watch(ctx, u.c.b.Timing.Ping) })
	if !u.setLink(l, addressCount) {
		return errPlatformChanged
	}
	defer u.setLink(nil, addressCount)
	u.c.b.Log.Info("a charger's platform is connected", "charger", u.c.id)

	if err := u.sendAll(ctx, l); err != nil {
		return u.linkLost(addressCount, err)
	}

	return nil
}

// sendAll sends the queued messages. It returns nil when the charger has disconnected and the
// queue is empty, or when the next message has another version of OCPP. An error means that
// the platform is down.
func (u *upstream) sendAll(ctx context.Context, l *link) error {
	for {
		e := u.next()
		if e == nil && !u.isNeeded() {
			return nil // the charger has gone
		}
		if u.nextVersion() != l.version {
			return nil
		}

		if e != nil {
			if err := u.send(ctx, l, e); err != nil {
				return err
			}
			continue
		}

		select {
		case <-u.signal:
		case <-l.ended:
			return errLinkLost
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// platformAddress is a platform's address, with the credentials for it.
type platformAddress struct {
	address      string
	login        string
	protocol     string // the version of OCPP that is spoken
	addressCount int    // the number of this address
}

func (u *upstream) platform() platformAddress {
	protocol := u.nextVersion()
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	password := u.password
	if password == "" {
		password = u.login
	}
	login := u.c.id + ":" + password

	return platformAddress{
		address:      u.url,
		login:        base64.StdEncoding.EncodeToString([]byte(login)),
		protocol:     protocol,
		addressCount: u.addressCount,
	}
}

// nextVersion returns the subprotocol for the next connection: that of the message that waits
// longest, else the charger's.
func (u *upstream) nextVersion() string {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	if len(u.queue) > 0 {
		return u.queue[0].version()
	}

	return cmp.Or(u.version, subprotocol)
}

// setVersion records the subprotocol in which a message came.
func (e *queuedMessage) setVersion(subprotocol string) {
	e.Version = subprotocol
	e.Station = ofStation(subprotocol)
}

// version returns the subprotocol in which a message came.
func (e *queuedMessage) version() string {
	if e.Version == "" && e.Station {
		return subprotocol201
	}

	return cmp.Or(e.Version, subprotocol)
}

func (u *upstream) dial(ctx context.Context, d platformAddress) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, u.c.b.Timing.Call)
	defer cancel()

	conn, _, err := websocket.Dial(ctx, d.address, &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		Subprotocols: []string{d.protocol},
		HTTPHeader:   http.Header{"Authorization": {"Basic " + d.login}},
	})
	if err != nil {
		return nil, err
	}
	// a platform of OCPP 1.6 may omit the subprotocol
	if d.protocol != subprotocol && conn.Subprotocol() != d.protocol {
		_ = conn.Close(websocket.StatusProtocolError, "") // it is of no use either way
		return nil, fmt.Errorf("the platform does not take the subprotocol %s", d.protocol)
	}

	l := newLink(conn, u.c.b.Timing.Above)
	l.version = d.protocol
	l.later = func(id json.RawMessage, action string, payload json.RawMessage) bool {
		u.c.work(func() { u.serve(l, id, action, payload) })
		return true
	}

	return l, nil
}

// setLink records the connection to the platform; nil when it has ended. It returns false if
// the platform's address has changed since.
func (u *upstream) setLink(l *link, addressCount int) bool {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	if l != nil && addressCount != u.addressCount {
		return false
	}

	u.link = l
	if l != nil {
		u.down = false
	}

	return true
}

// errPlatformChanged says that the platform's address changed after a connection began.
var errPlatformChanged = errors.New("another platform is named")

// linkLost records that the platform is down, and ends all waiting for it. It returns the
// error, which is errPlatformChanged if the address has changed.
func (u *upstream) linkLost(addressCount int, reason error) error {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	if addressCount != u.addressCount {
		return errPlatformChanged
	}

	u.down = true
	for _, e := range u.queue {
		e.release()
	}

	return reason
}

// next returns the message that must be sent first.
func (u *upstream) next() *queuedMessage {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	if len(u.queue) == 0 {
		return nil
	}

	return u.queue[0]
}

// add queues a message. Nobody waits for an answer while the platform is down, but a
// connection that is being made is waited for. The caller holds the charger's mu.
func (u *upstream) add(action string, payload json.RawMessage) *queuedMessage {
	e := newQueuedMessage(action, payload)
	e.setVersion(u.version)
	if u.down {
		e.release()
	}

	u.queue = append(u.queue, e)
	for u.isOverfull() {
		u.dropOne()
	}

	u.wake()

	return e
}

// isOverfull reports whether the queue exceeds its limits. A single message is always allowed.
// The caller holds the charger's mu.
func (u *upstream) isOverfull() bool {
	bytes := 0
	for _, e := range u.queue {
		bytes += len(e.Payload)
	}

	over := len(u.queue) > queueMax || bytes > queueBytesMax

	return over && len(u.queue) > 1
}

func newQueuedMessage(action string, payload json.RawMessage) *queuedMessage {
	return &queuedMessage{
		Action:  action,
		Payload: slices.Clone(payload),
		done:    make(chan struct{}),
	}
}

// dropOne makes space: it drops the oldest message that does not concern a transaction.
func (u *upstream) dropOne() {
	i := slices.IndexFunc(u.queue[1:], func(e *queuedMessage) bool {
		return !e.ofTransaction()
	})
	u.c.b.Log.Error(
		"a message for a charger's platform is dropped: too many wait, or too large ones",
		"charger",
		u.c.id,
	)

	u.queue = slices.Delete(u.queue, max(i, 0)+1, max(i, 0)+2)
}

// ofTransaction reports whether a message begins or ends a transaction. Billing depends on
// those.
func (e *queuedMessage) ofTransaction() bool {
	var m transactionEvent
	switch e.Action {
	case "StartTransaction", "StopTransaction":
		return true
	case "TransactionEvent":
		err := json.Unmarshal(e.Payload, &m)
		return err != nil || m.Type == eventStarted || m.Type == eventEnded
	}

	return false
}

// isPersistent reports whether a message is sent to the platform even if it is late.
func (e *queuedMessage) isPersistent() bool {
	return e.Action == "BootNotification" || e.Action == "TransactionEvent" || e.ofTransaction()
}

// release ends the wait for a result.
func (e *queuedMessage) release() {
	if !e.isDone {
		e.isDone = true
		close(e.done)
	}
}

// send sends a message and handles the answer. An error means that the platform is down; the
// message stays first in the queue.
func (u *upstream) send(ctx context.Context, l *link, e *queuedMessage) error {
	payload := within(&u.c.mu, func() json.RawMessage { return u.outward(e.Payload) })

	var out json.RawMessage
	err := l.call(ctx, e.Action, payload, &out)
	callErr, isRefused := errors.AsType[*callError](err)
	if err != nil && !isRefused {
		return err
	}

	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	stillQueued := !e.isDone
	if isRefused && !stillQueued && e.ofTransaction() {
		e.tries++
		if e.tries < queueTries {
			return err
		}

		u.c.b.Log.Error(
			"a charger's platform refuses a transaction's message",
			"charger",
			u.c.id,
			"action",
			e.Action,
			"payload",
			string(e.Payload),
			"err",
			err,
		)
	}

	e.result = &reply{result: out}
	if isRefused {
		e.result.err = callErr
	}

	if e.Local != 0 && !isRefused {
		u.renumber(e.Local, out)
	}

	e.release()
	u.queue = slices.DeleteFunc(u.queue, func(o *queuedMessage) bool {
		return o == e
	})

	u.c.saveState()

	return nil
}

// renumber records the platform's number of a transaction to which the bridge assigned one.
func (u *upstream) renumber(local int, out json.RawMessage) {
	var a startAnswer
	if json.Unmarshal(out, &a) != nil || a.Transaction == local {
		return
	}

	u.numbers = append(u.numbers, renumbered{local, a.Transaction})
	if len(u.numbers) > numbersMax {
		u.numbers = u.numbers[1:]
	}
}

// outward replaces the bridge's transaction number by the platform's. The caller holds mu.
func (u *upstream) outward(payload json.RawMessage) json.RawMessage {
	return renumberIn(payload, func(tx int) int {
		for _, n := range slices.Backward(u.numbers) {
			if n.Local == tx {
				return n.Above
			}
		}
		return tx
	})
}

// inward replaces the platform's transaction number by the charger's. The caller holds mu.
func (u *upstream) inward(payload json.RawMessage) json.RawMessage {
	return renumberIn(payload, func(tx int) int {
		for _, n := range slices.Backward(u.numbers) {
			if n.Above == tx {
				return n.Local
			}
		}
		return tx
	})
}

// renumberIn replaces a payload's transactionId, if it has one that differs.
func renumberIn(payload json.RawMessage, other func(int) int) json.RawMessage {
	var fields map[string]json.RawMessage
	var tx integer
	if json.Unmarshal(payload, &fields) != nil ||
		fields["transactionId"] == nil {
		return payload
	}
	if json.Unmarshal(fields["transactionId"], &tx) != nil ||
		other(int(tx)) == int(tx) {
		return payload
	}

	fields["transactionId"], _ = json.Marshal(other(int(tx)))
	document, err := json.Marshal(fields)
	if err != nil {
		return payload
	}

	return document
}
