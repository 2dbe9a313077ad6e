package flex

import "time"

// History is what something was at each time: entries in order, each from its instant until the
// next one's. The first begins at the zero time.
type History[V any] []From[V]

// From is what something is from an instant on.
type From[V any] struct {
	At time.Time
	Is V
}

// Always is the history of what never changed.
func Always[V any](v V) History[V] { return History[V]{{Is: v}} }

// On returns what it was at an instant; the zero value where the history is empty.
func (h History[V]) On(at time.Time) V {
	var v V
	for _, f := range h {
		if f.At.After(at) {
			break
		}
		v = f.Is
	}

	return v
}

// Then returns the history in which it is something else from an instant on, whatever was to come
// after that.
func (h History[V]) Then(at time.Time, v V) History[V] {
	for len(h) > 0 && !h[len(h)-1].At.Before(at) {
		h = h[:len(h)-1]
	}
	return append(h, From[V]{at, v})
}
