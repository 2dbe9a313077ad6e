package ocppserver

import (
	"context"
	"errors"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

const (
	// obeyTime is what a charger is given to do what its profile says, before it is mended and
	// once more before it has failed.
	obeyTime = time.Minute
	// askEvery is how often the meter is asked for meanwhile, and askTime for how long.
	askEvery = 25 * time.Second
	askTime  = 2 * time.Minute
	// statusTime is how long a status is waited upon alone, if no meter value comes.
	statusTime = 100 * time.Second
	// flowingWatts is the power from which on a car counts as charging, in W.
	flowingWatts = 200
	// mendsMax is how often one step of a schedule is mended.
	mendsMax = 1
)

// watch compares what a connector does, by its status and its meter, with its profile. If they
// differ for a minute, the profile is cleared and sent again. If they still differ a minute
// later, it has failed; if they agree, it is executed, even after that.
func (c *charger) watch(ctx context.Context, n *connector) error {
	w, ready := c.inspect(n)
	if !ready {
		return nil
	}

	if w.askMeter {
		c.trigger(ctx, w.link, n)
	}

	switch {
	case w.found == obeyed:
		c.queueCallback(n, w.profile, client.CallbackExecuted)

	case w.found == contradicts && w.mends > mendsMax:
		c.queueCallback(n, w.profile, client.CallbackFailed)

	case w.found == contradicts:
		c.b.Log.Warn(
			"a charger does not do what its profile says: it is cleared and sent again",
			"charger",
			c.id,
			"connector",
			n.number,
			"event",
			w.profile.event,
			"status",
			w.status,
			"limit_w",
			w.step.Limit,
		)

		c.clearAll(ctx, w.link, n, w.id)
		c.finish(n, w.profile, func() { w.profile.sent = profileFit{} })

		return errors.Join(c.floor(ctx, n), c.apply(ctx, n))
	}

	return nil
}

// comparison is the result of a look at a connector.
type comparison struct {
	link     *link
	profile  *pushTarget
	id       int       // of the profile as it was sent
	step     flex.Step // that it is in
	mends    int       // of the step, this one counted
	status   string
	found    inForce
	askMeter bool // whether the meter is to be asked for
}

// inspect compares a connector with its profile. It is not ready if there is nothing to compare.
func (c *charger) inspect(n *connector) (w comparison, ready bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	p := n.want
	now := c.b.Now()
	connected := c.link != nil && c.configured && n.tx != 0
	if !connected || p == nil || !p.isInForce() {
		return w, false
	}

	step, since, ok := p.current(now)
	found := unsure
	if ok {
		found = n.compareLate(step, since, c.b.Delay, now)
	}
	if found == unsure && p.contradicted &&
		!now.Before(p.sentAt.Add(obeyTime)) {
		found = contradicts
	}

	// The meter may tell what the status does not, but is asked for a while only.
	recent := now.Before(since.Add(askTime + c.b.Delay))
	askMeter := ok && found == unsure && recent && !now.Before(n.meterAskedAt.Add(askEvery))
	if askMeter {
		n.meterAskedAt = now
	}
	if found == contradicts {
		p.noteMend(step, now)
	}

	return comparison{
		link:     c.link,
		profile:  p,
		id:       p.sent.ID,
		step:     step,
		mends:    p.mends,
		status:   n.status,
		found:    found,
		askMeter: askMeter,
	}, true
}

// sentNow reports whether a profile was sent and is not over.
func (p *pushTarget) isInForce() bool { return p.sent.steps != nil && !p.isOver }

// clearAll clears a connector's profiles, whoever set them, except for the charger's own
// maximum.
func (c *charger) clearAll(ctx context.Context, l *link, n *connector, id int) {
	all := []clearChargingProfile{
		{ID: id},
		{Connector: n.number, Purpose: purposeTx},
		{Connector: n.number, Purpose: purposeTxDefault},
	}

	for _, filter := range all {
		_ = c.clear(ctx, l, filter) // it is sent again in any case
	}

	c.dropFloor(n)
}

// current returns the current step of a profile, and since when it should be followed.
func (p *pushTarget) current(now time.Time) (flex.Step, time.Time, bool) {
	for i, s := range p.sent.steps {
		if s.Contains(now) {
			if limit := p.sent.Schedule.Periods[i].Limit; limit >= -zero && limit <= zero {
				s.Limit = 0
			}
			return s, flex.Later(s.From, p.sentAt), true
		}
	}

	return flex.Step{}, time.Time{}, false
}

// noteMend counts a repetition for a step, or for a new one.
func (p *pushTarget) noteMend(step flex.Step, now time.Time) {
	if !p.repairedStep.Equal(step.To) {
		p.repairedStep = step.To
		p.mends = 0
	}

	p.mends++
	p.contradicted = false
	p.sentAt = now
}

// lookAt sets the instants at which to check whether a step is followed by a charger that may
// be late.
func (p *pushTarget) compareAt(
	now time.Time,
	delay time.Duration,
	compare func(time.Time),
) {
	for _, s := range p.sent.steps {
		since := flex.Later(s.From, p.sentAt)
		for at := since.Add(
			askEvery,
		); at.Before(since.Add(askTime + obeyTime + delay)); at = at.Add(askEvery) {
			if at.After(now) {
				compare(at)
				break
			}
		}
	}
}

// compareLate is compare for a charger that must by law delay its changes by a random time:
// that it does not follow yet proves nothing.
func (n *connector) compareLate(
	step flex.Step,
	since time.Time,
	delay time.Duration,
	now time.Time,
) inForce {
	found := n.compare(step, since, now)
	if found != contradicts || delay == 0 {
		return found
	}

	return n.compare(step, since.Add(delay), now)
}

// compare reports whether a connector follows a step, by the messages since it was due.
func (n *connector) compare(step flex.Step, since, now time.Time) inForce {
	if now.Before(since.Add(obeyTime)) {
		return unsure
	}

	watts, measured := n.meter.mean(since)
	flows := measured && watts > flowingWatts
	charging := n.status == statusCharging
	waitedEnough := !now.Before(since.Add(statusTime))

	if step.Limit > 0 {
		if flows || n.status == statusSuspendedEV { // a car that wants nothing is free to
			return obeyed
		}

		if n.status == statusSuspendedEVSE || charging && measured {
			return contradicts
		}

		return unsure
	}

	if step.Limit < 0 {
		return compareDischarging(flows, measured && charging)
	}

	switch {
	case flows, charging && !measured && waitedEnough:
		return contradicts
	case measured, n.status == statusSuspendedEVSE, n.status == statusSuspendedEV:
		return obeyed
	}

	return unsure
}

// compareDischarging is compare for a time in which the car is to discharge. The import
// register shows that it does not charge; no message that is read has the exported energy.
func compareDischarging(flows, active bool) inForce {
	if flows {
		return contradicts
	}
	if active {
		return obeyed
	}

	return unsure
}

// mean returns the mean power since an instant, from samples that are far enough apart.
func (m *meter) mean(since time.Time) (float64, bool) {
	i := m.index(since)
	if last := len(m.Marks) - 1; i < last {
		span := m.Marks[last].At.Sub(m.Marks[i].At)
		if span >= askEvery-clockSlack {
			return (m.Marks[last].Wh - m.Marks[i].Wh) / span.Hours(), true
		}
	}

	last := len(m.Flows) - 1
	if last >= 0 && m.Flows[last].At.After(since) {
		return m.Flows[last].Watts, !m.Flows[last].Interval
	}

	return 0, false
}

// clear clears profiles of a charger.
func (c *charger) clear(
	ctx context.Context,
	l *link,
	filter clearChargingProfile,
) error {
	var s statusAnswer
	err := l.call(ctx, "ClearChargingProfile", filter, &s)
	if err != nil {
		c.b.Log.Warn(
			"a charger's profile was not cleared",
			"charger",
			c.id,
			"err",
			err,
		)
	}

	return err
}
