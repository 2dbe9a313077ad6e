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
	// deadlinesMax is how many deadlines of a span are explained, the newest of them.
	deadlinesMax = 100
	// shortNamed is the energy from which a reason why some is missing is named: less is
	// rounding.
	shortNamed flex.WattHours = 50
)

// ShortCause is why energy is missing, as a word.
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

// Deadline is what was asked for by a time that has passed, what the last schedule towards it
// promised, and what came of it.
type Deadline struct {
	EventID      flex.EventID
	Generation   int64
	PluggedInAt  time.Time
	PluggedOutAt time.Time // zero while the car is plugged in
	ReadyBy      time.Time
	Need         flex.WattHours
	Promised     flex.WattHours // with what counted as delivered before
	Missing      flex.WattHours // by the schedule and the plug-out; the reasons add up to it, but for rounding
	Reasons      []ShortReason
	// until the deadline or the plug-out; not given unless readings cover all of that time
	Metered flex.Optional[flex.WattHours]
	Exact   bool // the plan worked out again is the schedule
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

// Text says in a sentence what became of the need.
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

	if d.Missing >= shortNamed {
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

// tenths is an energy in kWh to a tenth.
func tenths(e flex.WattHours) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", e.KWh()), ".0")
}

// explainChosen explains the schedule of the last session that is asked for, or its newest.
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

// meteredTowards is what was metered towards the deadline of a schedule. It is given once each
// half-hour is metered.
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

	for q := flex.PeriodAt(within.From); q.Start().Before(within.To); q = q.Add(1) {
		if _, known := metered[q]; !known {
			return none, nil
		}
	}

	g := progress{metered: metered}

	return flex.Some(g.delivered(within)), nil
}

// lastTowards reports whether a schedule is the last towards a deadline that has passed, and
// to which a part of the span counts.
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

// deadline says what became of what a schedule was made for.
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
	d.Promised = e.Delivered + drawn(s.Draws(flex.Span{From: begin, To: e.ReadyBy}))
	d.Reasons = p.namedReasons(i, session, x.short)

	if end := d.EndedAt(); end.Before(e.ReadyBy) {
		had := d.Promised - drawn(s.Draws(flex.Span{From: flex.Later(begin, end), To: e.ReadyBy}))
		d.addUnplugged(min(d.Need, d.Promised) - had)
	}

	return d
}

// addUnplugged notes what the schedule was still to charge when the car was unplugged.
func (d *Deadline) addUnplugged(missed flex.WattHours) {
	if missed < shortNamed {
		return
	}

	d.Missing += missed
	d.Reasons = append(d.Reasons, ShortReason{
		ShortUnplugged,
		missed,
		"as it was unplugged at " + flex.Clock(d.PluggedOutAt, flex.London, "15:04"),
	})
}

// namedReasons divides what is missing for time's sake: a car that drew less than earlier
// schedules allowed left too much for the time that remained.
func (p *Past) namedReasons(
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

		behind := min(r.Energy, p.drewLess(i))
		if behind >= shortNamed {
			reasons = append(reasons, ShortReason{
				ShortDrawn,
				behind,
				"as it took less than earlier schedules allowed, by its readings, or its client had not accepted them",
			})
			r.Energy -= behind
		}

		if r.Energy >= shortNamed {
			r.Text += ", plugged in at " + flex.Clock(session.PluggedInAt, flex.London, "15:04 on Monday")
			reasons = append(reasons, r)
		}
	}

	return reasons
}

// drewLess is how much less counted as delivered when a schedule was made than the session's
// earlier ones allowed; zero for a car that discharges, whose balance is another.
func (p *Past) drewLess(i int) flex.WattHours {
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
			allowed += drawn(before.Draws(force))
		}

		until = before.Steps[0].From
	}

	return max(0, allowed-s.From.Delivered)
}

// drawn is the energy of constant powers.
func drawn(draws []Draw) flex.WattHours {
	kilowattHours := 0.0
	for _, d := range draws {
		kilowattHours += d.KW * d.Len().Hours()
	}

	return flex.FromKWh(kilowattHours)
}

// sayShort divides what is missing over what it is missing for: each thing that bound the plan
// is taken away in turn, beside those before it, and what no change brings is missing for want
// of time.
func (x *Explanation) sayShort(p charge.Problem) {
	rest := x.Plan.Shortfall
	if rest <= 0 {
		return
	}

	// without what the need has in it because cars start late
	p.Need = max(0, x.From.Need-x.From.Delivered)
	short := charge.Solve(p).Shortfall
	take := func(cause ShortCause, text string) {
		left := charge.Solve(p).Shortfall
		brings := min(rest, max(0, short-left))
		short = left
		if brings < shortNamed {
			return
		}

		rest -= brings
		x.short = append(x.short, ShortReason{cause, brings, text})
	}

	if len(p.Limits) > 0 {
		p.Limits = nil
		take(ShortLimits, x.limitsText())
	}

	if !p.MayChargePeak {
		p.MayChargePeak = true
		take(ShortOffPeak, "as only off-peak hours were permitted")
	}

	if l := x.From.Learned; l != nil && l.Nominal > p.Power {
		text := fmt.Sprintf("as it draws %s kW, not its nominal %s kW", kw(p.Power), kw(l.Nominal))
		p.Power = l.Nominal
		take(ShortPower, text)
	}

	if rest >= shortNamed {
		x.short = append(x.short, ShortReason{ShortTime, rest, "as the time did not suffice"})
	}
}

// limitsText says what left too little headroom.
func (x *Explanation) limitsText() string {
	if len(x.Caps) == 0 {
		return "as other limits left too little headroom"
	}

	return "as too little headroom was left under " + capName(x.Caps[0])
}
