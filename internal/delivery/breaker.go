package delivery

import "time"

// openAfter is the number of failures in a row, without a success between them, that opens the
// breaker.
const openAfter = 10

// breaker limits the attempts at a failing endpoint. It begins closed. It opens after
// openAfter failures in a row, each time for longer. After that time it is half open: one
// attempt at a time is allowed. An attempt that is accepted closes it.
type breaker struct {
	failures int // in a row
	trips    int // number of times that it opened since it was closed
	until    time.Time
}

// reset closes the breaker.
func (b *breaker) reset() { *b = breaker{} }

// open reports whether no attempt is allowed at the instant.
func (b *breaker) open(now time.Time) bool {
	return b.trips > 0 && now.Before(b.until)
}

// halfOpen reports whether one attempt at a time is allowed.
func (b *breaker) halfOpen() bool { return b.trips > 0 }

// fail counts a failed attempt and reports whether it opened the breaker. draw returns a
// number in [0, 1) that jitters the time of the given trip. An attempt that ends while the
// breaker is open began before, and does not count.
func (b *breaker) fail(now time.Time, draw func(trip int) float64) bool {
	if b.open(now) {
		return false
	}

	b.failures++
	if b.failures < openAfter {
		return false
	}

	b.trips++
	b.until = now.Add(backoff(b.trips, draw(b.trips)))

	return true
}
