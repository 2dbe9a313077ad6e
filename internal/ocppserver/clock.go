package ocppserver

import (
	"slices"
	"time"
)

const (
	// prompt is how far a stamp may lie from now and still be of a message sent at once.
	prompt = 30 * time.Second
	// agreeing is how closely the stamps of two messages must be off by the same, and apart
	// how far they must have arrived, to show a wrong clock and not a late message.
	agreeing = 3 * time.Second
	apart    = 5 * time.Second
	// lateMax is how many late messages wait for the clock to be known.
	lateMax = 4096
	// stampsMax is how many stamps are kept to know the clock by.
	stampsMax = 8
)

// clock is what is known of a charger's clock.
type clock struct {
	Offset time.Duration `json:"offset"` // of its stamps from true time
	stamps []stampAt
}

// stampAt is a stamp and when it arrived.
type stampAt struct {
	offset  time.Duration
	arrived time.Time
}

// lateEvent is something that a charger said of a time that is not now: it was kept while the
// charger was offline, or the clock is wrong.
type lateEvent struct {
	stamp   time.Time
	arrived time.Time
	apply   func(at time.Time)
}

// at hands the instant of a message to apply: at once if the message is prompt by what is
// known of the clock, else when the clock is known or enough time has passed to take the
// stamp for true. The caller holds mu, and apply is called with it.
func (c *charger) at(s stamp, now time.Time, apply func(at time.Time)) {
	if s.IsZero() {
		apply(now)
		return
	}

	if c.clock.learn(s.Time, now) {
		c.clockChanged(now)
	}

	at := s.Add(-c.clock.Offset)
	if gap := now.Sub(at); gap <= prompt && gap >= -prompt {
		apply(earliest(at, now))
		return
	}

	c.late = append(c.late, lateEvent{s.Time, now, apply})
	if len(c.late) > lateMax {
		c.late = c.late[1:]
	}
}

// learn takes a stamp that has just arrived and reports whether it shows that the clock is
// another. A stamp after now proves it: no message is late from the future. An earlier one
// may be of a message that waited; two that arrive apart and are off by the same did not.
func (k *clock) learn(s, now time.Time) bool {
	offset := s.Sub(now)
	old := k.Offset
	agrees := slices.ContainsFunc(k.stamps, func(o stampAt) bool {
		return (offset-o.offset).Abs() <= agreeing && now.Sub(o.arrived) >= apart
	})

	off := offset - old
	if off.Abs() <= prompt { // the clock is as it was: what came before was late
		k.stamps = nil
	}

	k.stamps = append(k.stamps, stampAt{offset, now})
	if len(k.stamps) > stampsMax {
		k.stamps = k.stamps[1:]
	}

	if off > prompt || off < -prompt && agrees {
		k.Offset = offset
		if offset.Abs() <= prompt {
			k.Offset = 0
		}
	}

	return k.Offset != old
}

// clockChanged warns once of a wrong clock, and takes up what waited for it to be known.
func (c *charger) clockChanged(now time.Time) {
	if c.clock.Offset != 0 {
		c.b.Log.Warn("a charger's clock is wrong; its times are corrected", "charger", c.id, "ahead", c.clock.Offset.Round(time.Second))
	} else {
		c.b.Log.Info("a charger's clock is right again", "charger", c.id)
	}

	for _, n := range c.connectors { // profiles are in the charger's time
		n.sendAgain()
	}

	waiting := c.late
	c.late = nil
	for _, e := range waiting {
		if (e.stamp.Sub(e.arrived) - c.clock.Offset).Abs() <= prompt {
			e.apply(earliest(e.stamp.Add(-c.clock.Offset), now))
		} else {
			c.late = append(c.late, e)
		}
	}
}

// lateDue takes up what waited long enough for the clock to be known: its stamps are true,
// but for the offset. The caller holds mu.
func (c *charger) lateDue(now time.Time) {
	waiting := c.late
	c.late = nil
	for _, e := range waiting {
		if now.Sub(e.arrived) < c.b.Timing.Late {
			c.late = append(c.late, e)
			continue
		}
		if at := e.stamp.Add(-c.clock.Offset); !at.After(now.Add(prompt)) {
			e.apply(at)
		}
	}
}
