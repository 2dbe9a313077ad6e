package control

import (
	"fmt"
	"strings"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/tariff"
)

// Defaults for what was never given.
const (
	// DefaultDuration is for how long a car is assumed to charge at full power if its user
	// never gave a need, and the organisation has set no default energy.
	DefaultDuration = 4 * time.Hour
	// DefaultReadyBy is the time of day at which it is then to be ready.
	DefaultReadyBy = flex.WallTime(7 * time.Hour)
)

// PauseAbove is the market price above which a maximising plan pauses in an off-peak period,
// if the need is met without it: £400/MWh, well above what peak time costs a household.
const PauseAbove flex.Price = 400e6

// The origins of an input.
const (
	fromEvent        = "event"        // an event of the asset
	fromAsset        = "asset"        // the asset's record
	fromSite         = "site"         // the site's record
	fromHousehold    = "household"    // an absence of the household
	fromOrganisation = "organisation" // the organisation's settings
	fromDefault      = "default"      // flexd's own
)

// withHome is a word in the origins of a plan that was made as one with the batteries of its
// site. The words after it describe what such a plan lacks.
const withHome = "home"

// originsWithHome adds withHome, and what the plan lacks, to origins.
func originsWithHome(origins string, l planQuality) string {
	origins, _, _ = strings.Cut(origins, " "+withHome)
	return strings.TrimRight(origins+" "+withHome+" "+l.words(), " ")
}

// plannedAsOne reports whether a plan was made as one with the batteries of its site.
func plannedAsOne(e *store.PlanInputs) bool {
	return strings.Contains(e.Origins, " "+withHome)
}

// origins are where the intent, the power and the tariff of a plan came from.
type origins struct{ intent, power, tariff string }

func (o origins) String() string {
	return strings.Join([]string{o.intent, o.power, o.tariff}, " ")
}

func originsOf(s string) origins {
	f := append(strings.Fields(s), "", "", "")
	return origins{f[0], f[1], f[2]}
}

// effective returns the inputs of a plan made at an instant: as given by events, else from the
// records of the asset, site and organisation, else defaults. Ready-by is the first instant
// after from at which the clocks in the tariff's zone show its time of day.
func effective(
	c *store.PlanningState,
	settings flex.OrgSettings,
	from time.Time,
) store.PlanInputs {
	var e store.PlanInputs
	var o origins
	o.power = setRatedPower(&e, c)
	e.Tariff, o.tariff = tariffOf(c)
	zone := flex.London

	if z, err := tariff.Zone(e.Tariff.Zone); err == nil {
		zone = z
	}

	wall := requestedWall(c.Intent, zone)
	o.intent = setIntent(&e, c.Intent, settings)
	e.ReadyBy, e.CountFrom = tariff.NextTimeOfDay(from, wall, zone), from
	if applyAbsence(&e, c.Away, from) {
		o.intent = fromHousehold
	}

	if now := c.ChargeNow; now.To.After(from) {
		e.ChargeNow = flex.Span{
			From: now.From.Truncate(time.Second),
			To:   now.To.Add(time.Second - 1).Truncate(time.Second),
		}
	}

	if c.Open() {
		e.Closed = closedAfter(c.Current.From.Closed, from)
	}

	e.Origins = o.String()

	return e
}

// setIntent sets the need: as asked for, else the organisation's default, else DefaultDuration
// at the asset's power. It returns its origin.
func setIntent(
	e *store.PlanInputs,
	requested *flex.Intent,
	settings flex.OrgSettings,
) string {
	if requested != nil {
		e.Need, e.Mode = requested.Need, requested.Mode
		e.MayChargePeak = requested.MayChargePeak
		return fromEvent
	}

	e.Mode = flex.Maximise
	if settings.DefaultNeed > 0 {
		e.Need = settings.DefaultNeed
		return fromOrganisation
	}

	e.Need = e.Power.For(DefaultDuration)

	return fromDefault
}

// requestedWall returns the time of day of the deadline: as asked for, else the default.
func requestedWall(requested *flex.Intent, zone *time.Location) flex.WallTime {
	if requested == nil {
		return DefaultReadyBy
	}
	return wallOf(*requested, zone)
}

// wallOf returns the time of day of an intent's deadline, in whole seconds: the local time if
// it is given, else the one of ready_by in the zone, whatever its date.
func wallOf(in flex.Intent, zone *time.Location) flex.WallTime {
	if in.ReadyByLocal != nil {
		return flex.WallTime(time.Duration(*in.ReadyByLocal).Truncate(time.Second))
	}
	h, m, s := in.ReadyBy.In(zone).Clock()

	return flex.WallTime(time.Duration(h)*time.Hour +
		time.Duration(m)*time.Minute + time.Duration(s)*time.Second)
}

// setRatedPower sets the power and the phases with which an asset charges, and returns the
// origin of the power.
func setRatedPower(e *store.PlanInputs, c *store.PlanningState) string {
	var origin string
	e.Power, origin = powerOf(c)
	e.Phases = flex.PhasesOf(c.Asset.Phases, c.Asset.Power)
	e.Phase = c.Asset.Phase
	e.ProfilePhases = flex.ProfilePhases(c.Asset.Phases)
	return origin
}

// powerOf returns the lower of the powers of the car and the charger, as far as they are
// known, and its origin.
func powerOf(c *store.PlanningState) (flex.Watts, string) {
	car, own := c.Session.VehicleRate, flex.Watts(0)
	if c.Asset.Power != nil {
		own = *c.Asset.Power
	}

	if car > 0 && (own <= 0 || car < own) {
		return car, fromEvent
	}

	if own > 0 {
		return own, fromAsset
	}

	return flex.DefaultPower, fromDefault
}

// tariffOf returns the asset's tariff, else one from the site's cheap hours, else none, with
// which all hours are off-peak; and its origin.
func tariffOf(c *store.PlanningState) (flex.Tariff, string) {
	if c.Tariff != nil {
		return *c.Tariff, fromEvent
	}

	const minute = flex.WallTime(time.Minute)
	s := c.SiteTariff
	if s.CheapStart != nil && s.CheapEnd != nil &&
		*s.CheapStart/minute != *s.CheapEnd/minute {
		offPeak := fmt.Sprintf(
			"%.5s-%.5s",
			s.CheapStart.String(),
			s.CheapEnd.String(),
		)

		return flex.Tariff{
			OffPeak: offPeak,
			Zone:    flex.London.String(),
			Type:    s.Type,
		}, fromSite
	}

	return flex.Tariff{}, fromDefault
}

// problemOf returns the planning problem of some inputs from an instant on, at some prices,
// with what was learned about the car.
func problemOf(
	e store.PlanInputs,
	from time.Time,
	ps []flex.PricedPeriod,
) charge.Problem {
	p := e.Problem(from, e.Delivered)
	p.Least = flex.LeastPower(e.Phases)
	p.Prices = ps
	p.PauseAbove = PauseAbove
	p.Running = e.Running
	p.Exact = e.Learned != nil && e.Learned.Limited

	p.Need += allowance(&e, &p)
	p = applyRamp(p, rampUntilClosed(&e, from))
	p = lateStarts(&e, p)
	p = addProbe(p, &e)

	if len(e.Closed) > 0 {
		p, _ = instruct.CloseBeside(p, charge.Solve(p), e.Closed)
	}

	return p
}
