package reward

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// explainedMax is the number of flex events whose settlements are read at a time.
const explainedMax = 256

// explain says of each line why it is, and from which readings.
func (s *Statement) explain(
	ctx context.Context,
	tx *store.Tx,
	all []ledger.Booked,
) error {
	terms, err := historyOf(ctx, tx)
	if err != nil {
		return err
	}

	if err := s.explainEvents(ctx, tx, all, terms); err != nil {
		return err
	}

	if err := s.explainPrices(ctx, tx); err != nil {
		return err
	}

	for i := range s.Lines {
		l := &s.Lines[i]
		switch c := l.Transaction.Cause; {
		case !c.FlexEvent.IsZero():
		case c.Session.IsZero():
			l.plain()
		default:
			if err := l.explainSession(ctx, tx, terms); err != nil {
				return fmt.Errorf("explain transaction %s: %w", l.ID, err)
			}
		}

		l.check()
	}

	return nil
}

// explainPrices says of each half-hour's price in which role it counts, and when it was imported.
func (s *Statement) explainPrices(ctx context.Context, tx *store.Tx) error {
	var priced []*Period
	var ids []flex.PublicationID

	for i := range s.Lines {
		for k := range s.Lines[i].Periods {
			if p := &s.Lines[i].Periods[k]; !p.Publication.IsZero() {
				priced = append(priced, p)
				ids = append(ids, p.Publication)
			}
		}
	}

	if len(ids) == 0 {
		return nil
	}

	selection, err := tx.PriceSelection(ctx)
	if err != nil {
		return err
	}

	published, err := tx.PublicationsByID(ctx, ids)
	for _, p := range priced {
		p.Role = roleOf(selection, p.Source, p.Start)
		p.Imported = published[p.Publication].FetchedAt
	}

	return err
}

// plain says why there is a line for which nothing was worked out.
func (l *Line) plain() {
	switch c := l.Transaction.Cause; {
	case !c.Follows.IsZero() && l.Amount < 0:
		l.Cause = "a withdrawal that had failed is requested again"
	case !c.Follows.IsZero():
		l.Cause = "a withdrawal was not paid, and is back in the balance"
	case l.Kind == ledger.Withdrawal:
		l.Cause = "withdrawn to the bank account"

	default:
		l.Cause = string(l.Kind)
		if c.Reason != "" {
			l.Cause += ": " + c.Reason
		}
	}
}

// check removes a line's calculation, and notes that, if it does not come to the line's amount.
func (l *Line) check() {
	if l.Calculation == nil || l.Calculation.Credit() == l.Amount {
		return
	}

	l.Calculation, l.Working = nil, nil
	l.Note = "This was worked out before all that it rests on was kept, so that it cannot be worked out again from here."
}

// explainEvents explains the lines about flex events, and fills in the months in which they are
// netted.
func (s *Statement) explainEvents(
	ctx context.Context,
	tx *store.Tx,
	all []ledger.Booked,
	terms history,
) error {
	lines, ids := s.linesOfEvents(all)
	shown := s.linesByEvent()
	netted := map[ledger.Month][]MonthEvent{}

	for chunk := range slices.Chunk(ids, explainedMax) {
		settled, err := settlementsBehind(ctx, tx, chunk, lines, shown)
		if err != nil {
			return err
		}

		waits, err := tx.EventsWait(ctx, slices.DeleteFunc(
			slices.Clone(chunk),
			func(id flex.FlexEventID) bool { return len(shown[id]) == 0 },
		))
		if err != nil {
			return err
		}

		for _, id := range chunk {
			e := explainedEvent{
				lines:   lines[id],
				settled: settlementsOf(settled, id),
			}

			for _, l := range shown[id] {
				e.explain(l, terms)
			}

			e.noteAwaited(waits[id], shown[id])
			if event, is := e.netted(); is {
				m := ledger.MonthOf(e.lines[0].Settled)
				netted[m] = append(netted[m], event)
			}
		}
	}

	s.addMonths(s.months(all), netted, terms)

	return nil
}

// settlementsBehind returns all settlements of the events of the statement's lines; of the others,
// which are only netted, those that their newest lines rest on.
func settlementsBehind(ctx context.Context, tx *store.Tx, ids []flex.FlexEventID, lines map[flex.FlexEventID][]ledger.Booked,
	shown map[flex.FlexEventID][]*Line) ([]store.PostedSettlement, error) {
	var own, others []flex.FlexEventID
	var runs []flex.RunID

	for _, id := range ids {
		if len(shown[id]) > 0 {
			own = append(own, id)
			continue
		}

		all := lines[id]
		others, runs = append(others, id), append(runs, all[len(all)-1].Cause.Run)
	}

	settled, err := tx.PostedSettlements(ctx, own)
	if err != nil {
		return nil, err
	}

	netted, err := tx.PostedSettlementsBy(ctx, others, runs)

	return append(settled, netted...), err
}

// linesOfEvents returns all lines by event, oldest first, and the events that are to be
// explained: those of the statement's lines, and of the months in which these are netted.
func (s *Statement) linesOfEvents(all []ledger.Booked) (map[flex.FlexEventID][]ledger.Booked, []flex.FlexEventID) {
	lines := map[flex.FlexEventID][]ledger.Booked{}
	known := map[flex.FlexEventID]bool{}
	months := s.months(all)

	var wanted []flex.FlexEventID
	for _, t := range all {
		id := t.Cause.FlexEvent
		if id.IsZero() {
			continue
		}

		lines[id] = append(lines[id], t)
		needed := !t.At.Before(s.From.Start()) ||
			slices.Contains(months, ledger.MonthOf(t.Settled))
		if needed && !known[id] {
			known[id] = true
			wanted = append(wanted, id)
		}
	}

	return lines, wanted
}

// linesByEvent returns the statement's own lines by event.
func (s *Statement) linesByEvent() map[flex.FlexEventID][]*Line {
	lines := map[flex.FlexEventID][]*Line{}
	for i := range s.Lines {
		id := s.Lines[i].Transaction.Cause.FlexEvent
		lines[id] = append(lines[id], &s.Lines[i])
	}

	return lines
}

// settlementsOf returns the settlements of one event.
func settlementsOf(
	all []store.PostedSettlement,
	id flex.FlexEventID,
) []store.PostedSettlement {
	var own []store.PostedSettlement
	for _, p := range all {
		if p.Event == id {
			own = append(own, p)
		}
	}

	return own
}

// explainedEvent is a flex event with all its lines and settlements, the newest last.
type explainedEvent struct {
	lines   []ledger.Booked
	settled []store.PostedSettlement
}

// by returns what a run made of the event, or nil.
func (e *explainedEvent) by(run flex.RunID) *settle.Result {
	for i := range e.settled {
		if e.settled[i].Run == run {
			return e.settled[i].Result
		}
	}

	return nil
}

// before returns the result that the line before a given one rests on, or nil.
func (e *explainedEvent) before(id flex.TransactionID) *settle.Result {
	var r *settle.Result
	for _, t := range e.lines {
		if t.ID == id {
			break
		}
		r = e.by(t.Cause.Run)
	}

	return r
}

func (e *explainedEvent) explain(l *Line, terms history) {
	r := e.by(l.Transaction.Cause.Run)
	if r == nil {
		l.Cause = string(l.Kind)
		l.Note = "What it rests on is not kept any more."
		l.Calculation = nil
		return
	}

	l.Cause = eventText(r, l.Time)
	l.Provisional = !e.settled[len(e.settled)-1].Result.Final
	l.Label = r.Label
	l.addPeriods(r, e.before(l.ID))
	l.noteAtCharger(r)

	l.workOut(r, terms)
}

// noteAwaited says on the event's newest line the reading of which half-hour it waits for;
// zero for none.
func (e *explainedEvent) noteAwaited(at time.Time, shown []*Line) {
	if len(shown) == 0 || !shown[len(shown)-1].Provisional {
		return
	}

	last := e.settled[len(e.settled)-1].Result
	shown[len(shown)-1].noteAwaited(at, last.Metering)
}

// noteAwaited says for which half-hour's reading a line waits, and of which meter; zero for none.
func (l *Line) noteAwaited(at time.Time, by settle.Metering) {
	if at.IsZero() {
		return
	}

	meter := "the device's own meter"
	if by == settle.Boundary {
		meter = "the home's meter"
	}

	l.Note = strings.TrimSpace(fmt.Sprintf(
		"%s It waits for the reading of %s for the half-hour from %s.",
		l.Note,
		meter,
		flex.Clock(at, flex.London, "2 January 2006, 15:04"),
	))
}

// noteAtCharger says how much of what a car's own meter deviated by counts at the site's chargers.
func (l *Line) noteAtCharger(r *settle.Result) {
	if r.Metering != settle.Asset {
		return
	}

	var other flex.WattHours
	for _, s := range r.Periods {
		if s.Known && s.Compared {
			other += s.Metered - s.Baseline - s.Deviation
		}
	}

	if other == 0 {
		return
	}

	word := "less"
	if other > 0 {
		word = "more"
	}

	l.Note = fmt.Sprintf(
		"%s kWh %s than usual were read at your charger too, and count there.",
		kwhText(max(other, -other)),
		word,
	)
}

// workOut says how a line about an event came to its amount.
func (l *Line) workOut(r *settle.Result, terms history) {
	c := l.Calculation
	c.Terms, c.Carried = r.Terms, r.Before
	c.Due, c.Error = r.Credit, r.StandardError()
	c.Others, c.Month = l.Netting, ledger.MonthOf(r.Day)

	if c.Terms == (settle.Terms{}) && r.Quality == settle.Insufficient {
		// nothing was to be paid, on whatever terms
		c.Terms = terms.on(r.Day).settle
	}

	if c.Terms == (settle.Terms{}) {
		l.Note = "The terms of then are not kept: they were not, when it was worked out."
		l.Calculation = nil
		return
	}

	for _, p := range l.Periods {
		c.Worth += p.Worth
	}

	l.Working = c.eventWorking(l.Amount)
	if r.Quality == settle.Insufficient {
		l.Working[0] = "There are too few similar days before to compare with, so that it is worth nothing."
	}
}

// addPeriods adds the half-hours of a result, each with the change against the result that the line
// before rests on.
func (l *Line) addPeriods(r, before *settle.Result) {
	for _, s := range r.Periods {
		p := Period{Start: r.Day.Period(s.Period).Start()}
		if len(r.Used) > 0 || r.Method == settle.Nominated {
			p.Baseline = &s.Baseline
		}

		if s.Read {
			p.Metered, p.Device = &s.Metered, s.Device
		}

		if s.Known && p.Baseline != nil {
			p.Flex, p.Error = &s.Flex, &s.Error
			p.Change = s.Flex
		}

		if paid := r.Quality != settle.Insufficient; paid && p.Flex != nil {
			p.Price, p.Worth = &s.Price, s.Revenue
			p.Source, p.Publication = s.Source, s.Publication
		}

		p.Change -= flexIn(before, s.Period)
		l.Periods = append(l.Periods, p)
	}
}

// flexIn is an event's part in a settlement period, by a result that may be nil.
func flexIn(r *settle.Result, period int) flex.WattHours {
	if r != nil {
		for _, s := range r.Periods {
			if s.Period == period {
				return s.Flex
			}
		}
	}

	return 0
}

// explainSession explains a line about a plug session.
func (l *Line) explainSession(
	ctx context.Context,
	tx *store.Tx,
	terms history,
) error {
	r, err := tx.SessionSettlement(ctx, l.Transaction.Cause.Session)
	if err != nil {
		return err
	}

	l.Provisional = !r.WaitsAt.IsZero()
	if l.Creditable == nil || l.Rate == nil {
		l.Calculation = nil
		return nil
	}

	c := l.Calculation
	total := c.Counted + *l.Creditable
	c.Rate = settle.Rate(*l.Rate)
	c.Terms = wholeTerms(terms.on(flex.DayAt(r.From)).settle.Rounding)
	c.Due = c.Rate.Credit(total, c.Rounding)
	l.Cause = fmt.Sprintf(
		"charged %s kWh, which earns you %s p a kWh, %s",
		kwhText(*l.Creditable),
		rateText(c.Rate),
		spanText(l.Time),
	)

	l.Working = c.sessionWorking(*l.Creditable, l.Amount)
	err = l.addSessionPeriods(ctx, tx, r, total)
	l.noteAwaited(r.WaitsAt, settle.Asset)

	return err
}

// addSessionPeriods adds the half-hours of a session as they were known when the line was posted.
func (l *Line) addSessionPeriods(
	ctx context.Context,
	tx *store.Tx,
	r store.SessionSettlement,
	total flex.WattHours,
) error {
	periods, days, err := sessionReadings(ctx, tx, r, l.At)
	if err != nil {
		return err
	}

	others, err := countedAtChargers(ctx, tx, &r, days, l.At)
	if err != nil {
		return err
	}

	var sum, other flex.WattHours
	for _, p := range periods {
		other += others[p]
		line := Period{Start: p.Start()}
		if e, known := energyIn(days, p); known {
			line.Metered = &e
			line.Device = r.AssetID
			sum += e
		}

		l.Periods = append(l.Periods, line)
	}

	back, err := allBoughtBack(ctx, tx, &r, l.At)
	if err != nil {
		return err
	}

	sum = max(0, sum-other-back)
	l.Note = sessionNotes(other, back)

	if sum != total {
		l.Periods = nil
		l.Note = "Its half-hours are not shown: readings are kept for 462 days, or some came while it was worked out."
	}

	return nil
}

// sessionNotes say what of a session's energy counts at the chargers, and what was bought back.
func sessionNotes(other, back flex.WattHours) string {
	var notes []string
	if other > 0 {
		notes = append(notes, fmt.Sprintf(
			"%s kWh were charged at your charger, and are credited there.",
			kwhText(other),
		))
	}

	if back > 0 {
		notes = append(notes, fmt.Sprintf(
			"%s kWh were bought back for what the car gave: they earn nothing.",
			kwhText(back),
		))
	}

	return strings.Join(notes, " ")
}

// wholeTerms are those of a session: it is credited by its rate alone.
func wholeTerms(r settle.Rounding) settle.Terms {
	return settle.Terms{
		Share:      settle.Whole,
		LossFactor: settle.Whole,
		PaidEarly:  settle.Whole,
		Rounding:   r,
	}
}
