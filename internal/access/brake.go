package access

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"flexd/internal/flex"
)

// pace is a rate by the generic cell rate algorithm: burst attempts at once, then one each
// interval. A wait is never longer than one interval, so that it slows a guesser down and
// locks nobody out.
type pace struct {
	burst    int
	interval time.Duration
}

// The paces of attempts to log in. The narrow one counts a name from one address: whoever
// guesses elsewhere does not slow its owner. The wide one counts an address, whatever the
// names. An attempt that succeeds counts in neither.
var (
	narrowPace = pace{burst: 10, interval: time.Second}
	widePace   = pace{
		burst:    100,
		interval: 100 * time.Millisecond,
	}
)

// brakeMax bounds the keys remembered; when full, those that hold nothing back are dropped,
// and if all do, all are.
const brakeMax = 100_000

// brake slows guessing down. It keeps for each key the instant at which its attempts so far
// would have been due, had they come at the pace.
type brake struct {
	mu  sync.Mutex
	due map[brakeKey]time.Time
}

// brakeKey stands for an address, or a name from it, in so many bytes however long the name.
type brakeKey [16]byte

func brakeKeyOf(kind byte, from, name string) brakeKey {
	sum := sha256.Sum256(fmt.Appendf([]byte{kind}, "%q %q", from, name))
	return brakeKey(sum[:16])
}

// take counts an attempt, or returns how long to wait before the next.
func (b *brake) take(key brakeKey, p pace, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()

	due := b.due[key]
	if due.Before(now) {
		due = now
	}

	// It lies further ahead where the clock was set back since. That is no reason to wait for longer.
	if most := now.Add(time.Duration(p.burst) * p.interval); due.After(most) {
		due = most
		b.due[key] = due
	}

	due = due.Add(p.interval)
	if wait := due.Sub(now) - time.Duration(p.burst)*p.interval; wait > 0 {
		return wait
	}

	if b.due == nil || len(b.due) >= brakeMax {
		b.drop(now)
	}

	b.due[key] = due

	return 0
}

// giveBack takes an attempt out of the count again.
func (b *brake) giveBack(key brakeKey, p pace) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if due, ok := b.due[key]; ok {
		b.due[key] = due.Add(-p.interval)
	}
}

func (b *brake) drop(now time.Time) {
	for key, due := range b.due {
		if !due.After(now) {
			delete(b.due, key)
		}
	}

	if b.due == nil || len(b.due) >= brakeMax {
		b.due = map[brakeKey]time.Time{}
	}
}

// attempt counts an attempt to log in as name from an address. The failure says how long to
// wait; undo takes the attempt back when it succeeds.
func (b *brake) attempt(
	name, from string,
	now time.Time,
) (undo func(), err error) {
	narrow, wide := brakeKeyOf('n', from, name), brakeKeyOf('w', from, "")
	if wait := b.take(wide, widePace, now); wait > 0 {
		return nil, tooMany(wait)
	}

	if wait := b.take(narrow, narrowPace, now); wait > 0 {
		b.giveBack(wide, widePace)
		return nil, tooMany(wait)
	}

	return func() {
		b.giveBack(narrow, narrowPace)
		b.giveBack(wide, widePace)
	}, nil
}

func tooMany(wait time.Duration) error {
	return &Wait{
		After: wait,
		Err: flex.Fail(
			flex.TooMany,
			"too many failed attempts to log in: wait and try again",
		),
	}
}

// Wait is a TooMany failure that says how long to wait.
type Wait struct {
	After time.Duration
	Err   error
}

func (w *Wait) Error() string { return w.Err.Error() }

// Unwrap returns the failure itself.
func (w *Wait) Unwrap() error { return w.Err }
