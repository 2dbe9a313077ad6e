package ocppserver

import (
	"sync"
	"time"
)

// pace is how many wrong passwords are permitted at once, and after how long another one is.
type pace struct {
	most  int
	every time.Duration
}

var (
	// narrowPace is of one charger's id from one address. Further passwords are not judged.
	narrowPace = pace{10, 10 * time.Second}
	// widePace is of all ids from one address together. Further ones are judged only for a
	// charger that showed its password before: a neighbour with a wrong one shuts nobody out.
	widePace = pace{100, time.Second}
)

const (
	// strangersMax is how many chargers of one address may be connected without a password.
	strangersMax = 50
	// addressesMax is how many addresses are remembered, and how many ids at them.
	addressesMax = 10_000
)

// guard limits the attempts of one address before it has proved a password. The zero value is
// ready to use.
type guard struct {
	mu        sync.Mutex
	addresses map[string]*visits
	wrong     map[guess]*guesses // of ids that sent a wrong password
}

// guess is a charger's id and the address of an attempt.
type guess struct{ addr, id string }

// visits are the attempts and connections of an address.
type visits struct {
	guesses
	open int // connections without a password
}

// guesses counts wrong passwords.
type guesses struct {
	count int       // that count now
	since time.Time // when one of them will count no more
}

// ease removes attempts that are too old to count.
func (g *guesses) ease(p pace, now time.Time) {
	for g.count > 0 && !now.Before(g.since.Add(p.every)) {
		g.count--
		g.since = g.since.Add(p.every)
	}
}

// add counts one attempt.
func (g *guesses) add(p pace, now time.Time) {
	g.ease(p, now)
	if g.count == 0 {
		g.since = now
	}
	g.count++
}

// visitsOf returns what is known of an address. The caller has the lock.
func (g *guard) visitsOf(addr string, now time.Time) *visits {
	v := g.addresses[addr]
	if v == nil {
		if len(g.addresses) >= addressesMax {
			g.forget(now)
		}
		if g.addresses == nil {
			g.addresses = map[string]*visits{}
		}

		v = &visits{}
		g.addresses[addr] = v
	}

	return v
}

// forget drops addresses without attempts that count; if there are none, all addresses without
// a connection.
func (g *guard) forget(now time.Time) {
	for addr, v := range g.addresses {
		v.ease(widePace, now)
		if v.open == 0 && v.count == 0 {
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

// forgetGuesses drops ids without attempts that count; if there are none, all.
func (g *guard) forgetGuesses(now time.Time) {
	for at, w := range g.wrong {
		w.ease(narrowPace, now)
		if w.count == 0 {
			delete(g.wrong, at)
		}
	}
	if len(g.wrong) >= addressesMax {
		clear(g.wrong)
	}
}

// mayGuess reports whether a charger's password from that address is checked. An address that
// proved the right one before is always checked, however many others there fail.
func (g *guard) mayGuess(from guess, hasCertificate bool, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	if w := g.wrong[from]; w != nil {
		w.ease(narrowPace, now)
		if w.count >= narrowPace.most {
			return false
		}
	}

	v := g.addresses[from.addr]
	if v == nil || hasCertificate {
		return true
	}

	v.ease(widePace, now)

	return v.count < widePace.most
}

// noteGuess counts a wrong password.
func (g *guard) noteGuess(from guess, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.visitsOf(from.addr, now).add(widePace, now)

	w := g.wrong[from]
	if w == nil {
		if len(g.wrong) >= addressesMax {
			g.forgetGuesses(now)
		}
		if g.wrong == nil {
			g.wrong = map[guess]*guesses{}
		}

		w = &guesses{}
		g.wrong[from] = w
	}

	w.add(narrowPace, now)
}

// enter counts a connection without a password for the address, if it may have one more.
func (g *guard) enter(addr string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	v := g.visitsOf(addr, now)
	if v.open >= strangersMax {
		return false
	}

	v.open++

	return true
}

func (g *guard) leave(addr string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.visitsOf(addr, now).open--
}
