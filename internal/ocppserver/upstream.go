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
	// queueMax is how many messages wait for a platform that is down. What says nothing of
	// money goes first.
	queueMax = 5000
	// queueBytesMax is how large these may be together.
	queueBytesMax = 16 << 20
	// queueTries is how often a message is sent that the platform answers with an error.
	queueTries = 3
	// numbersMax is how many numbers of transactions are kept that the platform has others for.
	numbersMax = 200
)

// upstream is the platform that a charger belongs to: it bills and authorises, and the bridge is
// between the two. What the charger says is sent on in its order; what the platform has to
// answer is answered by it while it is there, and by the bridge while it is not. Its fields are
// under the charger's mu.
type upstream struct {
	c   *charger
	url string // with the charger's id; empty while it has no platform
	// empty is what the charger logs in with
	password  string
	login     string // what the charger logs in with
	readOnly  bool
	version   string // the subprotocol that the charger speaks, and the bridge above
	addressNo int    // counts the addresses that were set, so that a connection knows its own
	start     func() // has run run, once
	signal    chan struct{}

	link *link // nil while there is no connection
	// the last try to reach the platform failed, or its connection broke
	down    bool
	queue   []*queuedMessage
	numbers []renumbered
	// the settings that the platform believes the charger to have
	values map[string]string
	limits []platformProfile
}

// queuedMessage is a message of the charger for the platform.
type queuedMessage struct {
	Action  string          `json:"action"`
	Payload json.RawMessage `json:"payload"`
	// it is of OCPP 2
	Station bool `json:"station,omitempty"`
	// the subprotocol that it came in; a file written before OCPP 2.1 was served leaves it out
	Version string `json:"version,omitempty"`
	// the transaction's number, if the bridge gave it
	Local int `json:"local,omitempty"`

	// closed when there is a result, or nobody waits for one any more
	ended  chan struct{}
	closed bool
	result *reply
	tries  int
}

// renumbered is a transaction that began while the platform was down: the charger has the one
// number, the platform the other.
type renumbered struct {
	Local int `json:"local"`
	Above int `json:"above"`
}

// answeredAbove are the messages whose answer is the platform's, of OCPP 1.6 and of 2.0.1.
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

// wake has the worker look at what there is to do.
func (u *upstream) wake() {
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

// run keeps the connection to the platform while the charger is connected or messages wait.
func (u *upstream) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !u.needed() {
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
		if err == nil || errors.Is(err, errMoved) {
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

func (u *upstream) needed() bool {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	return u.named() && (u.c.link != nil || len(u.queue) > 0)
}

// session is one connection to the platform.
func (u *upstream) session(ctx context.Context) error {
	d := u.platform()
	addressNo := d.addressNo
	l, err := u.dial(ctx, d)
	if err != nil {
		return u.lost(addressNo, err)
	}
	defer l.conn.CloseNow()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	u.c.work(func() { _ = l.run(ctx) })
	u.c.work(func() { l.watch(ctx, u.c.b.Timing.Ping) })
	if !u.setLink(l, addressNo) {
		return errMoved
	}
	defer u.setLink(nil, addressNo)
	u.c.b.Log.Info("a charger's platform is connected", "charger", u.c.id)

	if err := u.sendAll(ctx, l); err != nil {
		return u.lost(addressNo, err)
	}

	return nil
}

// sendAll sends on what waits until the charger is gone and nothing is left, or what comes
// next is of the other version. An error means that the platform is down.
func (u *upstream) sendAll(ctx context.Context, l *link) error {
	for {
		e := u.next()
		if e == nil && !u.needed() {
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
		case <-l.gone:
			return errLinkLost
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// platformAddress is where a platform is and how the bridge comes in.
type platformAddress struct {
	address   string
	login     string
	protocol  string // the version of OCPP that is spoken
	addressNo int    // the number of this address
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
		address:   u.url,
		login:     base64.StdEncoding.EncodeToString([]byte(login)),
		protocol:  protocol,
		addressNo: u.addressNo,
	}
}

// nextVersion is the subprotocol that the platform is spoken to in: that of the message that waits
// longest, else the charger's.
func (u *upstream) nextVersion() string {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	if len(u.queue) > 0 {
		return u.queue[0].version()
	}

	return cmp.Or(u.version, subprotocol)
}

// setVersion notes the subprotocol that a message came in.
func (e *queuedMessage) setVersion(subprotocol string) {
	e.Version = subprotocol
	e.Station = ofStation(subprotocol)
}

// version is the subprotocol that a message came in.
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
	// a platform of 1.6 may leave its name out
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

// setLink notes the connection to the platform, nil when it has ended. It reports false if
// another platform has been named since.
func (u *upstream) setLink(l *link, addressNo int) bool {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	if l != nil && addressNo != u.addressNo {
		return false
	}

	u.link = l
	if l != nil {
		u.down = false
	}

	return true
}

// errMoved says that another platform, or none, is named since a connection began.
var errMoved = errors.New("another platform is named")

// lost notes that the platform is down: nobody waits for it any more. It returns why, which is
// errMoved if it is another one by now.
func (u *upstream) lost(addressNo int, why error) error {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	if addressNo != u.addressNo {
		return errMoved
	}

	u.down = true
	for _, e := range u.queue {
		e.release()
	}

	return why
}

// next returns the message that is to be sent on first.
func (u *upstream) next() *queuedMessage {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	if len(u.queue) == 0 {
		return nil
	}

	return u.queue[0]
}

// add puts a message behind those that wait. While the platform is down there is nothing to wait
// for; a connection that is only being made is waited for. The caller holds the charger's mu.
func (u *upstream) add(action string, payload json.RawMessage) *queuedMessage {
	e := newQueuedMessage(action, payload)
	e.setVersion(u.version)
	if u.down {
		e.release()
	}

	u.queue = append(u.queue, e)
	for u.tooMany() {
		u.dropOne()
	}

	u.wake()

	return e
}

// tooMany reports whether more messages wait than may. One alone always may. The caller holds
// the charger's mu.
func (u *upstream) tooMany() bool {
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
		ended:   make(chan struct{}),
	}
}

// dropOne makes space: the oldest message that says nothing of a transaction goes.
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

// ofTransaction reports whether a message begins or ends a transaction, so that what is paid
// depends on it.
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

// stays reports whether a message is sent to the platform however late.
func (e *queuedMessage) stays() bool {
	return e.Action == "BootNotification" || e.Action == "TransactionEvent" || e.ofTransaction()
}

// release ends the waiting for a result.
func (e *queuedMessage) release() {
	if !e.closed {
		e.closed = true
		close(e.ended)
	}
}

// send sends a message on and deals with the answer. An error means that the platform is down;
// the message stays first.
func (u *upstream) send(ctx context.Context, l *link, e *queuedMessage) error {
	payload := within(&u.c.mu, func() json.RawMessage { return u.outward(e.Payload) })

	var out json.RawMessage
	err := l.call(ctx, e.Action, payload, &out)
	refused, isRefused := errors.AsType[*callError](err)
	if err != nil && !isRefused {
		return err
	}

	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	waited := !e.closed
	if isRefused && !waited && e.ofTransaction() {
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
		e.result.err = refused
	}

	if e.Local != 0 && !isRefused {
		u.renumber(e.Local, out)
	}

	e.release()
	u.queue = slices.DeleteFunc(u.queue, func(o *queuedMessage) bool {
		return o == e
	})

	u.c.keep()

	return nil
}

// renumber notes the platform's number of a transaction that the bridge gave one.
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

// outward writes the platform's number of a transaction for the bridge's. The caller holds mu.
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

// inward writes the charger's number of a transaction for the platform's. The caller holds mu.
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

// renumberIn changes a payload's transactionId, if there is one and it has another number.
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
	changed, err := json.Marshal(fields)
	if err != nil {
		return payload
	}

	return changed
}
