package grid

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// LearnedDays is the greatest number of days before a day that its forecast learns from.
const LearnedDays = 180

// Ahead is a forecast of a day for a scope: what its cars will draw, and by how much its cars
// and devices could draw less and more at least, each with several confidences.
type Ahead struct {
	At           time.Time // now, by the organisation's clock
	Scope        flex.Scope
	Day          flex.Day
	Length       int // of each window, in half-hours
	Days         int // that it was learned from
	Stays        int // plug sessions with a schedule in these days
	Uncontrolled int // plug sessions without one, which are not counted
	Batteries    int // home batteries with a plan on one of these days
	Heaters      int // tanks and heat pumps with a plan on one of them

	Windows []AheadWindow // none with fewer than forecast.FewDays days
	Judged  [3]forecast.Reliability
}

// AheadWindow is a window of a day. Powers are averages over it, by kind.
type AheadWindow struct {
	flex.Span
	// by kind and confidence: at least so much
	KW     [3][len(forecast.Confidences)]float64
	Actual *[3]float64 // what there was; nil while the day is not over
}

// Ahead forecasts a day in windows of length half-hours, from what was known at midnight
// before the day before it: up to tomorrow, and back to JudgedMax days ago, with what there
// was. A length that is not from 1 to 48, or longer than the day, and a day outside this range
// are Malformed; an unknown constraint group is NotFound.
func (s *Service) Ahead(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
	day flex.Day,
	length int,
) (*Ahead, error) {
	var a *Ahead
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		a, err = newAhead(tx.Now(), scope, day, length)
		if err != nil {
			return err
		}

		return a.learn(ctx, tx, nil)
	})

	return a, err
}

// learn makes the forecast from past plug sessions. Each of them is also given to again,
// unless that is nil.
func (a *Ahead) learn(
	ctx context.Context,
	tx *store.Tx,
	again *replay,
) error {
	if err := tx.CheckScope(ctx, a.Scope); err != nil {
		return err
	}

	l := &learning{
		a:       a,
		until:   a.until(),
		offPeak: map[flex.Tariff][]secondSpan{},
		replay:  again,
	}

	// A day that is over is compared with what there was. On any other day, assets that may
	// not be called can move nothing.
	over := !a.Day.Add(1).Start().After(a.At)
	if !over {
		spent, err := tx.SpentAssets(ctx, a.Day.Start())
		if err != nil {
			return err
		}

		l.spent = spent
	}

	// Sessions that began before the first day reach into it.
	began := flex.Span{
		From: a.Day.Add(-LearnedDays).Start().Add(-farthest),
		To:   l.until.Start(),
	}

	if err := tx.EachStay(ctx, a.Scope, began, l.add); err != nil {
		return err
	}

	learned := flex.Span{
		From: a.Day.Add(-LearnedDays).Start(),
		To:   l.until.Start(),
	}
	if err := l.readDevices(ctx, tx, a.Scope, learned, over); err != nil {
		return err
	}

	l.finish()

	return nil
}

// newAhead returns an empty forecast of a day; of tomorrow if day is zero.
func newAhead(
	now time.Time,
	scope flex.Scope,
	day flex.Day,
	length int,
) (*Ahead, error) {
	today := flex.DayAt(now)
	if day == (flex.Day{}) {
		day = today.Add(1)
	}

	first, last := today.Add(-forecast.JudgedMax), today.Add(1)
	if day.Start().Before(first.Start()) || last.Start().Before(day.Start()) {
		return nil, flex.Fail(
			flex.Malformed,
			"%s is not from %s to %s",
			day,
			first,
			last,
		)
	}

	most := min(forecast.Slots, day.Periods())
	if length < 1 || length > most {
		return nil, flex.Fail(
			flex.Malformed,
			"a window of %s has 1 to %d half-hours, and not %d",
			day,
			most,
			length,
		)
	}

	return &Ahead{
		At:     now,
		Scope:  scope,
		Day:    day,
		Length: length,
	}, nil
}

// until returns the day after the last one that is over and fully reported: the day after
// a.Day if that is over, else today.
func (a *Ahead) until() flex.Day {
	today := flex.DayAt(a.At)
	if next := a.Day.Add(1); next.Start().Before(today.Start()) {
		return next
	}

	return today
}

// learning counts plug sessions and devices into a history, which begins with the first of
// them.
type learning struct {
	a       *Ahead
	until   flex.Day
	history *forecast.FleetHistory
	offPeak map[flex.Tariff][]secondSpan // from the history's first day on
	begun   int64                        // seconds since 1970
	// gets each session too; nil for not used
	replay *replay
	// assets that no instruction may call on the day: their sessions are load that cannot be
	// moved
	spent map[flex.AssetID]bool
}

// add counts a session. Sessions come in the order of their beginning.
func (l *learning) add(p *store.Plugged) {
	if !p.Planned || p.Power <= 0 {
		l.a.Uncontrolled++
		return
	}

	if l.history == nil {
		l.begin(p.PluggedInAt)
	}

	l.a.Stays++
	free, asked := l.stays(p)
	if l.spent[p.AssetID] {
		l.addUnmoved(free)
		l.addUnmoved(asked)
		return
	}

	l.history.Add(free)
	l.history.Add(asked)
	if l.replay != nil {
		l.replay.add(free)
	}
}

// addUnmoved counts what a session draws as load that can be neither moved nor changed.
func (l *learning) addUnmoved(s *forecast.Stay) {
	for _, d := range s.Draws {
		l.history.Add(&forecast.Stay{
			Power: min(d.Limit, s.Power),
			Open:  []flex.Span{d.Span},
			Draws: []flex.Step{d},
		})
	}
}

// begin makes the history, from the day of a session on.
func (l *learning) begin(at time.Time) {
	first := flex.DayAt(at)
	earliest := l.a.Day.Add(-LearnedDays)
	if first.Start().Before(earliest.Start()) {
		first = earliest
	}

	l.begun = at.Unix()
	l.a.Days = max(
		0,
		int(l.until.Start().Sub(first.Start()).Round(24*time.Hour)/(24*time.Hour)),
	)

	l.history = forecast.NewFleetHistory(first, l.a.Days, l.a.Length)
}

// stays returns two parts of a session: what it drew by plan, with the times at which it could
// have drawn instead (free), and its charge-now, which could not be moved (asked).
func (l *learning) stays(p *store.Plugged) (free, asked *forecast.Stay) {
	free, asked = &forecast.Stay{Power: p.Power}, &forecast.Stay{Power: p.Power}
	here := pluggedTime(p)
	now := secondSpan{p.ChargeNow.From.Unix(), p.ChargeNow.To.Unix()}
	var drawn []secondSpan

	for _, d := range drawnBy(p) {
		s := secondSpan{d.From.Unix(), d.To.Unix()}.meet(here)
		with := s.meet(now)
		if with.length() == 0 {
			drawn = append(drawn, addDraw(free, s, d.Limit)...)
			continue
		}

		asked.Open = append(asked.Open, with.span())
		addDraw(asked, with, d.Limit)
		for _, rest := range [][2]int64{{s.from, with.from}, {with.to, s.to}} {
			drawn = append(
				drawn,
				addDraw(free, secondSpan{rest[0], rest[1]}, d.Limit)...,
			)
		}
	}

	here.to = min(here.to, p.ReadyBy.Unix())
	free.Open = l.open(p.Tariff, here, drawn)

	return free, asked
}

// pluggedTime returns when a session's asset was plugged in; until the end of its schedule if
// it still is.
func pluggedTime(p *store.Plugged) secondSpan {
	out := p.PluggedOutAt
	if out.IsZero() {
		out = p.Steps[len(p.Steps)-1].To
	}

	return secondSpan{p.PluggedInAt.Unix(), out.Unix()}
}

// addDraw has a part of a session draw for a time, and returns that time; nothing if it is
// empty.
func addDraw(
	of *forecast.Stay,
	s secondSpan,
	limit flex.Watts,
) []secondSpan {
	if s.length() == 0 {
		return nil
	}

	of.Draws = append(of.Draws, flex.Step{Span: s.span(), Limit: limit})

	return []secondSpan{s}
}

// drawnBy returns when a session drew: by its newest schedule, and before that, from its
// beginning on, the energy that had been delivered when the schedule was made.
func drawnBy(p *store.Plugged) []flex.Step {
	took := time.Duration(float64(p.Delivered) / float64(p.Power) * float64(time.Hour))
	before := flex.Span{
		From: p.PluggedInAt,
		To:   p.PluggedInAt.Add(took),
	}.Meet(flex.Span{
		From: p.PluggedInAt,
		To:   p.Steps[0].From,
	})

	var steps []flex.Step
	if !before.Empty() {
		steps = append(steps, flex.Step{Span: before, Limit: p.Power})
	}

	for _, s := range p.Steps {
		if s.Limit > 0 {
			steps = append(steps, s)
		}
	}

	return steps
}

// open returns when a session could have drawn: in off-peak hours of its time, and whenever it
// drew.
func (l *learning) open(
	t flex.Tariff,
	here secondSpan,
	drawn []secondSpan,
) []flex.Span {
	hours, known := l.offPeak[t]
	if !known {
		hours = offPeakHours(t, secondSpan{
			l.begun,
			l.until.Start().Add(farthest).Unix(),
		})

		l.offPeak[t] = hours
	}

	var all []secondSpan
	first, _ := slices.BinarySearchFunc(hours, here.from, func(s secondSpan, at int64) int {
		return cmp.Compare(s.to, at)
	})

	for _, s := range hours[first:] {
		if s.from >= here.to {
			break
		}

		all = append(all, s.meet(here))
	}

	var open []flex.Span
	for _, s := range inOrder(append(all, drawn...)) {
		open = append(open, s.span())
	}

	return open
}

// finish makes the forecast after all sessions and devices are counted.
func (l *learning) finish() {
	a := l.a
	if l.history == nil {
		return
	}

	var least [3][][len(forecast.Confidences)]float64
	for _, k := range forecast.Kinds {
		f := l.history.Ahead(k, a.Day, dayClass)
		least[k], a.Judged[k] = f.KW, f.Judged
	}

	if least[0] == nil {
		return
	}

	came := l.came()
	for n := 1; n <= a.Day.Periods()+1-a.Length; n++ {
		p := a.Day.Period(n)
		slot := forecast.SlotOf(p)
		if slot+a.Length > forecast.Slots {
			continue
		}

		w := AheadWindow{Span: flex.Span{
			From: p.Start(),
			To:   p.Add(a.Length).Start(),
		}}

		for k := range least {
			w.KW[k] = least[k][slot]
		}

		if came != nil {
			w.Actual = &[3]float64{came[0][slot], came[1][slot], came[2][slot]}
		}

		a.Windows = append(a.Windows, w)
	}
}

// came returns what there was on the day, by kind; nil while the day is not over.
func (l *learning) came() [][]float64 {
	if !l.a.Day.Start().Before(l.until.Start()) {
		return nil
	}

	var came [][]float64
	for _, k := range forecast.Kinds {
		came = append(came, l.history.Came(k, l.a.Day))
	}

	return came
}

// dayClass is 0 for a working day, 1 for a Saturday and 2 for a Sunday or bank holiday.
func dayClass(d flex.Day) int {
	if settle.Working(d) {
		return 0
	}

	if d.Weekday() == time.Saturday {
		return 1
	}

	return 2
}

// WriteCSV writes the windows as CSV: a row for each kind of each.
func (a *Ahead) WriteCSV(out io.Writer) error {
	w := csvfile.NewWriter(
		out,
		"start_timestamp",
		"end_timestamp",
		"kind",
		"p50_kw",
		"p80_kw",
		"p90_kw",
		"p95_kw",
		"p99_kw",
		"came_kw",
	)

	for _, r := range a.Windows {
		for _, k := range forecast.Kinds {
			var came any
			if r.Actual != nil {
				came = Round(r.Actual[k])
			}

			at := r.KW[k]
			w.Write(
				r.From,
				r.To,
				k.String(),
				Round(at[0]),
				Round(at[1]),
				Round(at[2]),
				Round(at[3]),
				Round(at[4]),
				came,
			)
		}
	}

	return w.Flush()
}

// Round rounds a power in kW to the watt, or a share to a thousandth.
func Round(v float64) float64 { return math.Round(v*1000) / 1000 }
