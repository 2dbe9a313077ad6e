package ocppserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// subprotocol is OCPP 1.6 in JSON.
const subprotocol = "ocpp1.6"

// chargerID is what a charger may call itself: OCPP's identity, and room for a serial number.
var chargerID = regexp.MustCompile(`^[A-Za-z0-9*._:=@|-]{1,48}$`)

// connect answers a charger: the last part of the path is its id.
func (b *Bridge) connect(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if !chargerID.MatchString(id) {
		http.Error(w, "the path ends in the charger's id, at most 48 letters, digits and any of *._:=@|-", http.StatusNotFound)
		return
	}

	if !b.mayConnect(id, r) {
		b.Log.Warn("a charger was refused: wrong or missing password", "charger", id, "from", r.RemoteAddr)
		w.Header().Set("WWW-Authenticate", `Basic realm="ocpp"`)
		http.Error(w, "wrong or missing password", http.StatusUnauthorized)
		return
	}

	c := b.charger(id)
	if c == nil {
		http.Error(w, "too many chargers", http.StatusServiceUnavailable)
		return
	}

	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{subprotocol}})
	if err != nil { // it has been answered
		b.leave(c)
		return
	}

	defer conn.CloseNow()

	if conn.Subprotocol() != subprotocol {
		b.Log.Warn("a charger does not offer the subprotocol "+subprotocol, "charger", id)
		conn.Close(websocket.StatusProtocolError, "the subprotocol must be "+subprotocol)
		b.leave(c)
		return
	}

	c.hold(b.ctx, conn)
	b.leave(c)
}

// mayConnect checks the charger's password, in the same time whether or not it is known.
func (b *Bridge) mayConnect(id string, r *http.Request) bool {
	want := b.Password.Reveal()
	if own, ok := b.Passwords[id]; ok {
		want = own
	}

	if want == "" {
		return len(b.Passwords) == 0
	}

	user, given, _ := r.BasicAuth()
	a, e := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], e[:]) == 1 && user == id
}

// charger returns what is known of a charger, beginning to work for it if it is new, and
// counts the caller among its visitors; nil if there are too many chargers.
func (b *Bridge) charger(id string) *charger {
	b.mu.Lock()
	defer b.mu.Unlock()

	c := b.chargers[id]
	if c == nil {
		if len(b.chargers) >= ChargersMax || b.ctx.Err() != nil {
			return nil
		}

		ctx, stop := context.WithCancel(b.ctx)
		c = &charger{b: b, id: id, stop: stop, nudge: make(chan struct{}, 1), connectors: map[int]*connector{}}
		b.chargers[id] = c
		b.work.Go(func() { c.run(ctx) })
	}

	c.visitors++
	b.work.Add(1)
	return c
}

// leave takes the caller from the charger's visitors. A charger that is gone and has no
// asset is forgotten, so that strangers leave nothing behind.
func (b *Bridge) leave(c *charger) {
	defer b.work.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.visitors--; c.visitors == 0 && !c.ours() {
		delete(b.chargers, c.id)
		c.stop()
	}
}

// hold keeps a connection until it ends. It takes the place of the one before, which may be
// dead without either side knowing.
func (c *charger) hold(ctx context.Context, conn *websocket.Conn) {
	l := newLink(conn, c.b.Timing.Call)
	l.take, l.after = c.take, c.wake
	c.mu.Lock()
	before := c.link
	c.link, c.greeted, c.greetAt = l, false, c.b.Now().Add(c.b.Timing.Greet)
	c.mu.Unlock()

	if before != nil {
		before.conn.CloseNow()
	}

	c.b.Log.Info("charger connected", "charger", c.id)
	c.wake()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go l.watch(ctx, c.b.Timing.Ping)
	err := l.run(ctx)
	c.mu.Lock()

	if c.link == l {
		c.link = nil
	}

	c.mu.Unlock()
	c.b.Log.Info("charger disconnected", "charger", c.id, "why", err)
}

// wake has the charger's worker look at what there is to do.
func (c *charger) wake() {
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}

// run works for the charger until it is forgotten or the bridge ends.
func (c *charger) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-c.nudge:
		case <-timer.C:
		}

		timer.Reset(c.round(ctx))
	}
}
