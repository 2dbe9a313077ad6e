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

// explain adds the cause of each line and the readings behind it.
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
			l.explainUncalculated()
		default:
			if err := l.explainSession(ctx, tx, terms); err != nil {
				return fmt.Errorf("explain transaction %s: %w", l.ID, err)
			}
		}

		l.verifyCalculation()
	}

	return nil
}

// explainPrices adds the role and the import time of each half-hour's price.
func (s *Statement) explainPrices(ctx context.Context, tx *store.Tx) error {
	var periods []*Period
	var ids []flex.PublicationID

	for i := range s.Lines {
		for k := range s.Lines[i].Periods {
			if p := &s.Lines[i].Periods[k]; !p.Publication.IsZero() {
				periods = append(periods, p)
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

	publications, err := tx.PublicationsByID(ctx, ids)
	for _, p := range periods {
		p.Role = roleOf(selection, p.Source, p.Start)
		p.Imported = publications[p.Publication].FetchedAt
	}

	return err
}

// explainUncalculated adds the cause of a line without a calculation.
func (l *Line) explainUncalculated() {
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

// verifyCalculation removes a calculation whose result is not the line's amount, and adds a note.
func (l *Line) verifyCalculation() {
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
	ownLines := s.linesByEvent()
	byMonth := map[ledger.Month][]MonthEvent{}

	for chunk := range slices.Chunk(ids, explainedMax) {
		settlements, err := lineSettlements(ctx, tx, chunk, lines, ownLines)
		if err != nil {
			return err
		}

		awaited, err := tx.EventsWait(ctx, slices.DeleteFunc(
			slices.Clone(chunk),
			func(id flex.FlexEventID) bool { return len(ownLines[id]) == 0 },
		))
		if err != nil {
			return err
		}

		for _, id := range chunk {
			e := explainedEvent{
				lines:       lines[id],
				settlements: settlementsOf(settlements, id),
			}

			for _, l := range ownLines[id] {
				e.explain(l, terms)
			}

			e.noteAwaitedReading(awaited[id], ownLines[id])
			if event, isNetted := e.monthEvent(); isNetted {
				m := ledger.MonthOf(e.lines[0].Settled)
				byMonth[m] = append(byMonth[m], event)
			}
		}
	}

	s.addMonths(s.months(all), byMonth, terms)

	return nil
}

// lineSettlements returns all settlements of the events of the statement's lines. For other events,
// which are only netted, it returns the settlements of their newest lines.
func lineSettlements(ctx context.Context, tx *store.Tx, ids []flex.FlexEventID, lines map[flex.FlexEventID][]ledger.Booked,
	ownLines map[flex.FlexEventID][]*Line) ([]store.PostedSettlement, error) {
	var own, others []flex.FlexEventID
	var runs []flex.RunID

	for _, id := range ids {
		if len(ownLines[id]) > 0 {
			own = append(own, id)
			continue
		}

		all := lines[id]
		others, runs = append(others, id), append(runs, all[len(all)-1].Cause.Run)
	}

	settlements, err := tx.PostedSettlements(ctx, own)
	if err != nil {
		return nil, err
	}

	otherSettlements, err := tx.PostedSettlementsBy(ctx, others, runs)

	return append(settlements, otherSettlements...), err
}

// linesOfEvents returns all lines by event, oldest first, and the events to explain: those of the
// statement's lines, and those of the months in which these are netted.
func (s *Statement) linesOfEvents(all []ledger.Booked) (map[flex.FlexEventID][]ledger.Booked, []flex.FlexEventID) {
	lines := map[flex.FlexEventID][]ledger.Booked{}
	known := map[flex.FlexEventID]bool{}
	months := s.months(all)

	var explained []flex.FlexEventID
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
			explained = append(explained, id)
		}
	}

	return lines, explained
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
	lines       []ledger.Booked
	settlements []store.PostedSettlement
}

// resultOf returns a run's result of the event, or nil.
func (e *explainedEvent) resultOf(run flex.RunID) *settle.Result {
	for i := range e.settlements {
		if e.settlements[i].Run == run {
			return e.settlements[i].Result
		}
	}

	return nil
}

// previousResult returns the result of the line before a given one, or nil.
func (e *explainedEvent) previousResult(id flex.TransactionID) *settle.Result {
	var r *settle.Result
	for _, t := range e.lines {
		if t.ID == id {
			break
		}
		r = e.resultOf(t.Cause.Run)
	}

	return r
}

func (e *explainedEvent) explain(l *Line, terms history) {
	r := e.resultOf(l.Transaction.Cause.Run)
	if r == nil {
		l.Cause = string(l.Kind)
		l.Note = "What it rests on is not kept any more."
		l.Calculation = nil
		return
	}

	l.Cause = eventText(r, l.Time)
	l.Provisional = !e.settlements[len(e.settlements)-1].Result.Final
	l.Label = r.Label
	l.addPeriods(r, e.previousResult(l.ID))
	l.noteAtCharger(r)

	l.calculate(r, terms)
}

// noteAwaitedReading adds a note to the event's newest line about the half-hour whose reading is
// awaited; a zero time means none.
func (e *explainedEvent) noteAwaitedReading(at time.Time, ownLines []*Line) {
	if len(ownLines) == 0 || !ownLines[len(ownLines)-1].Provisional {
		return
	}

	last := e.settlements[len(e.settlements)-1].Result
	ownLines[len(ownLines)-1].noteAwaited(at, last.Metering)
}

// noteAwaited adds a note about the half-hour and the meter whose reading a line waits for; a zero
// time means none.
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

// noteAtCharger adds a note about the part of a car meter's deviation that counts at the site's
// chargers.
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

	direction := "less"
	if other > 0 {
		direction = "more"
	}

	l.Note = fmt.Sprintf(
		"%s kWh %s than usual were read at your charger too, and count there.",
		kwhText(max(other, -other)),
		direction,
	)
}

// calculate adds the calculation of a line about an event.
func (l *Line) calculate(r *settle.Result, terms history) {
	c := l.Calculation
	c.Terms, c.Carried = r.Terms, r.Before
	c.Due, c.Error = r.Credit, r.StandardError()
	c.Others, c.Month = l.Netting, ledger.MonthOf(r.Day)

	if c.Terms == (settle.Terms{}) && r.Quality == settle.Insufficient {
		// nothing was paid under any terms
		c.Terms = terms.forDay(r.Day).settle
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

// addPeriods adds the half-hours of a result, each with the difference to the result of the previous
// line.
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

// flexIn returns an event's energy in a settlement period of a result, which may be nil.
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
	c.Terms = sessionTerms(terms.forDay(flex.DayAt(r.From)).settle.Rounding)
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

	boughtBack, err := totalBoughtBack(ctx, tx, &r, l.At)
	if err != nil {
		return err
	}

	sum = max(0, sum-other-boughtBack)
	l.Note = sessionNotes(other, boughtBack)

	if sum != total {
		l.Periods = nil
		l.Note = "Its half-hours are not shown: readings are kept for 462 days, or some came while it was worked out."
	}

	return nil
}

// sessionNotes describes the part of a session's energy that counts at the chargers, and the part
// that was bought back.
func sessionNotes(other, boughtBack flex.WattHours) string {
	var notes []string
	if other > 0 {
		notes = append(notes, fmt.Sprintf(
			"%s kWh were charged at your charger, and are credited there.",
			kwhText(other),
		))
	}

	if boughtBack > 0 {
		notes = append(notes, fmt.Sprintf(
			"%s kWh were bought back for what the car gave: they earn nothing.",
			kwhText(boughtBack),
		))
	}

	return strings.Join(notes, " ")
}

// sessionTerms returns the terms of a session, which is only credited by its rate.
func sessionTerms(r settle.Rounding) settle.Terms {
	return settle.Terms{
		Share:      settle.Whole,
		LossFactor: settle.Whole,
		PaidEarly:  settle.Whole,
		Rounding:   r,
	}
}
