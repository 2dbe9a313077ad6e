package ocppserver

import (
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// wrongMax is how many wrong passwords an address may send at once, and wrongEvery how
	// soon it may send one more. Further ones are not judged.
	wrongMax   = 10
	wrongEvery = 10 * time.Second
	// strangersMax is how many chargers of one address may be connected without a password.
	strangersMax = 50
	// addressesMax is how many addresses are remembered.
	addressesMax = 10_000
)

// guard limits what one address may do before it has shown a password. The zero value is
// ready to use.
type guard struct {
	mu        sync.Mutex
	addresses map[string]*visits
}

// visits is what is known of an address.
type visits struct {
	wrong int       // passwords that count now
	since time.Time // when one of them will count no more
	open  int       // connections without a password
}

// address is where a request comes from.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}

	return host
}

// of returns what is known of an address. The caller has the lock.
func (g *guard) of(addr string, now time.Time) *visits {
	v := g.addresses[addr]
	if v == nil {
		if len(g.addresses) >= addressesMax {
			g.forget(now)
		}
		if g.addresses == nil {
			g.addresses = map[string]*visits{}
		}

		v = &visits{since: now}
		g.addresses[addr] = v
	}

	for v.wrong > 0 && !now.Before(v.since.Add(wrongEvery)) {
		v.wrong--
		v.since = v.since.Add(wrongEvery)
	}

	return v
}

// forget drops addresses of which nothing counts any more; if there are none, all that have
// no connection.
func (g *guard) forget(now time.Time) {
	for addr, v := range g.addresses {
		if v.open == 0 && now.After(v.since.Add(wrongMax*wrongEvery)) {
			delete(g.addresses, addr)
		}
	}
	if len(g.addresses) < addressesMax {
		return
	}

	for addr, v := range g.addresses {
		if v.open == 0 {
			delete(g.addresses, addr)
		}
	}
}

// mayTry reports whether a password of that address is judged.
func (g *guard) mayTry(addr string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of(addr, now).wrong < wrongMax
}

// guessed counts a wrong password.
func (g *guard) guessed(addr string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()

	v := g.of(addr, now)
	if v.wrong == 0 {
		v.since = now
	}
	v.wrong++
}

// enter takes one of the address's places without a password, if there is one.
func (g *guard) enter(addr string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	v := g.of(addr, now)
	if v.open >= strangersMax {
		return false
	}

	v.open++

	return true
}

func (g *guard) leave(addr string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(addr, now).open--
}
