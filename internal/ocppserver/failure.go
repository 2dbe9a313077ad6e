package ocppserver

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// failuresMax is how often a charger whose worker failed is restarted with its saved state.
// After that it starts without it, because the saved state may be the cause.
const failuresMax = 3

// within calls a function with a mutex locked, and unlocks it also after a panic.
func within[T any](mu *sync.Mutex, do func() T) T {
	mu.Lock()
	defer mu.Unlock()

	return do()
}

// work runs a function for the charger in a goroutine.
func (c *charger) work(do func()) {
	c.b.work.Go(func() {
		defer c.survive()
		do()
	})
}

// survive ends the work for a charger after a panic, and for no other. Its connection is
// closed, and the charger is started again when it connects.
func (c *charger) survive() {
	p := recover()
	if p == nil {
		return
	}

	stack := debug.Stack()
	count := c.b.forget(c)

	c.mu.Lock()
	l := c.link
	c.link, c.aborted = nil, true
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

// forget removes a charger whose worker failed from the bridge, and returns how often that has
// happened to it. Pushes for its assets wait until it connects again.
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

// takeUp starts the work for a charger that has connected, with its saved state if its worker
// failed before. The caller holds b.mu.
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

	c.restoreFrom(s)

	return c
}
