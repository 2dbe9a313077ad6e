package delivery

import "time"

// openAfter is the number of failures in a row, without a success between them, that opens the breaker.
const openAfter = 10

// breaker keeps a failing endpoint from being tried at full pace. It is closed at first. It opens
// after openAfter failures in a row, each time for longer. After that time it is half open: one
// attempt at a time is allowed. An attempt that is taken closes it.
type breaker struct {
	failures int // in a row
	trips    int // times that it opened since it was closed
	until    time.Time
}

// reset closes the breaker.
func (b *breaker) reset() { *b = breaker{} }

// open reports whether nothing may be tried at the instant.
func (b *breaker) open(now time.Time) bool {
	return b.trips > 0 && now.Before(b.until)
}

// halfOpen reports whether one attempt at a time is allowed.
func (b *breaker) halfOpen() bool { return b.trips > 0 }

// fail counts a failed attempt and reports whether the breaker opened by it. The draw, in [0, 1),
// is for the number of the time that it opens. An attempt that ends while the breaker is open
// began before, and does not count.
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
