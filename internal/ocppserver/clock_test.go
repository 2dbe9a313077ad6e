package ocppserver

import (
	"testing"
	"time"
)

// TestClock_WasSetRight: a single message of now, from a charger whose clock was ahead, means
// that the clock was set right, unless the clock is heard to be ahead still: then it was under
// way for as long.
func TestClock_WasSetRight(t *testing.T) {
	const ahead = 2 * time.Hour
	for _, c := range []struct {
		name  string
		stamp time.Duration // of the message, from when it arrived
		after []time.Duration
		want  bool
	}{
		{"now", 0, nil, true},
		{"at the edge", prompt, nil, true},
		{"beyond it", -prompt - 1, nil, false},
		{"now, and then ahead as before", 0, []time.Duration{ahead}, false},
		{"now, and then an old one", 0, []time.Duration{-time.Hour}, true},
	} {
		k := clock{}
		k.learn(night.Add(ahead), night)

		arrived := night.Add(time.Second)
		e := lateEvent{Stamp: arrived.Add(c.stamp), Arrived: arrived}
		k.learn(e.Stamp, arrived)
		for i, offset := range c.after {
			now := arrived.Add(time.Duration(i+1) * time.Second)
			k.learn(now.Add(offset), now)
		}

		if got := k.wasCorrected(e); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
