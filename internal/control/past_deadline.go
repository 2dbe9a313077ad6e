package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// deadlinesMax is how many deadlines of a span are explained at most: the newest.
	deadlinesMax = 100
	// minNamedShortfall is the least energy for which a reason is named: less is due to
	// rounding.
	minNamedShortfall flex.WattHours = 50
)

// ShortCause is the cause of missing energy.
type ShortCause string

// The causes.
const (
	ShortLimits    ShortCause = "headroom"
	ShortOffPeak   ShortCause = "off_peak"
	ShortPower     ShortCause = "learned_power"
	ShortTime      ShortCause = "time"
	ShortDrawn     ShortCause = "drew_less"
	ShortUnplugged ShortCause = "unplugged_early"
)

// ShortReason is why a part of a need is missing.
type ShortReason struct {
	Cause  ShortCause
	Energy flex.WattHours
	Text   string // follows the energy in a sentence
}

// Deadline is a need whose deadline has passed, with what the last schedule for it promised,
// and the result.
type Deadline struct {
	EventID      flex.EventID
	Generation   int64
	PluggedInAt  time.Time
	PluggedOutAt time.Time // zero while the car is plugged in
	ReadyBy      time.Time
	Need         flex.WattHours
	Promised     flex.WattHours // including what counted as delivered before
	Missing      flex.WattHours // by the schedule and the plug-out; the reasons add up to it, except for rounding
	Reasons      []ShortReason
	// until the deadline or the plug-out; only given if readings cover all of that time
	Metered flex.Optional[flex.WattHours]
	Exact   bool // the plan that was computed again equals the schedule
}

// EndedAt is the deadline, or the plug-out if that came first.
func (d *Deadline) EndedAt() time.Time {
	return deadlineEnd(d.ReadyBy, d.PluggedOutAt)
}

func deadlineEnd(readyBy, out time.Time) time.Time {
	if !out.IsZero() && out.Before(readyBy) {
		return out
	}

	return readyBy
}

// Text describes the need and the result in sentences.
func (d *Deadline) Text() string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"Of %s kWh asked for by %s schedule %d promised %s kWh",
		tenths(d.Need),
		flex.Clock(d.ReadyBy, flex.London, "Mon 2 Jan, 15:04"),
		d.Generation,
		tenths(d.Promised),
	)

	if d.Missing >= minNamedShortfall {
		fmt.Fprintf(&b, "; %s kWh were missing", tenths(d.Missing))
	}

	for i, r := range d.Reasons {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		fmt.Fprintf(&b, "%s%s kWh %s", separator, tenths(r.Energy), r.Text)
	}

	if d.Metered.Given {
		fmt.Fprintf(&b, ". Metered were %s kWh", tenths(d.Metered.Value))
	} else {
		b.WriteString(". What it took is not known: there are not readings of all that time")
	}

	return b.String() + "."
}

// tenths formats an energy in kWh with at most one decimal.
func tenths(e flex.WattHours) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", e.KWh()), ".0")
}

// explainChosen explains the requested schedule of the last session, or the newest.
func (p *Past) explainChosen(
	ctx context.Context,
	tx *store.Tx,
	chosen flex.EventID,
) error {
	generations := p.Generations()
	if len(generations) == 0 {
		return nil
	}

	p.Chosen = len(generations) - 1
	for i, g := range generations {
		if g.EventID == chosen {
			p.Chosen = i
		}
	}

	s := InForce{
		generations[p.Chosen].Schedule,
		p.Accepted,
	}
	x, err := explanation(ctx, tx, s, &p.Asset)
	p.Why = &x

	return err
}

// explainDeadlines explains the deadlines of the span that have passed. Each is explained by
// the last schedule that was made towards it: a deadline that was changed in time is none.
func (p *Past) explainDeadlines(ctx context.Context, tx *store.Tx) error {
	sessions := make(map[flex.SessionID]*store.Session, len(p.Sessions))
	for i := range p.Sessions {
		sessions[p.Sessions[i].ID] = &p.Sessions[i]
	}

	for i := len(p.Schedules) - 1; i >= 0 && len(p.Deadlines) < deadlinesMax; i-- {
		session := sessions[p.Schedules[i].SessionID]
		if session == nil || !p.lastTowards(i, session.PluggedOutAt) {
			continue
		}

		x, err := explanation(
			ctx,
			tx,
			InForce{p.Schedules[i].Schedule, p.Accepted},
			&p.Asset,
		)
		if err != nil {
			return err
		}

		d := p.deadline(i, session, &x)
		d.Metered, err = meteredTowards(ctx, tx, &p.Schedules[i].Schedule, session)
		if err != nil {
			return err
		}
		p.Deadlines = append(p.Deadlines, d)
	}

	slices.Reverse(p.Deadlines)

	return nil
}

// meteredTowards returns the energy that was metered towards the deadline of a schedule. It is
// given only if each half-hour is metered.
func meteredTowards(
	ctx context.Context,
	tx *store.Tx,
	s *store.Schedule,
	session *store.Session,
) (flex.Optional[flex.WattHours], error) {
	var none flex.Optional[flex.WattHours]
	within := countedWithin(&s.From, session)
	metered, err := meteredHalfHours(ctx, tx, s.AssetID, within)
	if err != nil {
		return none, err
	}

	if !coversAll(metered, within) {
		return none, nil
	}

	g := progress{metered: metered}

	return flex.Some(g.delivered(within)), nil
}

// lastTowards reports whether a schedule is the last one for a deadline that has passed, and
// some of the time until that deadline is in the span.
func (p *Past) lastTowards(i int, out time.Time) bool {
	s := &p.Schedules[i]
	e := &s.From
	if s.Cause == store.CauseFreed || e.Need <= 0 {
		return false
	}

	if !e.ReadyBy.After(s.MadeAt) {
		return false
	}

	end := deadlineEnd(e.ReadyBy, out)
	counts := flex.Span{From: e.CountFrom, To: end}
	if end.After(p.Now) || counts.Meet(p.Span).Empty() {
		return false
	}

	if i+1 == len(p.Schedules) {
		return true
	}

	next := &p.Schedules[i+1]

	return next.SessionID != s.SessionID || !next.MadeAt.Before(e.ReadyBy)
}

// deadline returns the result of the need that a schedule was made for.
func (p *Past) deadline(
	i int,
	session *store.Session,
	x *Explanation,
) Deadline {
	s := &p.Schedules[i]
	e := &s.From

	d := Deadline{
		EventID:      s.EventID,
		Generation:   s.Generation,
		PluggedInAt:  session.PluggedInAt,
		PluggedOutAt: session.PluggedOutAt,
		ReadyBy:      e.ReadyBy,
		Need:         e.Need,
		Missing:      x.Plan.Shortfall,
		Exact:        x.Exact,
	}

	begin := s.Steps[0].From
	d.Promised = e.Delivered + energyOfDraws(s.Draws(flex.Span{From: begin, To: e.ReadyBy}))
	d.Reasons = p.splitTimeReason(i, session, x.shortReasons)

	if end := d.EndedAt(); end.Before(e.ReadyBy) {
		had := d.Promised - energyOfDraws(s.Draws(flex.Span{From: flex.Later(begin, end), To: e.ReadyBy}))
		d.addUnplugged(min(d.Need, d.Promised) - had)
	}

	return d
}

// addUnplugged adds the energy that the schedule was still to charge when the car was
// unplugged.
func (d *Deadline) addUnplugged(missed flex.WattHours) {
	if missed < minNamedShortfall {
		return
	}

	d.Missing += missed
	d.Reasons = append(d.Reasons, ShortReason{
		ShortUnplugged,
		missed,
		"as it was unplugged at " + flex.Clock(d.PluggedOutAt, flex.London, "15:04"),
	})
}

// splitTimeReason splits the energy that is missing for lack of time: the part that a car drew
// less than earlier schedules allowed is named separately.
func (p *Past) splitTimeReason(
	i int,
	session *store.Session,
	short []ShortReason,
) []ShortReason {
	var reasons []ShortReason
	for _, r := range short {
		if r.Cause != ShortTime {
			reasons = append(reasons, r)
			continue
		}

		behind := min(r.Energy, p.drawnBelowPlan(i))
		if behind >= minNamedShortfall {
			reasons = append(reasons, ShortReason{
				ShortDrawn,
				behind,
				"as it took less than earlier schedules allowed, by its readings, or its client had not accepted them",
			})
			r.Energy -= behind
		}

		if r.Energy >= minNamedShortfall {
			r.Text += ", plugged in at " + flex.Clock(session.PluggedInAt, flex.London, "15:04 on Monday")
			reasons = append(reasons, r)
		}
	}

	return reasons
}

// drawnBelowPlan is by how much less counted as delivered when a schedule was made than the
// session's earlier schedules allowed. It is zero for a car that discharges, whose balance is
// a different one.
func (p *Past) drawnBelowPlan(i int) flex.WattHours {
	s := &p.Schedules[i]
	if s.From.Discharge != nil {
		return 0
	}

	until := s.Steps[0].From
	var allowed flex.WattHours
	for j := i - 1; j >= 0 && p.Schedules[j].SessionID == s.SessionID; j-- {
		before := &p.Schedules[j]
		force := flex.Span{
			From: flex.Later(before.Steps[0].From, s.From.CountFrom),
			To:   until,
		}
		if !force.Empty() {
			allowed += energyOfDraws(before.Draws(force))
		}

		until = before.Steps[0].From
	}

	return max(0, allowed-s.From.Delivered)
}

// energyOfDraws returns the energy of constant powers.
func energyOfDraws(draws []Draw) flex.WattHours {
	kilowattHours := 0.0
	for _, d := range draws {
		kilowattHours += d.KW * d.Len().Hours()
	}

	return flex.FromKWh(kilowattHours)
}

// addShortReasons divides the shortfall among its causes. It removes each constraint of the
// plan in turn, in addition to those before it, and attributes to it the energy that the plan
// then gains. What no removal gains is missing for lack of time.
func (x *Explanation) addShortReasons(p charge.Problem) {
	rest := x.Plan.Shortfall
	if rest <= 0 {
		return
	}

	// without the part of the need that compensates for late starts
	p.Need = max(0, x.From.Need-x.From.Delivered)
	shortfall := charge.Solve(p).Shortfall
	attribute := func(cause ShortCause, text string) {
		remaining := charge.Solve(p).Shortfall
		gain := min(rest, max(0, shortfall-remaining))
		shortfall = remaining
		if gain < minNamedShortfall {
			return
		}

		rest -= gain
		x.shortReasons = append(x.shortReasons, ShortReason{cause, gain, text})
	}

	if len(p.Limits) > 0 {
		p.Limits = nil
		attribute(ShortLimits, x.limitsText())
	}

	if !p.MayChargePeak {
		p.MayChargePeak = true
		attribute(ShortOffPeak, "as only off-peak hours were permitted")
	}

	if l := x.From.Learned; l != nil && l.Nominal > p.Power {
		text := fmt.Sprintf("as it draws %s kW, not its nominal %s kW", kw(p.Power), kw(l.Nominal))
		p.Power = l.Nominal
		attribute(ShortPower, text)
	}

	if rest >= minNamedShortfall {
		x.shortReasons = append(x.shortReasons, ShortReason{ShortTime, rest, "as the time did not suffice"})
	}
}

// limitsText names the limit that left too little headroom.
func (x *Explanation) limitsText() string {
	if len(x.Caps) == 0 {
		return "as other limits left too little headroom"
	}

	return "as too little headroom was left under " + capName(x.Caps[0])
}
