package ocppserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// The kinds of message of OCPP-J.
const (
	kindCall       = 2
	kindCallResult = 3
	kindCallError  = 4
)

// frameMax is the largest message that is read from a charger: a StopTransaction may carry a
// night of samples.
const frameMax = 1 << 20

// writeTime bounds the writing of one message.
const writeTime = 10 * time.Second

// callError is a CALLERROR: what a charger answers, or is answered, instead of a result.
type callError struct{ Code, Description string }

func (e *callError) Error() string {
	return fmt.Sprintf("CALLERROR %s: %s", e.Code, e.Description)
}

// The codes of a CALLERROR that are used here.
const (
	codeNotImplemented = "NotImplemented"
	codeNotSupported   = "NotSupported"
	codeFormation      = "FormationViolation"
	codeFormat         = "FormatViolation" // the same in OCPP 2.0.1
)

// errLinkLost means that the connection ended before the answer came.
var errLinkLost = errors.New("the connection to the charger was lost")

// link is one connection to a charger, with the calls of both sides and their answers. Only
// one call of ours is under way at a time, as OCPP-J requires.
type link struct {
	conn    *websocket.Conn
	version string // the subprotocol
	// must not block
	handle func(action string, payload json.RawMessage) (any, error)
	// when a call was answered, or an answer came late
	after func()
	// later reports that a call will be answered by reply; nil is that none is.
	later    func(id json.RawMessage, action string, payload json.RawMessage) bool
	callTime time.Duration
	// nil with OCPP 1.6
	station *station

	callSlot chan struct{} // held by the call under way
	ended    chan struct{} // closed when the connection has ended

	mu      sync.Mutex
	last    int
	id      string // of the call under way
	waiting chan reply
	late    []lateCall
}

// lateCall receives the answer to a call that was not answered in time.
type lateCall struct {
	id     string
	answer chan reply
}

type reply struct {
	result json.RawMessage
	err    error
}

func newLink(conn *websocket.Conn, callTime time.Duration) *link {
	// the end of the largest message is read as well
	conn.SetReadLimit(frameMax + 1)
	return &link{
		conn:     conn,
		version:  conn.Subprotocol(),
		callTime: callTime,
		callSlot: make(chan struct{}, 1),
		ended:    make(chan struct{}),
	}
}

// call calls the charger and decodes the result into out, both in the form of OCPP 1.6.
func (l *link) call(ctx context.Context, action string, in, out any) error {
	if l.station != nil {
		return l.station.call(ctx, action, in, out)
	}

	return l.ask(ctx, action, in, out)
}

// ask sends a call as it is and decodes its result into out. If the answer does not come
// within callTime, the error is an unanswered, through which the late answer can be received.
func (l *link) ask(ctx context.Context, action string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, l.callTime)
	defer cancel()

	select {
	case l.callSlot <- struct{}{}:
		defer func() { <-l.callSlot }()
	case <-l.ended:
		return errLinkLost
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", action, ctx.Err())
	}

	id, answer := l.expect()
	if err := l.write(ctx, []any{kindCall, id, action, in}); err != nil {
		return fmt.Errorf("%s: %w", action, errors.Join(errLinkLost, err))
	}

	select {
	case r := <-answer:
		if r.err != nil {
			return fmt.Errorf("%s: %w", action, r.err)
		}
		if err := json.Unmarshal(r.result, out); err != nil {
			return fmt.Errorf("%s: read the result: %w", action, err)
		}

		return nil
	case <-l.ended:
		return errLinkLost
	case <-ctx.Done():
		l.abandon(id, answer)
		return newUnanswered(action, answer, ctx.Err())
	}
}

// abandon stops waiting for an answer, and records where a late answer goes.
func (l *link) abandon(id string, answer chan reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == id {
		l.waiting = nil
	}

	l.late = append(l.late, lateCall{id, answer})
	if len(l.late) > unansweredMax {
		l.late = l.late[1:]
	}
}

// expect makes the id of a new call, and where its answer will arrive.
func (l *link) expect() (string, chan reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.id, l.waiting = strconv.Itoa(l.last), make(chan reply, 1)

	return l.id, l.waiting
}

func (l *link) write(ctx context.Context, frame []any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()

	return l.conn.Write(ctx, websocket.MessageText, b)
}

// run reads until the connection ends, answering each call in turn.
func (l *link) run(ctx context.Context) error {
	defer close(l.ended)

	for {
		_, b, err := l.conn.Read(ctx)
		if err != nil {
			return err
		}
		if err := l.read(ctx, b); err != nil {
			return err
		}
	}
}

// read processes one message. A message that cannot be decoded is ignored, unless it is a call
// whose id can be decoded.
func (l *link) read(ctx context.Context, b []byte) error {
	var frame []json.RawMessage
	var kind int

	var id string
	if json.Unmarshal(b, &frame) != nil || len(frame) < 3 ||
		json.Unmarshal(frame[0], &kind) != nil {
		return nil
	}

	if err := json.Unmarshal(frame[1], &id); err != nil {
		var number float64
		if json.Unmarshal(frame[1], &number) != nil {
			return nil
		}

		id = string(frame[1])
	}

	switch kind {
	case kindCall:
		var action string
		if json.Unmarshal(frame[2], &action) != nil || len(frame) < 4 {
			return l.write(ctx, []any{
				kindCallError,
				frame[1],
				codeFormation,
				"a CALL is [2, id, action, payload]",
				struct{}{},
			})
		}

		return l.answer(ctx, frame[1], action, frame[3])

	case kindCallResult:
		l.deliver(id, reply{result: frame[2]})

	case kindCallError:
		e := &callError{}
		// an unreadable code is an unknown one
		_ = json.Unmarshal(frame[2], &e.Code)

		if len(frame) > 3 {
			_ = json.Unmarshal(frame[3], &e.Description)
		}

		l.deliver(id, reply{err: e})
	}

	return nil
}

func (l *link) answer(
	ctx context.Context,
	id json.RawMessage,
	action string,
	payload json.RawMessage,
) error {
	if l.later != nil && l.later(id, action, payload) {
		return nil
	}

	result, err := l.handle(action, payload)
	if err := l.reply(ctx, id, result, err); err != nil {
		return err
	}

	l.after()

	return nil
}

// reply sends the answer to a call.
func (l *link) reply(
	ctx context.Context,
	id json.RawMessage,
	result any,
	err error,
) error {
	frame := []any{kindCallResult, id, result}

	if err != nil {
		e := &callError{
			Code:        codeFormation,
			Description: err.Error(),
		}

		errors.As(err, &e)
		if ofStation(l.version) && e.Code == codeFormation {
			e = &callError{codeFormat, e.Description}
		}

		frame = []any{kindCallError, id, e.Code, e.Description, struct{}{}}
	}

	return l.write(ctx, frame)
}

// deliver passes an answer to the call that waits, or waited, for it.
func (l *link) deliver(id string, r reply) {
	if l.deliverLate(id, r) && l.after != nil {
		l.after()
	}
}

// deliverLate passes an answer to a call that waits, or waited, for it. It reports whether no
// call waits for it any more.
func (l *link) deliverLate(id string, r reply) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting != nil && id == l.id {
		l.waiting <- r
		l.waiting = nil
		return false
	}

	i := slices.IndexFunc(l.late, func(c lateCall) bool { return c.id == id })
	if i < 0 {
		return false
	}

	select {
	case l.late[i].answer <- r:
	default: // it was answered in the instant in which it was given up, and now once more
	}

	l.late = slices.Delete(l.late, i, i+1)

	return true
}

// watch pings the charger until the link ends, so that a dead connection is detected and
// closed.
func (l *link) watch(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()

	for {
		select {
		case <-l.ended:
			return
		case <-ctx.Done():
			return
		case <-t.C:
		}

		ping, cancel := context.WithTimeout(ctx, l.callTime)
		err := l.conn.Ping(ping)
		cancel()

		if err != nil {
			l.conn.CloseNow()
			return
		}
	}
}
