package ocppserver

import (
	"context"
	"errors"
	"slices"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// order is a profile that is to be sent to a connector.
type order struct {
	n    *connector
	p    *pushTarget
	link *link
	tx   int
	// of the schedule, so that it is seen when it is to be sent once more meanwhile
	resendCount int
	now         time.Time
	// as of the schedule
	refusedForms []form
	unknown      int

	capabilities    capabilities
	discharges      bool // the car is to discharge, and as far as is known it can
	singleConnector bool // the charger has no other connector
	power           flex.Watts
	phases          int
	steps           []flex.Step   // of the plan, within what a platform allows
	floor           *flex.Watts   // nil if it has none
	floorCount      int           // of the connector, so that it is seen when it is to be sent once more meanwhile
	offset          time.Duration // of the charger's clock
}

// apply makes the charger follow the connector's schedule. The profile is sent once after the
// schedule arrived, after the charger booted or connected, when a transaction starts, and when
// a long profile must be continued because the charger could store only a part of it.
func (c *charger) apply(ctx context.Context, n *connector) error {
	o, due := c.order(n)
	if !due {
		return nil
	}
	if o.link == nil {
		c.queueCallback(n, o.p, client.CallbackReceived)
		return nil
	}

	f, took, err := c.send(ctx, o)
	switch {
	case errors.Is(err, errLinkLost):
		return errRetry
	case err != nil:
		return c.noteFailed(n, o, err)
	case f.steps == nil: // it has ended
		c.finish(n, o.p, func() { o.p.isOver = true })
		return nil

	case !took:
		return c.noteRefused(n, o)
	}

	return c.noteAccepted(ctx, o, f)
}

// noteAccepted records that a charger accepted a profile, and reports it.
func (c *charger) noteAccepted(ctx context.Context, o order, f profileFit) error {
	c.noteSent(o.n, o, f)
	c.binds(f.form, f.ID)
	c.queueCallback(o.n, o.p, client.CallbackAccepted)
	if err := c.floor(ctx, o.n); err != nil {
		return err
	}

	if o.tx != 0 {
		c.confirm(ctx, o, f)
	}

	return nil
}

// noteRefused records that a charger accepted a profile in none of the forms. If what the forms
// depend on changed while they were tried, such as a transaction that began, they are tried
// again.
func (c *charger) noteRefused(n *connector, o order) error {
	p := o.p
	changed := false
	c.finish(n, p, func() {
		changed = p.resendCount != o.resendCount
		p.isOver = !changed
	})
	if changed {
		return errRetry
	}

	c.b.Log.Warn(
		"a charger refused a profile in every form",
		"charger",
		c.id,
		"connector",
		n.number,
		"event",
		p.event,
	)

	c.queueCallback(n, p, client.CallbackRejected)

	return nil
}

// noteSent records the profile that a charger accepted.
func (c *charger) noteSent(n *connector, o order, f profileFit) {
	if f.TooLow {
		c.b.Log.Warn(
			"a plan asks for less than 6 A a phase, which no car takes: it is a pause",
			"charger",
			c.id,
			"connector",
			n.number,
		)
	}

	c.noteProfile(n, f.ID)
	c.finish(n, o.p, func() {
		if n.tx != o.tx || o.p.resendCount != o.resendCount {
			// what it depends on changed meanwhile, and it must be sent again
			return
		}

		o.p.sent = f
		o.p.sentAt = o.now
		o.p.tries = 0
		n.allow(f.steps, o.now)
		n.covers(f.form)
	})
}

// noteProfile records which profile a charger has, so that it is cleared when the car has
// left.
func (c *charger) noteProfile(n *connector, id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.profile, n.takeOffs = id, 0
}

// order returns what is to be sent to a connector now, and whether anything is. Nothing can be
// sent without a link.
func (c *charger) order(n *connector) (o order, due bool) {
	options := c.b.optionsOf(c.id)
	c.mu.Lock()
	defer c.mu.Unlock()

	p := n.want
	if p == nil || p.isOver {
		return order{}, false
	}

	now := c.b.Now()
	mustResend := !p.sent.Again.IsZero() && !now.Before(p.sent.Again)
	if p.sent.steps != nil && !mustResend {
		return order{}, false
	}

	return c.orderOf(n, options), true
}

// orderOf returns what a profile for a connector depends on now. The caller holds mu.
func (c *charger) orderOf(n *connector, options chargerOptions) order {
	power := powerOf(n.asset)
	o := order{
		n:               n,
		p:               n.want,
		tx:              n.tx,
		now:             c.b.Now(),
		capabilities:    c.capabilities,
		singleConnector: len(c.connectors) == 1,
		power:           power,
		phases:          phasesOf(options, n.phases, n.asset),
		floor:           options.floor,
		floorCount:      n.floorCount,
		offset:          c.clock.Offset,
	}

	if o.p != nil {
		o.resendCount = o.p.resendCount
		o.refusedForms = o.p.refusedForms
		o.unknown = o.p.unknown
		o.steps = c.up.bound(n, o.phases, o.p.profile.Steps)
		o.discharges = c.capabilities.Discharges && !n.refusesDischarge &&
			slices.ContainsFunc(o.steps, func(s flex.Step) bool { return s.Limit < 0 })
	}

	if c.configured {
		o.link = c.link
	}

	return o
}

// finish changes a schedule's record under the lock.
func (c *charger) finish(n *connector, p *pushTarget, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.want == p {
		f()
	}
}

// noteFailed counts an attempt that was not answered.
func (c *charger) noteFailed(n *connector, o order, err error) error {
	p := o.p
	c.b.Log.Warn(
		"a profile did not reach its charger",
		"charger",
		c.id,
		"connector",
		n.number,
		"event",
		p.event,
		"err",
		err,
	)

	over := false
	c.finish(n, p, func() {
		if p.resendCount != o.resendCount {
			return // what it depends on changed meanwhile, and it is sent again
		}

		p.tries++
		over = p.tries >= triesMax
		if over && o.discharges { // it may answer a profile without setpoints
			n.refusesDischarge = true
			p.tries = 0
			over = false
		}

		p.isOver = over
	})

	if over {
		c.queueCallback(n, p, client.CallbackFailed)
		return nil
	}

	return errRetry
}

// send tries the forms of the profile in order until the charger accepts one, and remembers
// that one.
func (c *charger) send(
	ctx context.Context,
	o order,
) (f profileFit, took bool, err error) {
	if o.discharges {
		f, took, err = c.tryForms(ctx, o, true)
		if took || err != nil || f.steps == nil {
			return f, took, err
		}

		c.b.Log.Warn(
			"a charger refused to have a car discharge: the plan is sent without it",
			"charger",
			c.id,
			"connector",
			o.n.number,
			"event",
			o.p.event,
		)

		c.finish(o.n, o.p, func() { o.n.refusesDischarge = true })
	}

	return c.tryForms(ctx, o, false)
}

// tryForms is send, with or without the setpoints by which a car discharges.
func (c *charger) tryForms(
	ctx context.Context,
	o order,
	setpoints bool,
) (f profileFit, took bool, err error) {
	inTx := o.tx != 0
	unknown := o.unknown
	for _, way := range o.capabilities.forms(o.n.number, inTx, o.singleConnector) {
		if setpoints && way.Purpose == purposeMax {
			continue // the standard has none there
		}

		way.Setpoints = setpoints
		next, ok := o.fit(way)
		if !ok {
			return profileFit{}, false, nil
		}

		f = next
		if unknown >= unknownMax {
			break
		}
		if slices.Contains(o.refusedForms, way) {
			continue
		}

		took, notAtAll, err := c.set(ctx, o.link, way.Connector, o.profile(f))
		c.ifLate(err, func(ctx context.Context, answer func(out any) error) error {
			return c.setLate(ctx, o, next, answer)
		})
		if took {
			c.remember(way, inTx)
		}
		if took || err != nil {
			return f, took, err
		}

		if notAtAll {
			unknown++
		}
	}

	return f, false, nil
}

// profile is a fitted profile as it is sent: in the charger's time, and for its transaction.
func (o order) profile(f profileFit) chargingProfile {
	sent := f.chargingProfile
	sent.Schedule.Start = stamp{sent.Schedule.Start.Add(o.offset)}
	if f.form.Purpose == purposeTx {
		sent.Transaction = o.tx
	}

	return sent
}

// unknownMax is to how many forms a charger may answer NotSupported or NotImplemented before
// it counts as one that supports no profiles: one of each purpose.
const unknownMax = 4

// remember records the form that a charger accepted, for it and for others of its model and
// firmware.
func (c *charger) remember(way form, inTx bool) {
	c.mu.Lock()
	way.Setpoints = false // which depends on the plan
	before, known := c.capabilities.Taken[formKey(inTx)]
	c.capabilities.withAccepted(way, inTx)
	accepted := c.capabilities.Taken
	model := c.model
	c.mu.Unlock()

	if known && before == way {
		return
	}

	c.b.Log.Info(
		"a charger takes profiles in this form",
		"charger",
		c.id,
		"unit",
		way.Unit,
		"stack_level",
		way.Level,
		"purpose",
		way.Purpose,
		"connector",
		way.Connector,
		"whole_amperes",
		way.Whole,
	)

	if model != (bootNotification{}) {
		c.b.models.Store(model, accepted)
	}
}

// set sends one profile. Every answer but Accepted is a refusal, a CALLERROR too. notAtAll
// says that the charger does not know the call.
func (c *charger) set(
	ctx context.Context,
	l *link,
	connector int,
	p chargingProfile,
) (took, notAtAll bool, err error) {
	var s statusAnswer
	err = l.call(
		ctx,
		"SetChargingProfile",
		setChargingProfile{connector, p},
		&s,
	)

	return profileAnswer(&s, err)
}

// profileAnswer interprets the answer to a profile, with the results of set.
func profileAnswer(s *statusAnswer, err error) (took, notAtAll bool, _ error) {
	if e, ok := errors.AsType[*callError](err); ok {
		return false, e.Code == codeNotImplemented ||
			e.Code == codeNotSupported, nil
	}

	return s.Status == accepted, s.Status == codeNotSupported, err
}

// confirm asks the charger once what it will do in the next minute. If they are asked for a
// longer time, some chargers change the profile. What the charger does is compared later
// (watch).
func (c *charger) confirm(ctx context.Context, o order, f profileFit) {
	var s compositeSchedule
	request := getCompositeSchedule{
		o.n.number,
		int(compositeTime / time.Second),
		f.Schedule.Unit,
	}

	err := o.link.call(ctx, "GetCompositeSchedule", request, &s)
	c.ifLate(err, func(_ context.Context, answer func(out any) error) error {
		var s compositeSchedule
		if answer(&s) == nil {
			c.confirmLate(o, f, s)
		}

		return nil
	})
	if err != nil {
		c.b.Log.Debug(
			"a charger does not say what it will do",
			"charger",
			c.id,
			"err",
			err,
		)

		return
	}

	c.noteConfirmed(o, f, s)
}

// noteConfirmed compares what a charger reports that it will do with its profile.
func (c *charger) noteConfirmed(o order, f profileFit, s compositeSchedule) {
	c.mu.Lock()
	over := o.n.tx != o.tx
	c.mu.Unlock()
	if over {
		return // the answer is of no transaction, or of the next one
	}

	switch compare(f, s, o.now) {
	case obeyed:
		c.queueCallback(o.n, o.p, client.CallbackExecuted)

	case contradicts:
		c.b.Log.Warn(
			"a charger took a profile and says that it will do otherwise",
			"charger",
			c.id,
			"connector",
			o.n.number,
			"event",
			o.p.event,
		)

		c.finish(o.n, o.p, func() { o.p.contradicted = true })
	}
}

// stageOf returns how far along a callback's status is.
func stageOf(s client.CallbackStatus) int { return flex.CallbackStatus(s).Stage() }

// queueCallback queues a callback for flexd, unless one as far along was reported before,
// which flexd would ignore. EXECUTED may follow FAILED, since it reports that a failure was
// corrected.
func (c *charger) queueCallback(n *connector, p *pushTarget, s client.CallbackStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if stageOf(s) <= stageOf(p.reported) || n.asset.ID.IsZero() {
		return
	}

	p.reported = s
	c.callbacks = append(c.callbacks, callback{
		n.asset.ID,
		p.event,
		s,
		c.b.Now(),
	})

	if len(c.callbacks) > callbacksMax {
		c.callbacks = c.callbacks[1:]
	}
}

// powerOf is an asset's power, 0 if it is not known.
func powerOf(a client.AssetResponse) flex.Watts {
	if a.Properties == nil || a.Properties.PowerKW == nil {
		return 0
	}
	return flex.Watts(*a.Properties.PowerKW * 1000)
}
