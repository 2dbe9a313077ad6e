package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/tariff"
)

// InForce is the schedule of a plugged-in asset.
type InForce struct {
	store.Schedule
	Accepted int64 // the newest generation of the asset's schedules that its client has taken; 0 for none
}

// Input is one input of a plan as it was used.
type Input struct {
	Name, Value string
	Origin      string // event, asset, site, organisation, default, readings, operator or plan
	Detail      string // what the origin says more; mostly nothing
}

// Explanation says why a schedule is as it is. It is worked out anew, from what the schedule
// was made from.
type Explanation struct {
	InForce
	Plan    charge.Plan
	Inputs  []Input
	Limits  []flex.Step  // the room that caps left; none if they left all that it could use
	Caps    []BindingCap // the caps that held the plan back, with the price of room under them
	Summary string
	Exact   bool // the plan worked out anew is the schedule, to the second

	more flex.WattHours // of what is missing, that one kW more of main fuse would bring
}

// BindingCap is a cap that held a plan back for a time.
type BindingCap struct {
	flex.Span
	Group  string     // empty for the fleet's cap
	Power  flex.Watts // the cap
	Price  flex.Price // of room under it; zero if it is not known
	Starts bool       // it was the starts per minute, not the power
	Home   flex.Watts // of a main fuse, the most that is kept for the home's own load; zero if that is not known
	Site   bool       // it was the main fuse of the asset's own site, not a cap of the fleet or a group
}

func bindingCaps(records []store.BindingCap) (caps []BindingCap) {
	for _, c := range records {
		caps = append(caps, BindingCap(c))
	}
	return caps
}

// Schedule returns the schedule in force for an asset that is plugged in. There is none, a
// NotFound failure, for one that is not, or that is not under control.
func (d *Service) Schedule(ctx context.Context, org flex.OrgID, asset flex.AssetID) (s InForce, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		s, err = inForce(ctx, tx, asset)
		return err
	})
	return s, err
}

func inForce(ctx context.Context, tx *store.Tx, asset flex.AssetID) (s InForce, err error) {
	c, err := tx.Charging(ctx, asset)
	switch {
	case err != nil:
		return s, err
	case !c.Asset.Type.Charges():
		return s, flex.Fail(flex.NotFound, "asset %v is a %s, which has no charging schedule", asset, c.Asset.Type)

	case !c.Open():
		return s, flex.Fail(flex.NotFound, "asset %v has no schedule: nothing is plugged in", asset)

	case c.Standing.Generation == 0 && c.Controlled:
		return s, flex.Fail(flex.NotFound, "asset %v has no schedule yet: what was plugged in before its site was enrolled is planned at its next event", asset)
	case c.Standing.Generation == 0:
		return s, flex.Fail(flex.NotFound, "asset %v has no schedule: its site is not enrolled in %s", asset, flex.FullAssetSchedule)
	}

	s.Schedule = c.Standing
	s.Accepted, err = tx.Accepted(ctx, asset)
	return s, err
}

// Explanation explains the schedule in force. It fails as Schedule does.
func (d *Service) Explanation(ctx context.Context, org flex.OrgID, asset flex.AssetID) (x Explanation, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		s, err := inForce(ctx, tx, asset)
		if err != nil {
			return err
		}

		x, err = explanation(ctx, tx, s)
		return err
	})
	return x, err
}

// explanation reads what a schedule was made from, and explains it.
func explanation(ctx context.Context, tx *store.Tx, s InForce) (x Explanation, err error) {
	ps, err := tx.Curve(ctx, s.Curve)
	if err != nil {
		return x, err
	}
	b, err := tx.Binding(ctx, s.EventID)
	return explain(s, ps, b), err
}

// explain works the plan of a schedule out anew.
func explain(s InForce, ps []flex.PricedPeriod, b store.Binding) Explanation {
	from := s.Steps[0].From
	problem := problemOf(s.From, from, ps)
	end := later(s.From.ReadyBy, s.From.ChargeNow.To)
	problem = limited(problem, &s.From, within(b.Limits, flex.Span{From: from, To: end}))
	tail := within(b.Limits, flex.Span{From: later(from, end), To: s.End()})
	problem.Exact = problem.Exact || len(tail) > 0 // it was made for a main fuse
	x := Explanation{InForce: s, Plan: charge.Solve(problem), Inputs: inputsOf(&s.Schedule), Limits: b.Limits, Caps: bindingCaps(b.Caps)}
	x.Plan.Shortfall = max(0, x.Plan.Shortfall-max(0, problem.Need-max(0, s.From.Need-s.From.Delivered)))
	x.Exact = sameAhead(s.Steps, slices.Concat(x.Plan.Steps, tail), from)
	x.sayRamp()
	x.sayMore(problem)
	x.Summary = summary(&x)

	return x
}

// inputsOf lists what a schedule was made from.
func inputsOf(s *store.Schedule) []Input {
	e, o := s.From, originsOf(s.From.Origins)
	zone := zoneOf(e.Tariff)
	list := intentInputs(&e, o.intent, zone)
	list = append(list, rateInputs(e, o, Input{Name: "power_kw", Value: kw(e.Power), Origin: o.power})...)

	if e.Delivered > 0 {
		list = append(list, Input{Name: "delivered_kwh", Value: kwh(e.Delivered), Origin: "readings, else the plan"})
	}

	offPeak := e.Tariff.OffPeak
	if offPeak == "" {
		offPeak = "all day"
	}

	list = append(list, Input{Name: "off_peak_times", Value: offPeak, Origin: o.tariff}, Input{Name: "timezone", Value: zone.String(), Origin: o.tariff})
	if !e.ChargeNow.Empty() {
		list = append(list, Input{Name: "charge_now_until", Value: e.ChargeNow.To.In(zone).Format(time.RFC3339), Origin: fromEvent})
	}

	if e.Mode != flex.Minimise {
		list = append(list, Input{Name: "pause_above_gbp_per_mwh", Value: strconv.FormatFloat(PauseAbove.GBPPerMWh(), 'f', -1, 64), Origin: fromDefault})
	}

	return append(list, rampInputs(&e)...)
}

// intentInputs lists what is asked for.
func intentInputs(e *store.Effective, origin string, zone *time.Location) []Input {
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

func kwh(e flex.WattHours) string { return strconv.FormatFloat(e.KWh(), 'f', -1, 64) }

// energy says in a sentence what the schedule gives, or why that is not enough.
func (x *Explanation) energy() string {
	p := &x.Plan
	if p.Shortfall <= 0 {
		return fmt.Sprintf("The schedule allows %s kWh. ", kwh(p.Energy))
	}
	if len(x.Caps) == 0 {
		return fmt.Sprintf("The time does not suffice: %s kWh will be missing. ", kwh(p.Shortfall))
	}
	s := fmt.Sprintf("There is not room enough under %s: %s kWh will be missing. ", capName(x.Caps[0]), kwh(p.Shortfall))
	if x.more > 0 {
		s += fmt.Sprintf("One kW more of main fuse would bring %s kWh of it. ", kwh(x.more))
	}
	return s
}

// summary says a schedule in a few sentences.
func summary(x *Explanation) string {
	e, zone := x.From, zoneOf(x.From.Tariff)
	var b strings.Builder
	if originsOf(e.Origins).intent == fromHousehold {
		b.WriteString("Nobody is at home, or tonight is skipped: nothing is asked for before that is over. ")
	}

	fmt.Fprintf(&b, "%s kWh are needed by %s", kwh(max(0, e.Need-e.Delivered)), onDay(e.ReadyBy, zone))

	if e.Delivered > 0 {
		fmt.Fprintf(&b, ", after %s kWh that were charged", kwh(e.Delivered))
	}

	b.WriteString(". ")

	if !e.ChargeNow.Empty() {
		fmt.Fprintf(&b, "Charging now was asked for, until %s. ", onDay(e.ChargeNow.To, zone))
	}

	offPeak := "All hours are off-peak"
	if e.Tariff.OffPeak != "" {
		offPeak = "Off-peak hours are " + e.Tariff.OffPeak
	}

	if fmt.Fprintf(&b, "%s; ", offPeak); e.Mode == flex.Minimise {
		b.WriteString("charging stops when the need is met. ")
	} else {
		b.WriteString("all of them are open, the need is the least. ")
	}

	b.WriteString(x.energy())
	b.WriteString(spreadSentence(e.Ramp))

	if x.Plan.HasThreshold && !x.Curve.IsZero() {
		fmt.Fprintf(&b, "Electricity at up to %s/MWh is bought. ", x.Plan.Threshold.Pounds())
	}

	for _, line := range x.HeldBack() {
		b.WriteString(line + " ")
	}

	return strings.TrimSpace(b.String())
}

// onDay is a time of day with its day, in the middle of a sentence.
func onDay(at time.Time, zone *time.Location) string {
	return flex.Clock(at, zone, "15:04 on Monday")
}

// HeldBack says in sentences which caps held the schedule back, when, and what more room
// would have been worth.
func (x *Explanation) HeldBack() (lines []string) {
	zone := zoneOf(x.From.Tariff)
	for _, c := range x.Caps {
		line := fmt.Sprintf("From %s to %s it is held back by %s", flex.Clock(c.From, zone, "Mon 15:04"), flex.Clock(c.To, zone, "Mon 15:04"), capName(c))
		if c.Price > 0 {
			line += fmt.Sprintf(", where room is worth %s/MWh", c.Price.Pounds())
		}
		lines = append(lines, line+".")
	}

	if plannedAsOne(&x.From) {
		return append(lines, lackOf(x.From.Origins).sentences()...)
	}

	if len(x.Caps) == 0 && len(x.Limits) > 0 {
		lines = append(lines, "It gives way to others under the same caps, or is held to what was traded, at no loss.")
	}

	return lines
}

// capName names a cap in a sentence.
func capName(c BindingCap) string {
	whose := "the fleet"
	if c.Group != "" {
		whose = "group " + c.Group
	}

	if c.Site {
		fuse := fmt.Sprintf("the main fuse, %s kW", kw(c.Power))
		if c.Home > 0 {
			fuse += fmt.Sprintf(", of which %s kW are kept for the home's own load", kw(c.Home))
		}
		return fuse
	}

	if c.Starts {
		return "the starts per minute of " + whose
	}

	return fmt.Sprintf("the cap of %s, %s kW", whose, strconv.FormatFloat(c.Power.KW(), 'f', -1, 64))
}

// Prose writes the explanation for a reader: the summary, then each stretch of periods with
// one reason, then the inputs.
func (x *Explanation) Prose() string {
	zone := zoneOf(x.From.Tariff)
	clock := func(t time.Time) string { return flex.Clock(t, zone, "Mon 15:04:05") }
	var b strings.Builder
	fmt.Fprintf(&b, "Schedule %d of asset %v, made %s because of: %s\n\n%s\n\n", x.Generation, x.AssetID, clock(x.MadeAt), x.Cause, x.Summary)

	for at := 0; at < len(x.Plan.Periods); {
		run := x.runAt(at)
		fmt.Fprintln(&b, proseOf(run, clock))
		at += len(run)
	}

	b.WriteByte('\n')

	for _, in := range x.Inputs {
		fmt.Fprintf(&b, "%s = %s (%s)\n", in.Name, in.Value, in.Source())
	}

	b.WriteString("\n" + x.accepted() + "\n")

	if !x.Exact {
		b.WriteString("This explanation was worked out anew and differs from the schedule, which was made by another version of flexd or whose prices are past their keeping.\n")
	}

	return b.String()
}

// runAt is the periods from one on that have its reason, and are off-peak or not as it is.
func (x *Explanation) runAt(at int) []charge.Period {
	first := x.Plan.Periods[at]
	to := at
	for to < len(x.Plan.Periods) && x.Plan.Periods[to].Reason == first.Reason && x.Plan.Periods[to].OffPeak == first.OffPeak {
		to++
	}
	return x.Plan.Periods[at:to]
}

// proseOf is a line of prose on periods that have one reason.
func proseOf(run []charge.Period, clock func(time.Time) string) string {
	first, last := run[0], run[len(run)-1]
	low, high := first.Price, first.Price
	energy := flex.WattHours(0)
	known := false

	for _, p := range run {
		energy += p.Energy
		low, high = min(low, p.Price), max(high, p.Price)
		known = known || p.Known
	}

	kind := "peak"
	if first.OffPeak {
		kind = "off-peak"
	}

	price := "no price known"
	switch {
	case known && low == high:
		price = low.Pounds() + "/MWh"
	case known:
		price = fmt.Sprintf("%s to %s/MWh", low.Pounds(), high.Pounds())
	}

	return fmt.Sprintf("%s to %s  %8s kWh  %-8s  %s: %s", clock(first.From), clock(last.To), kwh(energy), kind, price, first.Reason)
}

// accepted says what the client has accepted.
func (x *Explanation) accepted() string {
	switch {
	case x.Accepted >= x.Generation:
		return "The client has accepted this schedule."
	case x.Accepted > 0:
		return fmt.Sprintf("The client has last accepted schedule %d.", x.Accepted)
	}
	return "The client has accepted no schedule yet."
}

// Sessions returns a page of the asset's plug sessions, newest first, and how many there
// are in all.
func (d *Service) Sessions(ctx context.Context, org flex.OrgID, asset flex.AssetID, limit, offset int) (page []store.Session, total int, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Asset(ctx, asset); err != nil {
			return err
		}
		page, total, err = tx.Sessions(ctx, asset, limit, offset)
		return err
	})
	return page, total, err
}

// Intent returns the asset's last intent, with the wall time of its deadline filled in. One
// that was never sent is NotFound, the same as for another organisation's asset.
func (d *Service) Intent(ctx context.Context, org flex.OrgID, asset flex.AssetID) (in flex.Intent, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		c, err := tx.Charging(ctx, asset)
		if err != nil && flex.KindOf(err) != flex.NotFound {
			return err
		}
		if c.Intent == nil {
			return flex.Fail(flex.NotFound, "intent not found or not authorized")
		}

		in = *c.Intent
		t, _ := tariffOf(&c)
		in.ReadyByLocal = new(wallOf(in, zoneOf(t)))

		return nil
	})
	return in, err
}

// ExplanationOf explains any schedule that was ever committed, by the id of its push. One of
// another organisation is NotFound.
func (d *Service) ExplanationOf(ctx context.Context, org flex.OrgID, id flex.EventID) (x Explanation, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		x, err = explanationOf(ctx, tx, id)
		return err
	})
	return x, err
}

// explanationOf is ExplanationOf within a transaction.
func explanationOf(ctx context.Context, tx *store.Tx, id flex.EventID) (x Explanation, err error) {
	s, err := tx.Schedule(ctx, id)
	if err != nil {
		return x, err
	}

	accepted, err := tx.Accepted(ctx, s.AssetID)
	if err != nil {
		return x, err
	}

	return explanation(ctx, tx, InForce{s, accepted})
}
