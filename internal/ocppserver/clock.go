package ocppserver

import (
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
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

// clock is what is known about a charger's clock.
type clock struct {
	Offset      time.Duration `json:"offset"` // of its stamps from true time
	stamps      []stampAt
	confirmedAt time.Time // when a stamp came last that was off by Offset
}

// stampAt is a stamp and when it arrived.
type stampAt struct {
	offset  time.Duration
	arrived time.Time
}

// lateEvent is a charger's report with a time that is not now: the charger stored it while it
// was offline, or its clock is wrong.
type lateEvent struct {
	Stamp   time.Time `json:"stamp"`
	Arrived time.Time `json:"arrived"`
	chargerEvent
}

// chargerEvent is one report of a charger, in a form that can be saved in a file.
type chargerEvent struct {
	What      string `json:"what"`
	Connector int    `json:"connector"`
	// which of the EVSE's connectors it is of, with OCPP 2; 0 if that is not said
	Outlet int    `json:"outlet,omitempty"`
	Sample sample `json:"sample,omitzero"`
	// the status, or why a transaction stopped
	Word string `json:"word,omitempty"`
	// the transaction that stopped ran until then
	Running bool `json:"running,omitempty"`
}

// The kinds of chargerEvent.
const (
	saidStatus = "status"
	saidOutlet = "outlet" // a status of one of an EVSE's connectors
	saidStart  = "start"
	saidStop   = "stop"
	saidSample = "sample"
)

// takeEvent processes a charger's report. The caller holds mu.
func (c *charger) takeEvent(e chargerEvent, at, arrived time.Time) {
	n := c.connector(e.Connector)
	e.Sample.At = at

	switch e.What {
	case saidStatus:
		n.takeStatus(e.Word, at, arrived)
		n.tookStatus(e.Word, at, c.b.Timing.PlugOut)
		if e.Outlet != 0 && n.pluggedIn && n.heard.Equal(at) {
			n.outlet = e.Outlet
		}

	case saidOutlet:
		n.takeOutlet(e, at, arrived, c.b.Timing.PlugOut)
	case saidStart:
		n.began(e, at, arrived, c.b.Timing.PlugOut)
	case saidStop:
		n.ended(e, at, arrived, c.b.Timing.PlugOut)
	case saidSample:
		// Some chargers repeat Transaction.Begin for as long as the transaction runs.
		if !e.Sample.Begin || at.Sub(n.startedAt).Abs() <= prompt {
			n.noteSample(e.Sample)
		}
	}
}

// began processes the beginning of a transaction. A report that was stored in the charger does
// not say whether the car is there now.
func (n *connector) began(
	e chargerEvent,
	at, arrived time.Time,
	patience time.Duration,
) {
	n.carBack(at, patience)
	n.startedAt = at
	n.noteSample(e.Sample)

	if arrived.Sub(at) < stale {
		n.plug(true, arrived)
		n.heard = flex.Later(n.heard, at)
	}
}

// ended processes the end of a transaction.
func (n *connector) ended(
	e chargerEvent,
	at, arrived time.Time,
	patience time.Duration,
) {
	n.noteSample(e.Sample)
	if e.Word == reasonDisconnected {
		n.carGone(at, patience)
	}

	if e.Running && n.tx == 0 && !at.Before(n.heard) {
		n.stopped(e.Word, arrived)
	}
}

// takeStatus processes a status, unless it is older than the known one.
func (n *connector) takeStatus(status string, at, arrived time.Time) {
	if at.Before(n.heard) {
		return
	}

	n.heard = at
	n.status = status
	switch status {
	case statusPreparing, statusCharging, statusSuspendedEV, statusSuspendedEVSE, statusFinishing:
		n.plug(true, arrived)
	case statusAvailable, statusReserved:
		n.plug(false, arrived)
	}
}

// tookStatus records what a status implies about the car. Finishing may be reported while a
// car leaves.
func (n *connector) tookStatus(
	status string,
	at time.Time,
	patience time.Duration,
) {
	switch status {
	case statusPreparing, statusCharging, statusSuspendedEV, statusSuspendedEVSE:
		n.carBack(at, patience)
	case statusAvailable, statusReserved:
		n.carGone(at, patience)
	}
}

// stopped records what the end of a transaction implies about the car.
func (n *connector) stopped(reason string, arrived time.Time) {
	if reason == reasonDisconnected {
		n.plug(false, arrived)
	} else if n.pluggedIn {
		n.doubtful = arrived
	}
}

// at determines the instant of a message and processes it: at once if it is current by what is
// known of the clock, else when the clock is known or enough time has passed to use the
// timestamp as it is. The caller holds mu.
func (c *charger) at(s stamp, now time.Time, e chargerEvent) {
	if math.IsNaN(e.Sample.Value) {
		e.Sample.Value = -1 // which no register shows
	}

	if s.IsZero() {
		c.takeEvent(e, now, now)
		return
	}

	if c.clock.learn(s.Time, now) {
		c.clockChanged(now)
	}

	at := s.Add(-c.clock.Offset)
	if gap := now.Sub(at); gap <= prompt && gap >= -prompt {
		c.takeEvent(e, flex.Earlier(at, now), now)
		return
	}

	c.late = append(c.late, lateEvent{s.Time, now, e})
	if len(c.late) > lateMax {
		c.late = c.late[1:]
	}
}

// learn uses a timestamp that has just arrived and reports whether it shows another offset of
// the clock. A timestamp in the future proves one, since no message comes from the future. An
// earlier one may be of a message that waited; two that arrive apart with the same difference
// are not.
func (k *clock) learn(s, now time.Time) bool {
	offset := s.Sub(now)
	old := k.Offset
	agrees := slices.ContainsFunc(k.stamps, func(o stampAt) bool {
		return (offset-o.offset).Abs() <= agreeing &&
			now.Sub(o.arrived) >= apart
	})

	off := offset - old
	if off.Abs() <= prompt { // the clock is as it was: what came before was late
		k.stamps, k.confirmedAt = nil, now
	}

	k.stamps = append(k.stamps, stampAt{offset, now})
	if len(k.stamps) > stampsMax {
		k.stamps = k.stamps[1:]
	}

	if off > prompt || off < -prompt && agrees {
		k.Offset, k.confirmedAt = offset, now
		if offset.Abs() <= prompt {
			k.Offset = 0
		}
	}

	return k.Offset != old
}

// clockChanged logs a wrong clock once, and processes the messages that waited for its offset.
func (c *charger) clockChanged(now time.Time) {
	if c.clock.Offset != 0 {
		c.b.Log.Warn(
			"a charger's clock is wrong; its times are corrected",
			"charger",
			c.id,
			"ahead",
			c.clock.Offset.Round(time.Second),
		)
	} else {
		c.b.Log.Info("a charger's clock is right again", "charger", c.id)
	}

	for _, n := range c.connectors { // profiles are in the charger's time
		n.resendProfile()
	}

	waiting := c.late
	c.late = nil
	for _, e := range waiting {
		if (e.Stamp.Sub(e.Arrived) - c.clock.Offset).Abs() <= prompt {
			c.takeEvent(
				e.chargerEvent,
				flex.Earlier(e.Stamp.Add(-c.clock.Offset), now),
				e.Arrived,
			)
		} else {
			c.late = append(c.late, e)
		}
	}
}

// wasCorrected reports whether a message that waited shows that the clock is right now: its
// timestamp is the time at which it arrived, and no later one differs as the earlier ones did.
// Otherwise the message would have been under way for exactly the clock's error.
func (k *clock) wasCorrected(e lateEvent) bool {
	return k.Offset != 0 && e.Stamp.Sub(e.Arrived).Abs() <= prompt &&
		k.confirmedAt.Before(e.Arrived)
}

// lateDue processes messages that waited long enough for the clock's offset: their timestamps
// are used, corrected by a known offset. The caller holds mu.
func (c *charger) lateDue(now time.Time) {
	if slices.ContainsFunc(c.late, func(e lateEvent) bool {
		return now.Sub(e.Arrived) >= c.b.Timing.Late && c.clock.wasCorrected(e)
	}) {
		c.clock.Offset = 0
		c.clockChanged(now)
	}

	waiting := c.late
	c.late = nil
	for _, e := range waiting {
		if now.Sub(e.Arrived) < c.b.Timing.Late {
			c.late = append(c.late, e)
			continue
		}
		if at := e.Stamp.Add(-c.clock.Offset); !at.After(now.Add(prompt)) {
			c.takeEvent(e.chargerEvent, at, e.Arrived)
		}
	}
}
