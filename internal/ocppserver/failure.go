package ocppserver

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// failuresMax is how often a charger whose work failed is taken up with what was saved of it. After that it
// begins anew: what was saved may be the reason.
const failuresMax = 3

// within does something with a mutex held, and lets go of it also if that panics.
func within[T any](mu *sync.Mutex, do func() T) T {
	mu.Lock()
	defer mu.Unlock()

	return do()
}

// work does something for the charger beside everything else.
func (c *charger) work(do func()) {
	c.b.work.Go(func() {
		defer c.survive()
		do()
	})
}

// survive ends the work for a charger if it panicked, and no other's. Its connection is closed, and the charger is
// taken up again when it connects.
func (c *charger) survive() {
	p := recover()
	if p == nil {
		return
	}

	stack := debug.Stack()
	count := c.b.forget(c)

	c.mu.Lock()
	l := c.link
	c.link, c.broken = nil, true
	c.mu.Unlock()

	if l != nil {
		l.conn.CloseNow()
	}

	c.b.Log.Error(
		"the work for a charger failed: its connection is closed, and the others go on",
		"charger",
		c.id,
		"failures",
		count,
		"panic",
		fmt.Sprint(p),
		"stack",
		string(stack),
	)
}

// forget takes a charger whose work failed out of the bridge, and returns how often that has happened to it. Pushes for
// its assets wait until it connects again.
func (b *Bridge) forget(c *charger) int {
	b.mu.Lock()
	defer b.mu.Unlock()

	c.stop()
	b.failures[c.id]++
	if b.chargers[c.id] == c {
		delete(b.chargers, c.id)
	}

	for name, at := range b.names {
		if at.charger == c {
			delete(b.names, name)
		}
	}

	return b.failures[c.id]
}

// takeUp begins to work for a charger that has connected, with what was saved of it if its work failed before. The
// caller holds b.mu.
func (b *Bridge) takeUp(id string) *charger {
	count := b.failures[id]
	if count == 0 || count > failuresMax || b.State == "" {
		return b.begin(id)
	}

	s, err := readState(b.statePath(id))
	c := b.begin(id)
	if c == nil {
		return nil
	}
	if err != nil {
		b.Log.Warn("a charger begins anew", "charger", id, "err", err)
		return c
	}

	c.takeOver(s)

	return c
}
