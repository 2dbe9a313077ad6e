package ocppserver

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// subprotocol is OCPP 1.6 in JSON.
const subprotocol = "ocpp1.6"

// subprotocols are what a charger may speak, the first one that it offers is taken: the oldest
// is tried the most.
var subprotocols = []string{subprotocol, subprotocol201, subprotocol21}

// subprotocols are what the charger may speak, the first one that it offers is taken. A car
// can discharge in 2.1 alone; a platform above, which is spoken to in the same version, is
// more likely to know an older one.
func (c *charger) subprotocols() []string {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.up.hasPlatform() {
		return subprotocols
	}

	return []string{subprotocol21, subprotocol, subprotocol201}
}

// chargerID is what a charger may call itself: OCPP's identity, and room for a serial number.
var chargerID = regexp.MustCompile(`^[A-Za-z0-9*._:=@|-]{1,48}$`)

// connect answers a charger: the last part of the path is its id.
func (b *Bridge) connect(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	id := path[strings.LastIndexByte(path, '/')+1:]
	if !chargerID.MatchString(id) {
		http.Error(
			w,
			"the path ends in the charger's id, at most 48 letters, digits and any of *._:=@|-",
			http.StatusNotFound,
		)

		return
	}

	withPassword, ok := b.admit(w, r, id)
	if !ok {
		return
	}
	if !withPassword {
		defer b.guard.leave(b.TrustedProxies.Client(r), b.Now())
	}

	c := b.charger(id)
	if c == nil {
		http.Error(w, "too many chargers", http.StatusServiceUnavailable)
		return
	}

	defer b.leave(c)
	defer c.survive()

	c.noteLogin(withPassword)
	c.setPassword(r)
	conn, err := websocket.Accept(
		w,
		r,
		&websocket.AcceptOptions{Subprotocols: c.subprotocols()},
	)
	if err != nil { // it has been answered
		return
	}

	defer conn.CloseNow()

	if conn.Subprotocol() == "" {
		offered := strings.Join(subprotocols, " or ")
		b.Log.Warn(
			"a charger does not offer the subprotocol "+offered,
			"charger",
			id,
		)

		conn.Close(
			websocket.StatusProtocolError,
			"the subprotocol must be "+offered,
		)

		return
	}

	c.serveLink(b.ctx, conn)
}

// admit decides whether a charger may connect, and answers it if it may not. A charger without
// a password takes one of the few places of its address; withPassword is then false.
func (b *Bridge) admit(
	w http.ResponseWriter,
	r *http.Request,
	id string,
) (withPassword, ok bool) {
	addr := b.TrustedProxies.Client(r)
	from := guess{addr, id}
	if !hasCertificate(r) && !b.guard.mayGuess(from, b.wasProved(id), b.Now()) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many wrong passwords", http.StatusTooManyRequests)
		return false, false
	}
	if b.proves(id, r) {
		return true, true
	}

	if _, known := b.secretOf(id); b.NoPassword && !known {
		if b.guard.enter(addr, b.Now()) {
			b.Log.Warn(
				"a charger has no password: its readings are not passed on",
				"charger",
				id,
				"from",
				addr,
			)

			return false, true
		}
		http.Error(
			w,
			"too many chargers without a password from this address",
			http.StatusServiceUnavailable,
		)

		return false, false
	}

	b.guard.noteGuess(from, b.Now())
	b.Log.Warn(
		"a charger was refused: wrong or missing password",
		"charger",
		id,
		"from",
		addr,
	)

	w.Header().Set("WWW-Authenticate", `Basic realm="ocpp"`)
	http.Error(w, "wrong or missing password", http.StatusUnauthorized)

	return false, false
}

// proves checks a charger's certificate or password, in constant time whether or not the
// charger is known.
func (b *Bridge) proves(id string, r *http.Request) bool {
	if hasCertificate(r) {
		return hasCertificateFor(r, id)
	}

	want, known := b.secretOf(id)
	if !known {
		want = b.dummySecret
	}

	user, hasPassword, _ := r.BasicAuth()

	return want.matches(hasPassword) && known && user == id
}

// hasCertificate reports whether a charger showed a certificate that an authority of the
// bridge's has signed: nobody guesses those.
func hasCertificate(r *http.Request) bool {
	return r.TLS != nil && len(r.TLS.VerifiedChains) > 0
}

// wasProved reports whether a charger of that id has shown its password, or a certificate, before.
func (b *Bridge) wasProved(id string) bool {
	b.mu.Lock()
	c := b.chargers[id]
	b.mu.Unlock()

	if c == nil {
		return false
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	return !c.noPassword
}

// secretOf returns a charger's password: its own, or the one of all.
func (b *Bridge) secretOf(id string) (secret, bool) {
	if own, ok := b.Passwords[id]; ok {
		return newSecret(own), true
	}
	if b.Chargers != nil {
		if own, ok := b.Chargers.secret(id, b.Now()); ok {
			return own, true
		}
	}

	shared := b.Password.Reveal()

	return newSecret(shared), shared != ""
}

// isCharger reports whether a charger of exactly that id has a password of its own, or is
// connected.
func (b *Bridge) isCharger(id string) bool {
	if _, ok := b.Passwords[id]; ok {
		return true
	}
	if b.Chargers != nil {
		if _, ok := b.Chargers.secret(id, b.Now()); ok {
			return true
		}
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	return b.chargers[id] != nil
}

// ambiguous reports whether an asset's name may be another charger's than that of the id:
// CP1-2 is the second connector of CP1, or the charger CP1-2. Neither is served then.
func (b *Bridge) ambiguous(name, id string) bool {
	if name != id {
		return b.isCharger(name)
	}

	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return false
	}

	number, err := strconv.Atoi(name[i+1:])

	return err == nil && number >= 1 && number <= connectorMax &&
		b.isCharger(name[:i])
}

// charger returns the state of a charger, starts the work for a new one, and counts the caller
// among its connections; nil if there are too many chargers.
func (b *Bridge) charger(id string) *charger {
	b.mu.Lock()
	defer b.mu.Unlock()

	c := b.chargers[id]
	if c == nil {
		c = b.takeUp(id)
	}
	if c == nil {
		return nil
	}

	c.connections++
	b.work.Add(1)

	return c
}

// leave takes the caller from the charger's connections. A charger that is gone and has no
// asset is forgotten, so that strangers leave nothing behind.
func (b *Bridge) leave(c *charger) {
	defer b.work.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	c.connections--
	if b.chargers[c.id] != c { // its work failed
		return
	}

	if c.connections == 0 && !c.isOwn() {
		delete(b.chargers, c.id)
		c.stop()
		b.dropState(c.id)
	}
}

// noteLogin notes whether the charger showed who it is.
func (c *charger) noteLogin(withPassword bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noPassword = !withPassword
}

// setPassword notes what a charger logged in with, which its platform may ask for too.
func (c *charger) setPassword(r *http.Request) {
	_, password, ok := r.BasicAuth()
	if !ok {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.up.login = password
}

// connected makes a new connection the charger's, and closes the previous one. It returns
// false if the charger's worker has failed: the charger must connect again.
func (c *charger) connected(l *link) bool {
	c.mu.Lock()
	if c.aborted {
		c.mu.Unlock()
		return false
	}

	before := c.link
	c.link = l
	c.up.version = l.version
	c.configured = false
	c.configureAt = c.b.Now().Add(c.b.Timing.Configure)
	c.mu.Unlock()

	if before != nil {
		before.conn.CloseNow()
	}

	c.b.Log.Info("charger connected", "charger", c.id)
	c.wake()
	c.up.wake()

	return true
}

// serveLink serves a connection until it ends. It replaces the previous one, which may be dead
// without either side having noticed.
func (c *charger) serveLink(ctx context.Context, conn *websocket.Conn) {
	l := newLink(conn, c.b.Timing.Call)
	l.handle, l.after = c.handleCall, c.wake
	l.later = func(id json.RawMessage, action string, payload json.RawMessage) bool {
		return c.passUp(l, id, action, payload)
	}

	if ofStation(l.version) {
		l.handle = c.takeStation
		l.station = &station{c, l.ask}
	}

	defer c.survive() // before the connection is closed, so that the next one finds the charger forgotten
	if !c.connected(l) {
		return
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.work(func() { l.watch(ctx, c.b.Timing.Ping) })
	err := l.run(ctx)
	c.mu.Lock()

	if c.link == l {
		c.link = nil
	}

	c.mu.Unlock()
	c.up.wake()
	c.b.Log.Info("charger disconnected", "charger", c.id, "why", err)
}

// wake makes the charger's worker check what is to be done.
func (c *charger) wake() {
	select {
	case c.wakeup <- struct{}{}:
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
		case <-c.wakeup:
		case <-timer.C:
		}

		timer.Reset(c.synchronise(ctx))
	}
}
