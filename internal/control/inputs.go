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

// What is assumed where nothing was given.
const (
	// DefaultDuration at full power is what a car needs whose user never said, unless the
	// organisation has set an energy.
	DefaultDuration = 4 * time.Hour
	// DefaultReadyBy is when it is needed.
	DefaultReadyBy = flex.WallTime(7 * time.Hour)
)

// PauseAbove is the market price above which a maximising plan gives an off-peak period up,
// if the need is met without it: £400/MWh, well above what the peak costs a household.
const PauseAbove flex.Price = 400e6

// Where an input came from.
const (
	fromEvent        = "event"        // an event of the asset
	fromAsset        = "asset"        // the asset's record
	fromSite         = "site"         // the site's record
	fromHousehold    = "household"    // it is away
	fromOrganisation = "organisation" // the organisation's settings
	fromDefault      = "default"      // flexd's own
)

// withHome is the word of the origins of a plan that was made with the batteries of its site. What
// follows it says what such a plan lacks.
const withHome = "home"

// originsWithHome has origins say that.
func originsWithHome(origins string, l lack) string {
	origins, _, _ = strings.Cut(origins, " "+withHome)
	return strings.TrimRight(origins+" "+withHome+" "+l.words(), " ")
}

// plannedAsOne reports whether inputs are those of a plan that was made so.
func plannedAsOne(e *store.PlanInputs) bool {
	return strings.Contains(e.Origins, " "+withHome)
}

// origins say where the intent, the power and the tariff of a plan came from.
type origins struct{ intent, power, tariff string }

func (o origins) String() string {
	return strings.Join([]string{o.intent, o.power, o.tariff}, " ")
}

func originsOf(s string) origins {
	f := append(strings.Fields(s), "", "", "")
	return origins{f[0], f[1], f[2]}
}

// effective works out what a plan made at an instant is made from: what was given where it
// was given, else what is known of site and organisation, else a default. Ready-by is the
// first time after the instant at which the clocks of the tariff's zone show it.
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

	wall := wallAsked(c.Intent, zone)
	o.intent = setIntent(&e, c.Intent, settings)
	e.ReadyBy, e.CountFrom = tariff.NextTimeOfDay(from, wall, zone), from
	if whileAway(&e, c.Away, from) {
		o.intent = fromHousehold
	}

	if now := c.ChargeNow; now.To.After(from) {
		e.ChargeNow = flex.Span{
			From: now.From.Truncate(time.Second),
			To:   now.To.Add(time.Second - 1).Truncate(time.Second),
		}
	}

	if c.Open() {
		e.Closed = closedAhead(c.Current.From.Closed, from)
	}

	e.Origins = o.String()

	return e
}

// setIntent sets what is needed: as it was asked for, else the organisation's default, else so many
// hours at the asset's power. It returns where that is from.
func setIntent(
	e *store.PlanInputs,
	asked *flex.Intent,
	settings flex.OrgSettings,
) string {
	if asked != nil {
		e.Need, e.Mode = asked.Need, asked.Mode
		e.MayChargePeak = asked.MayChargePeak
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

// wallAsked is the wall time of the deadline: as asked for, else the default.
func wallAsked(asked *flex.Intent, zone *time.Location) flex.WallTime {
	if asked == nil {
		return DefaultReadyBy
	}
	return wallOf(*asked, zone)
}

// wallOf is the wall time of an intent's deadline, in whole seconds: as given, or else the
// time that ready_by shows in the zone, whatever its date.
func wallOf(in flex.Intent, zone *time.Location) flex.WallTime {
	if in.ReadyByLocal != nil {
		return flex.WallTime(time.Duration(*in.ReadyByLocal).Truncate(time.Second))
	}
	h, m, s := in.ReadyBy.In(zone).Clock()

	return flex.WallTime(time.Duration(h)*time.Hour +
		time.Duration(m)*time.Minute + time.Duration(s)*time.Second)
}

// setRatedPower sets the power and the phases that an asset charges with, and returns where the power is from.
func setRatedPower(e *store.PlanInputs, c *store.PlanningState) string {
	var origin string
	e.Power, origin = powerOf(c)
	e.Phases = flex.PhasesOf(c.Asset.Phases, c.Asset.Power)
	e.Phase = c.Asset.Phase
	e.ProfilePhases = flex.ProfilePhases(c.Asset.Phases)
	return origin
}

// powerOf is the lower of what the car and the charger can do, as far as they are known.
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

// tariffOf is the asset's tariff, else the site's cheap hours, else none: then no hour is
// dearer than another by a tariff.
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

// problemOf is the planning problem that the inputs pose from an instant on, on the market's
// prices and with what the car is known to do.
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
	p = spreadOut(p, untilClosed(&e, from))
	p = lateStarts(&e, p)
	p = probed(p, &e)

	if len(e.Closed) > 0 {
		p, _ = instruct.CloseBeside(p, charge.Solve(p), e.Closed)
	}

	return p
}
