package control

import (
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// powerLabels are the labels of readings that give what an asset drew.
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

// Took compares what the last session's schedules allowed with what was metered.
type Took struct {
	// as far as there are readings; zero if there are none
	Until            time.Time
	Allowed, Metered float64 // kWh
	// so much less was metered that something other than the schedule prevented charging
	Less bool
}

// Thresholds of Less: at least minDrawnEnergy was allowed, and less than the fraction
// minDrawnPart of it was metered.
const (
	minDrawnPart   = 0.5
	minDrawnEnergy = 0.5 // kWh
)

// Took compares what the last session's schedules allowed with what was metered, as far as
// there are readings.
func (p *Past) Took() Took {
	s := p.Charging.Session
	within := flex.Span{From: s.PluggedInAt, To: p.Now}

	if !s.PluggedOutAt.IsZero() {
		within.To = s.PluggedOutAt
	}

	var last time.Time
	var t Took
	for _, l := range p.Actual() { // the whole half-hour of the plug-in counts
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

	t.Less = t.Allowed >= minDrawnEnergy && t.Metered < minDrawnPart*t.Allowed

	return t
}

// Outcome is the need of a session that has ended, and what was metered until its deadline.
type Outcome struct {
	Need, Metered float64 // kWh
}

// Outcome returns the outcome of the last session. It is known once the session has ended and
// each half-hour is metered.
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

// countedWithin returns the time in which energy counts towards the deadline of a schedule:
// until the plug-out, if that came first.
func countedWithin(e *store.PlanInputs, s *store.Session) flex.Span {
	within := flex.Span{From: e.CountFrom, To: e.ReadyBy}
	if !e.CountFrom.After(s.PluggedInAt) { // the whole half-hour of the plug-in counts
		within.From = flex.PeriodAt(s.PluggedInAt).Start()
	}

	out := s.PluggedOutAt
	if !out.IsZero() && out.Before(e.ReadyBy) {
		within.To = flex.PeriodAt(out.Add(-1)).End()
	}

	return within
}
