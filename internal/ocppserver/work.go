package ocppserver

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

const (
	// lookEvery is how often flexd is asked for an asset that it does not have, and assetEvery
	// for one that it has: its power may be another by now, or it may be gone.
	lookEvery, assetEvery = time.Minute, time.Hour
	// synchroniseMax is the longest that a charger is left alone.
	synchroniseMax = time.Minute
	// triesMax is how often a profile is sent to a charger that does not answer.
	triesMax = 3
	// reportsMax and callbacksMax bound what is kept for flexd while it cannot be reached; the
	// oldest goes first.
	reportsMax, callbacksMax = 4096, 64
	// compositeTime is how far ahead a charger is asked what it will do.
	compositeTime = time.Minute
)

// report is a reading for flexd.
type report struct {
	Asset  client.AssetID `json:"asset"`
	Number int            `json:"connector"`
	flex.Span
	Label flex.Label `json:"label"`
	KWh   float64    `json:"kwh"`
}

// errRetry asks for another run of synchronise soon: something failed that may pass.
var errRetry = errors.New("try again")

// synchronise compares the charger's state with what flexd and the charger were last sent, and
// sends them what is missing. It returns how long nothing will be due by itself.
func (c *charger) synchronise(ctx context.Context) time.Duration {
	began := c.b.Now()
	c.followPlatform()
	err := errors.Join(c.takeLate(ctx), c.configure(ctx), c.sendCertificate(ctx), c.unbind(ctx))
	numbers := within(&c.mu, func() []int {
		c.lateDue(c.b.Now())
		return c.numbers()
	})

	for _, number := range numbers {
		c.mu.Lock()
		n := c.connectors[number]
		c.mu.Unlock()

		err = errors.Join(err, c.serve(ctx, n))
	}

	err = errors.Join(err, c.writeBack(ctx), c.post(ctx))
	c.save()

	if err != nil {
		return c.b.Timing.Retry
	}

	return c.pause(began)
}

// serve does what synchronise does for a connector. While flexd does not answer, the charger
// still has its floor, and its meter is read; flexd is then asked no more in this run.
func (c *charger) serve(ctx context.Context, n *connector) error {
	waiting := inTurn(ctx, n, []task{c.findAsset, c.sendPlug, c.refresh})
	if waiting != nil {
		worked := inTurn(ctx, n, []task{c.measure, c.takeOff, c.floor, c.follow, c.askMeter})
		return errors.Join(waiting, worked)
	}

	worked := inTurn(ctx, n, []task{c.measure, c.takeOffReported, c.floor, c.follow, c.askMeter})

	return errors.Join(worked, inTurn(ctx, n, []task{c.sendPhases, c.sendFirmware}))
}

// task is what is done for a connector in each run of synchronise.
type task func(context.Context, *connector) error

// inTurn does steps for a connector until one fails.
func inTurn(
	ctx context.Context,
	n *connector,
	steps []task,
) error {
	for _, do := range steps {
		if err := do(ctx, n); err != nil {
			return err
		}
	}

	return nil
}

// follow has the charger follow the connector's plan. That of a car that has gone is not sent
// to it any more, also where flexd cannot be reached to learn that it has: the next car is not
// bound by it.
func (c *charger) follow(ctx context.Context, n *connector) error {
	c.mu.Lock()
	isOut := n.due(c.b.Now(), c.b.Timing.PlugOut) == reportedOut
	none := n.noCar()
	c.mu.Unlock()

	if isOut || none {
		return nil
	}

	return inTurn(ctx, n, []task{c.apply, c.watch})
}

// noCar reports whether a plan can be of no car that is there, since flexd knows of none: its
// push was under way when the last one left. The caller holds mu.
func (n *connector) noCar() bool { return n.reported == reportedOut && !n.announced }

// pause returns how long nothing will be due by itself after a run of synchronise that began
// at the instant. A step whose time came during the run may have been tried too early in it:
// it is due at once.
func (c *charger) pause(began time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.b.Now()
	next := now.Add(synchroniseMax)
	soonest := func(at time.Time) {
		if at.After(began) && at.Before(next) {
			next = at
		}
	}

	soonest(c.configureAt)

	if len(c.reports) > 0 {
		soonest(c.reportAt)
	}

	for _, e := range c.late {
		soonest(e.Arrived.Add(c.b.Timing.Late))
	}

	edge := flex.PeriodAt(began).Start()
	soonest(edge.Add(edgeWait))
	soonest(edge.Add(flex.HalfHour + edgeWait))
	soonest(edge.Add(settleTime))

	for _, n := range c.connectors {
		soonest(n.since.Add(c.b.Timing.PlugOut))
		soonest(n.doubtful.Add(doubt))
		soonest(n.nextAt)
		if n.want != nil {
			soonest(n.want.sent.Again)
			n.want.compareAt(began, c.b.Delay, soonest)
		}
	}

	return max(0, next.Sub(now)) + time.Millisecond
}

// configure asks a charger that connected or booted what it can do, has it read its meter at
// the quarter hours, and asks how its connectors are.
func (c *charger) configure(ctx context.Context) error {
	c.mu.Lock()
	l, due := c.link, c.link != nil && !c.configured && !c.b.Now().Before(c.configureAt)
	boots := c.boots
	c.mu.Unlock()

	if !due {
		return nil
	}

	conf, err := c.askConfiguration(ctx, l)
	if err != nil {
		return err
	}

	if err := c.setMeter(ctx, l, conf); err != nil {
		return err
	}

	c.askStates(ctx, l, conf)

	c.mu.Lock()
	defer c.mu.Unlock()

	// Before it has booted a charger may answer nothing, or another thing.
	booted := c.boots != boots
	if booted {
		c.settings.checked = false
	}

	if booted || c.link != l {
		return errRetry
	}

	c.configured = true
	c.noteCapabilities(conf)
	for _, n := range c.connectors {
		n.resendProfile() // its profiles may be lost
		n.lacksFloor()
		n.floorRefused = nil
		n.refusesDischarge = false
	}

	return nil
}

// askConfiguration asks a charger what it can do. The configuration is empty if it does not answer.
func (c *charger) askConfiguration(ctx context.Context, l *link) (configuration, error) {
	var conf configuration
	err := l.call(
		ctx,
		"GetConfiguration",
		getConfiguration{keysFor(l.version)},
		&conf,
	)

	c.ifLate(err, func(ctx context.Context, answer func(out any) error) error {
		var conf configuration
		if answer(&conf) == nil {
			c.configureLate(l, conf)
		}

		return nil
	})

	callErr := (*callError)(nil)
	if err != nil && !errors.As(err, &callErr) {
		c.b.Log.Warn(
			"a charger does not say what it can do",
			"charger",
			c.id,
			"err",
			err,
		)

		if errors.Is(err, errLinkLost) || ctx.Err() != nil {
			return conf, errRetry
		}
	}

	return conf, nil
}

// askStates asks how a charger's connectors are, one by one: without a number, which the standard
// leaves to the asker, some end. One that does not say how many it has is asked for all.
func (c *charger) askStates(ctx context.Context, l *link, conf configuration) {
	last := 0
	text, _, _ := conf.find(keyConnectors)
	n, err := strconv.Atoi(strings.TrimSpace(text))
	first := 0
	if err == nil && n > 0 {
		first = 1
		last = min(n, connectorMax)
	}

	c.askEach(ctx, l, first, last)
}

// askEach asks how connectors are, from one number to another. One that is not answered ends
// it, until its answer comes.
func (c *charger) askEach(ctx context.Context, l *link, first, last int) {
	for number := first; number <= last; number++ {
		var s statusAnswer
		err := l.call(
			ctx,
			"TriggerMessage",
			triggerMessage{"StatusNotification", number},
			&s,
		)

		if err != nil {
			c.ifLate(err, func(ctx context.Context, _ func(out any) error) error {
				c.askEach(ctx, l, number+1, last)
				return nil
			})
			c.b.Log.Debug(
				"a charger could not be asked for its status",
				"charger",
				c.id,
				"err",
				err,
			)
			return
		}
	}
}

// noteCapabilities notes which profiles a charger takes. One that took none yet begins with
// the form that others of its model and firmware took. The caller holds mu.
func (c *charger) noteCapabilities(conf configuration) {
	accepted := c.capabilities.Taken
	if known, ok := c.b.models.Load(c.model); ok && accepted == nil {
		accepted = known.(map[string]form)
	}

	c.capabilities = capabilitiesOf(conf)
	c.capabilities.Taken = accepted
	c.b.Log.Info(
		"charger greeted",
		"charger",
		c.id,
		"stack_levels",
		c.capabilities.Levels,
		"units",
		c.capabilities.Units,
		"periods",
		c.capabilities.Periods,
	)
}

// findAsset asks flexd for the asset that the connector is: its external id is the charger's id
// and the connector's number, as in CP1-2, or for the first connector the charger's id alone.
func (c *charger) findAsset(ctx context.Context, n *connector) error {
	if !n.asset.ID.IsZero() && !n.stored {
		c.readAsset(ctx, n)
		return nil
	}
	if c.b.Now().Before(n.nextQuery) {
		return nil
	}

	names := c.assetNames(n)
	for _, name := range names {
		if c.b.ambiguous(name, c.id) {
			c.b.Log.Error("a connector has the name of another charger, and neither is served: give one of them another id",
				"charger", c.id, "connector", n.number, "external_id", name)
			continue
		}

		a, err := c.b.Client.AssetByExternalID(ctx, name)
		if client.StatusOf(err) == http.StatusNotFound {
			continue
		}

		if err != nil {
			c.b.Log.Error(
				"cannot ask flexd for an asset",
				"external_id",
				name,
				"err",
				err,
			)

			return errRetry
		}

		c.setAsset(n, a)
		c.b.Log.Info(
			"charger is an asset",
			"charger",
			c.id,
			"connector",
			n.number,
			"asset",
			a.ID,
		)

		c.takePush(n, name)

		return nil
	}

	c.setAsset(n, client.AssetResponse{})
	if n.nextQuery.IsZero() {
		c.b.Log.Warn(
			"flexd has no asset for a connector; register it",
			"external_id",
			names[len(names)-1],
			"connector",
			n.number,
		)
	}

	n.nextQuery = c.b.Now().Add(lookEvery)

	return nil
}

// readAsset asks flexd once in a while for the connector's asset. While flexd does not answer,
// what was known goes on.
func (c *charger) readAsset(ctx context.Context, n *connector) {
	if c.b.Now().Before(n.readAt) {
		return
	}

	a, err := c.b.Client.Asset(ctx, n.asset.ID)
	if err == nil {
		c.setAsset(n, a)
		return
	}

	if client.StatusOf(err) == http.StatusNotFound {
		c.forget(n, n.asset)
		return
	}

	n.readAt = c.b.Now().Add(lookEvery)
	c.b.Log.Warn(
		"cannot ask flexd for an asset again",
		"charger",
		c.id,
		"connector",
		n.number,
		"err",
		err,
	)
}

// assetNames are the external ids that a connector's asset may have, the likelier first.
func (c *charger) assetNames(n *connector) []string {
	names := []string{c.id + "-" + strconv.Itoa(n.number)}
	if n.number == 1 {
		names = append(names, c.id)
	}

	return names
}

// setAsset notes which asset a connector is; the zero value is none. Of another one than
// before flexd does not know yet whether a car is there. What was sent by another power is
// sent again.
func (c *charger) setAsset(n *connector, a client.AssetResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()

	before := n.asset
	n.asset = a
	n.stored = false
	n.readAt = c.b.Now().Add(assetEvery)
	if before.ID.IsZero() {
		return
	}

	if a.ID != before.ID {
		n.reported = reportedNothing
		return
	}

	if powerOf(a) != powerOf(before) {
		n.resendProfile()
		n.lacksFloor()
	}
}

// takePush takes the push that came for a name before it was known whose it is.
func (c *charger) takePush(n *connector, name string) {
	p := c.b.claim(name, socket{c, n.number})
	if p == nil {
		return
	}

	if err := c.want(n.number, p); err != nil {
		c.b.Log.Warn(
			"a push is dropped",
			"charger",
			c.id,
			"external_id",
			name,
			"err",
			err,
		)
	}
}

// due returns the state of the plug that flexd must be sent now: a car at once, a free
// connector when it has been free for a while, so that a plug that flickers is one session.
func (n *connector) due(now time.Time, patience time.Duration) plugState {
	if n.pluggedIn && !n.doubtful.IsZero() && !now.Before(n.doubtful.Add(doubt)) {
		n.plug(false, now.Add(-patience))
	}

	if n.since.IsZero() {
		return reportedNothing
	}

	if n.another && n.reported == reportedIn {
		return reportedOut
	}

	if n.pluggedIn && n.reported != reportedIn && !now.Before(n.nextAt) {
		return reportedIn
	}

	if !n.pluggedIn && n.reported != reportedOut && !now.Before(n.since.Add(patience)) {
		return reportedOut
	}

	return reportedNothing
}

// sendPlug reports to flexd that a car was plugged in or out. Reporting it again does no harm.
func (c *charger) sendPlug(ctx context.Context, n *connector) error {
	c.mu.Lock()
	now := c.b.Now()
	due := n.due(now, c.b.Timing.PlugOut)
	asset := n.asset
	tx := n.tx
	if n.another {
		tx = 0 // the next car's runs
	}
	if due == reportedIn && !asset.ID.IsZero() {
		n.announce()
	}
	c.mu.Unlock()

	if asset.ID.IsZero() || due == reportedNothing {
		return nil
	}

	var err error
	if due == reportedIn {
		err = c.b.Client.PlugIn(ctx, asset.ID, client.PlugInEventRequest{})
	} else {
		err = c.b.Client.PlugOut(ctx, asset.ID)
	}

	if err != nil {
		c.b.Log.Error(
			"cannot tell flexd of a plug",
			"charger",
			c.id,
			"connector",
			n.number,
			"err",
			err,
		)

		if client.StatusOf(err) != http.StatusNotFound {
			return errRetry
		}

		c.forget(n, asset)
		return nil
	}

	c.noteReport(n, due, now, tx)

	return nil
}

// announce notes that a car is about to be reported to flexd. A plan that came before is of the
// one that has left; flexd is asked for the one in force. The caller holds mu.
func (n *connector) announce() {
	if n.want != nil && n.noCar() {
		n.want, n.fetch = nil, true
	}
	n.announced = true
}

// forget takes a connector's asset away, as flexd no longer has it, and its plan. There may be
// another, whose plan may have been pushed, and refused, before it was known.
func (c *charger) forget(n *connector, asset client.AssetResponse) {
	c.mu.Lock()
	n.asset = client.AssetResponse{}
	n.nextQuery = c.b.Now().Add(lookEvery)
	n.reported = reportedNothing
	n.want, n.fetch = nil, true
	c.mu.Unlock()

	c.b.disclaim(asset.ExternalID)
}

// noteReport notes what flexd knows of a plug as it was at an instant, before it was asked. The
// next car is not bound by the profile of the one that has left, nor by its transaction tx,
// even if it came while that was reported to flexd.
func (c *charger) noteReport(
	n *connector,
	due plugState,
	at time.Time,
	tx int,
) {
	c.mu.Lock()
	defer c.mu.Unlock()

	next := n.another
	n.reported = due
	n.another, n.nextAt = false, time.Time{}

	// That car may have left, and the next one have said all that it says, before flexd answered.
	if due == reportedIn {
		n.reportedAt = at
		n.another = n.pluggedIn && n.status != statusFinishing && n.unpluggedAt.After(at)

		return
	}

	n.want = nil
	n.fetch, n.announced = false, false
	if n.tx == tx {
		n.tx = 0 // its end may have been said under another number, or not at all
	}
	if next {
		n.nextAt = c.b.Now().Add(apartFor)
	}
}

// refresh asks flexd for the schedule in force, once for each connector with a car: it
// may have been pushed before this bridge was started.
func (c *charger) refresh(ctx context.Context, n *connector) error {
	if n.asset.ID.IsZero() || n.reported != reportedIn || !n.fetch {
		return nil
	}

	var s client.ScheduleResponse
	err := c.b.Client.Do(
		ctx,
		http.MethodGet,
		"/entities/asset/"+n.asset.ID.String()+"/schedule",
		nil,
		nil,
		&s,
	)

	if client.StatusOf(err) == http.StatusNotFound { // there is none
		n.fetch = false
		return nil
	}

	if err != nil {
		c.b.Log.Error(
			"cannot ask flexd for a schedule",
			"charger",
			c.id,
			"err",
			err,
		)

		return errRetry
	}

	n.fetch = false
	c.mu.Lock()
	known := n.want != nil
	c.mu.Unlock()

	if p, err := profileInForce(s); err == nil && !known && !s.EventID.IsZero() {
		_ = c.want(n.number, &pushTarget{
			event:   s.EventID,
			profile: p,
		}) // a newer one may have come
	}

	return nil
}

// profileInForce reads a schedule as flexd shows it.
func profileInForce(s client.ScheduleResponse) (ocpp.Profile, error) {
	steps := make([]flex.Step, len(s.Periods))
	for i, p := range s.Periods {
		steps[i] = flex.Step{
			Span: flex.Span{
				From: p.StartTimestamp.Time,
				To:   p.EndTimestamp.Time,
			},
			Limit: flex.Watts(p.LimitW),
		}
	}

	return ocpp.FromLimits(flex.AssetID(s.AssetID), steps)
}
