package control

import (
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// powerLabels are the readings of an asset that say what it drew.
var powerLabels = []flex.Label{
	flex.ChargerEnergy,
	flex.BatteryInverterPower,
	flex.HeatPower,
}

// daysOf lists the days of London that a span touches.
func daysOf(span flex.Span) []flex.Day {
	var days []flex.Day
	for d := flex.DayAt(span.From); d.Start().Before(span.To); d = d.Add(1) {
		days = append(days, d)
	}

	return days
}

// Actual returns what was metered.
func (p *Past) Actual() []Draw {
	var draws []Draw
	for _, r := range p.Readings {
		hours := r.Len().Hours()
		if hours == 0 || !slices.Contains(powerLabels, r.Label) {
			continue
		}

		kilowatts := float64(r.Value) / 1e6
		if r.Label == flex.ChargerEnergy {
			kilowatts /= hours
		}

		draws = append(draws, Draw{r.Span, kilowatts})
	}

	return draws
}

// Took is what the last session's schedules allowed and what was metered of it.
type Took struct {
	// as far as there are readings; zero if there are none
	Until            time.Time
	Allowed, Metered float64 // kWh
	// so much less was metered that something after the schedule kept it from charging
	Less bool
}

// What a car draws of what it is allowed says whether the schedule or something after it kept
// it from charging: below the part, where the energy is enough to tell.
const (
	tookPart   = 0.5
	tookEnergy = 0.5 // kWh
)

// Took compares what the last session's schedules allowed with what was metered of it.
func (p *Past) Took() Took {
	s := p.Charging.Session
	within := flex.Span{From: s.PluggedInAt, To: p.Now}

	if !s.PluggedOutAt.IsZero() {
		within.To = s.PluggedOutAt
	}

	var last time.Time
	var t Took
	for _, l := range p.Actual() { // the half-hour of the plug-in is the session's as a whole
		if !l.Meet(within).Empty() {
			last = l.To
			t.Metered += l.KW * l.Len().Hours()
		}
	}

	if last.IsZero() {
		return t
	}

	within.To = slices.MinFunc([]time.Time{within.To, last}, time.Time.Compare)
	t.Until = within.To

	for _, l := range p.Planned() {
		if part := l.Meet(within); !part.Empty() {
			t.Allowed += l.KW * part.Len().Hours()
		}
	}

	t.Less = t.Allowed >= tookEnergy && t.Metered < tookPart*t.Allowed

	return t
}

// Outcome is what a session that has ended was to charge until its deadline, and what was
// metered until then.
type Outcome struct {
	Need, Metered float64 // kWh
}

// Outcome returns how the last session ended. It is known once the session has ended, and each
// half-hour is metered.
func (p *Past) Outcome() (o Outcome, known bool) {
	c := &p.Charging
	e := &c.Current.From
	if c.Open() || c.Current.Generation == 0 {
		return o, false
	}

	within := countedWithin(e, &c.Session)

	var covered time.Duration
	for _, l := range p.Actual() {
		if part := l.Meet(within); !part.Empty() {
			covered += part.Len()
			o.Metered += l.KW * part.Len().Hours()
		}
	}

	o.Need = e.Need.KWh()

	return o, covered > 0 && covered >= within.Len()
}

// countedWithin is when energy counts towards the deadline of a schedule of a session: until
// the plug-out, if that came first.
func countedWithin(e *store.PlanInputs, s *store.Session) flex.Span {
	within := flex.Span{From: e.CountFrom, To: e.ReadyBy}
	if !e.CountFrom.After(s.PluggedInAt) { // its half-hour is the session's as a whole
		within.From = flex.PeriodAt(s.PluggedInAt).Start()
	}

	out := s.PluggedOutAt
	if !out.IsZero() && out.Before(e.ReadyBy) {
		within.To = flex.PeriodAt(out.Add(-1)).End()
	}

	return within
}
