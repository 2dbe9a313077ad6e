package control

import (
	"context"
	"slices"
	"strconv"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/tariff"
)

// InForce is the schedule of a plugged-in asset.
type InForce struct {
	store.Schedule
	// the newest generation of the asset's schedules that its client has accepted; 0 for none
	Accepted int64
}

// Input is one input of a plan as it was used.
type Input struct {
	Name  string
	Value string
	// event, asset, site, organisation, default, readings, operator or plan
	Origin string
	Detail string // more about the origin; usually empty
}

// Explanation explains a schedule. It is made by planning again from the schedule's stored
// inputs.
type Explanation struct {
	InForce
	Plan   charge.Plan
	Inputs []Input
	// the headroom that caps left; none if they did not limit the asset
	Limits []flex.Step
	// the caps that limited the plan, with the price of headroom under them
	Caps    []BindingCap
	Summary string
	Heat    []HeatPeriod // of a heat pump, instead of the plan's periods
	// the discharge of a car that may discharge; nil if it never could
	Discharge *Discharge
	Exact     bool // planning again gives the same schedule, to the second
	// the client's last report about the schedule; empty for none
	Reported flex.CallbackStatus

	// how much of the shortfall one kW more of main fuse would remove
	fuseGain flex.WattHours
	// the reasons for the shortfall
	shortReasons []ShortReason
}

// BindingCap is a cap that limited a plan for a time.
type BindingCap struct {
	flex.Span
	Group  string     // empty for the fleet's cap
	Power  flex.Watts // the cap
	Price  flex.Price // of headroom under it; zero if not known
	Starts bool       // it limits the starts per minute, not the power
	// of a main fuse: the most that is reserved for the home's own load; zero if not known
	Home flex.Watts
	// it is the main fuse of the asset's own site, not a cap of the fleet or a group
	Site bool
	// it is a phase of a main fuse: Power is the part of the asset's power that it carries
	Phase bool
	// the source of a limit of the group's feeder: import, openadr or fallback; empty for a
	// cap
	Limit string
}

func bindingCaps(records []store.BindingCap) []BindingCap {
	var caps []BindingCap
	for _, c := range records {
		caps = append(caps, BindingCap{
			Span:   c.Span,
			Group:  c.Group,
			Power:  c.Power,
			Price:  c.Price,
			Starts: c.Starts,
			Home:   c.Home,
			Site:   c.Site,
			Phase:  c.Phase,
		})
	}

	return caps
}

// nameLimits sets the source of those caps that were limits of a feeder. A fallback can only
// be found while its link is lost.
func nameLimits(
	ctx context.Context,
	tx *store.Tx,
	caps []BindingCap,
	from time.Time,
) error {
	grouped := slices.ContainsFunc(caps, func(c BindingCap) bool {
		return c.Group != ""
	})
	if !grouped {
		return nil
	}

	limits, err := tx.LimitsAfter(ctx, flex.Import, from)
	if err != nil {
		return err
	}

	for i := range caps {
		c := &caps[i]
		at := slices.IndexFunc(limits, c.matches)
		if at >= 0 {
			c.Limit = limits[at].Source
		}
	}

	return nil
}

// matches reports whether the cap is a limit of a feeder.
func (c *BindingCap) matches(l flex.CapLimit) bool {
	if c.Starts || l.Group != c.Group {
		return false
	}

	return l.Power == c.Power && !l.Meet(c.Span).Empty()
}

// Schedule returns the schedule in force for an asset that is plugged in. It is NotFound for
// an asset that is not plugged in or not controlled.
func (s *Service) Schedule(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) (InForce, error) {
	var answer InForce
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		answer, err = inForce(ctx, tx, asset)
		return err
	})

	return answer, err
}

func inForce(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (InForce, error) {
	c, err := tx.PlanningState(ctx, asset)
	if err != nil {
		return InForce{}, err
	}

	return inForceOf(ctx, tx, &c)
}

// inForceOf is inForce for an asset that was read.
func inForceOf(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (InForce, error) {
	asset := c.Asset.ID
	switch {
	case c.Asset.Type.Heats():
		x, err := heaterExplanation(ctx, tx, *c)
		return x.InForce, err

	case c.Asset.Type == flex.Battery:
		return InForce{}, flex.Fail(
			flex.NotFound,
			"asset %v is a battery, which has no charging schedule: battery-schedule says what it is to do, "+
				"and GET /operations/asset/%v how it is planned",
			asset,
			asset,
		)

	case !c.Asset.Type.Charges():
		return InForce{}, flex.Fail(
			flex.NotFound,
			"asset %v is a %s, which has no charging schedule",
			asset,
			c.Asset.Type,
		)

	case !c.Open():
		return InForce{}, noSessionError(ctx, tx, asset, c.Session)

	case c.Current.Generation == 0 && c.Controlled:
		return InForce{}, flex.Fail(
			flex.NotFound,
			"asset %v has no schedule yet: one that was plugged in before its site was enrolled is planned at its next event; of any other the check before sending refused the plan, and the log says why",
			asset,
		)

	case c.Current.Generation == 0:
		return InForce{}, flex.Fail(
			flex.NotFound,
			"asset %v has no schedule: its site is not enrolled in %s",
			asset,
			flex.FullAssetSchedule,
		)
	}

	accepted, err := tx.Accepted(ctx, asset)
	return InForce{c.Current, accepted}, err
}

// recentEvents is how many of a session's newest events are searched for a plug-out.
const recentEvents = 100

// noSessionError returns the error for an asset without a plug session. It says why there is
// no schedule: nothing is plugged in, control ended during a session, or its client sent a
// schedule of its own last.
func noSessionError(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	last store.Session,
) error {
	controlEnded, err := endedByControl(ctx, tx, asset, last)
	if err != nil {
		return err
	}
	if controlEnded {
		return flex.Fail(
			flex.NotFound,
			"asset %v has no schedule: its control ended at %s, and no plug-out came since; once its site is enrolled, send %s again to have it planned",
			asset,
			last.PluggedOutAt.Format(time.RFC3339),
			PlugIn,
		)
	}

	ever := flex.Span{
		From: time.Unix(0, 0),
		To:   tx.Now().Add(time.Second),
	}
	newest, err := tx.PastEvents(ctx, asset, ever, 1)
	if err != nil {
		return err
	}

	if len(newest) == 0 || newest[0].Kind != ownSchedule {
		return flex.Fail(
			flex.NotFound,
			"asset %v has no schedule: nothing is plugged in",
			asset,
		)
	}

	e := PastEvent{newest[0]}

	return flex.Fail(
		flex.NotFound,
		"asset %v has no schedule: its client plans it, and sent its own at %s%s",
		asset,
		e.At.Format(time.RFC3339),
		e.PauseText(),
	)
}

// endedByControl reports whether the asset's last session ended because control ended: its
// newest plug event is a plug-in, so that a car is plugged in as far as is known.
func endedByControl(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	last store.Session,
) (bool, error) {
	if last.Number == 0 {
		return false, nil
	}

	since := flex.Span{
		From: last.PluggedInAt,
		To:   tx.Now().Add(time.Second),
	}
	events, err := tx.PastEvents(ctx, asset, since, recentEvents)
	if err != nil {
		return false, err
	}

	controlEnded := false // also false if its events were deleted
	for _, e := range events {
		switch e.Kind {
		case string(PlugIn):
			controlEnded = true
		case string(PlugOut), ownSchedule:
			controlEnded = false
		}
	}

	return controlEnded, nil
}

// Explanation explains the schedule in force. It fails as Schedule does.
func (s *Service) Explanation(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) (Explanation, error) {
	var x Explanation
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, asset)
		if err != nil {
			return err
		}

		if c.Asset.Type.Heats() {
			x, err = heaterExplanation(ctx, tx, c)
			return err
		}

		current, err := inForceOf(ctx, tx, &c)
		if err != nil {
			return err
		}

		x, err = explanation(ctx, tx, current, &c.Asset)

		return err
	})

	return x, err
}

// explanation reads the inputs of a schedule, and explains it.
func explanation(
	ctx context.Context,
	tx *store.Tx,
	s InForce,
	a *flex.Asset,
) (Explanation, error) {
	ps, err := tx.Curve(ctx, s.Curve)
	if err != nil {
		return Explanation{}, err
	}

	s.From.Phases = flex.PhasesOf(a.Phases, a.Power)
	s.From.Phase = a.Phase
	b, err := tx.Binding(ctx, s.EventID)
	if err != nil {
		return Explanation{}, err
	}

	caps := bindingCaps(b.Caps)
	if err := nameLimits(ctx, tx, caps, s.Steps[0].From); err != nil {
		return Explanation{}, err
	}

	x := explain(s, ps, b, caps)
	x.Reported, err = lastReport(ctx, tx, s.EventID)

	return x, err
}

// explain plans again from a schedule's inputs.
func explain(
	s InForce,
	ps []flex.PricedPeriod,
	b store.Binding,
	caps []BindingCap,
) Explanation {
	from := s.Steps[0].From
	problem := problemOf(s.From, from, ps)
	end := flex.Later(s.From.ReadyBy, s.From.ChargeNow.To)
	problem = withLimits(
		problem,
		&s.From,
		stepsWithin(b.Limits, flex.Span{From: from, To: end}),
	)

	tail := stepsWithin(b.Limits, flex.Span{From: flex.Later(from, end), To: s.End()})
	// steps after its end: it was made for a main fuse
	problem.Exact = problem.Exact || len(tail) > 0
	x := Explanation{
		InForce: s,
		Plan:    charge.Solve(problem),
		Inputs:  inputsOf(&s.Schedule),
		Limits:  b.Limits,
		Caps:    caps,
	}

	x.Plan.Shortfall = max(
		0,
		x.Plan.Shortfall-
			max(0, problem.Need-max(0, s.From.Need-s.From.Delivered)),
	)

	x.Exact = sameAhead(s.Steps, slices.Concat(x.Plan.Steps, tail), from)
	x.addDecisions(problem)
	x.Summary = summary(&x)

	return x
}

// addDecisions adds what was decided outside the asset's own plan: discharging, the battery of
// its site, a probe, its ramp, and its main fuse.
func (x *Explanation) addDecisions(problem charge.Problem) {
	x.addDischarge()
	x.addBatteryReasons()
	x.addProbeReason(&problem)
	x.addRampReasons()
	x.addFuseReasons()
	x.addFuseGain(problem)
	x.addShortReasons(problem)
}

// inputsOf returns the inputs of a schedule.
func inputsOf(s *store.Schedule) []Input {
	e, o := s.From, originsOf(s.From.Origins)
	zone := zoneOf(e.Tariff)
	list := intentInputs(&e, o.intent, zone)
	list = append(
		list,
		rateInputs(e, o, Input{
			Name:   "power_kw",
			Value:  kw(e.Power),
			Origin: o.power,
		})...,
	)

	if e.Delivered > 0 {
		list = append(list, Input{
			Name:   "delivered_kwh",
			Value:  kwh(e.Delivered),
			Origin: "readings, else the plan",
		})
	}

	offPeak := e.Tariff.OffPeak
	if offPeak == "" {
		offPeak = "all day"
	}

	list = append(
		list,
		Input{
			Name:   "off_peak_times",
			Value:  offPeak,
			Origin: o.tariff,
		},
		Input{
			Name:   "timezone",
			Value:  zone.String(),
			Origin: o.tariff,
		},
	)

	if !e.ChargeNow.Empty() {
		list = append(list, Input{
			Name:   "charge_now_until",
			Value:  e.ChargeNow.To.In(zone).Format(time.RFC3339),
			Origin: fromEvent,
		})
	}

	if e.Mode != flex.Minimise {
		list = append(list, Input{
			Name:   "pause_above_gbp_per_mwh",
			Value:  strconv.FormatFloat(PauseAbove.GBPPerMWh(), 'f', -1, 64),
			Origin: fromDefault,
		})
	}

	return append(list, rampInputs(&e)...)
}

// intentInputs returns the inputs of the intent.
func intentInputs(
	e *store.PlanInputs,
	origin string,
	zone *time.Location,
) []Input {
	return []Input{
		{Name: "energy_required_kwh", Value: kwh(e.Need), Origin: origin},
		{Name: "ready_by", Value: e.ReadyBy.In(zone).Format(time.RFC3339), Origin: origin},
		{Name: "charging_mode", Value: string(e.Mode), Origin: origin},
		{Name: "may_charge_peak", Value: strconv.FormatBool(e.MayChargePeak), Origin: origin},
	}
}

func zoneOf(t flex.Tariff) *time.Location {
	if z, err := tariff.Zone(t.Zone); err == nil {
		return z
	}
	return flex.London
}

// Sessions returns a page of the asset's plug sessions, newest first, and their total number.
func (s *Service) Sessions(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
	limit, offset int,
) ([]store.Session, int, error) {
	var (
		page  []store.Session
		total int
	)

	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Asset(ctx, asset); err != nil {
			return err
		}

		var err error
		page, total, err = tx.Sessions(ctx, asset, limit, offset)
		return err
	})

	return page, total, err
}

// Intent returns the asset's last intent, with the deadline both as a time of day and as an
// instant. It is NotFound if none was sent, and for another organisation's asset.
func (s *Service) Intent(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) (flex.Intent, error) {
	var in flex.Intent
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, asset)
		if err != nil && flex.KindOf(err) != flex.NotFound {
			return err
		}
		if c.Intent == nil {
			return flex.Fail(
				flex.NotFound,
				"intent not found or not authorized",
			)
		}

		in = *c.Intent
		t, _ := tariffOf(&c)
		zone := zoneOf(t)
		in.ReadyByLocal = new(wallOf(in, zone))

		// A household's page and an operator set only a time of day.
		if in.ReadyBy.IsZero() {
			in.ReadyBy = tariff.NextTimeOfDay(
				in.ReceivedAt,
				*in.ReadyByLocal,
				zone,
			)
		}

		return nil
	})

	return in, err
}

// ExplanationOf explains any stored schedule, by the id of its push. A schedule of another
// organisation is NotFound.
func (s *Service) ExplanationOf(
	ctx context.Context,
	org flex.OrgID,
	id flex.EventID,
) (Explanation, error) {
	var x Explanation
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		x, err = explanationOf(ctx, tx, id)
		return err
	})

	return x, err
}

// explanationOf is ExplanationOf within a transaction.
func explanationOf(
	ctx context.Context,
	tx *store.Tx,
	id flex.EventID,
) (Explanation, error) {
	s, err := tx.Schedule(ctx, id)
	if err != nil {
		return Explanation{}, err
	}

	accepted, err := tx.Accepted(ctx, s.AssetID)
	if err != nil {
		return Explanation{}, err
	}

	a, err := tx.Asset(ctx, s.AssetID)
	if err != nil && flex.KindOf(err) != flex.NotFound { // removed since
		return Explanation{}, err
	}

	return explanation(ctx, tx, InForce{s, accepted}, &a)
}
