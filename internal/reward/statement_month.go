package reward

import (
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
)

// monthEvent returns the event by its newest line, and whether it is netted with others.
func (e *explainedEvent) monthEvent() (event MonthEvent, netted bool) {
	last := e.lines[len(e.lines)-1]
	event = MonthEvent{ID: last.Cause.FlexEvent, Span: last.Time}

	for _, t := range e.lines {
		event.Credited += t.Amount
		if t.Flex != nil {
			event.Flex += *t.Flex
		}
	}

	if r := e.resultOf(last.Cause.Run); r != nil {
		event.Gross, event.Error = r.Gross, r.StandardError()
		event.Share, event.Owed = r.Credit, r.Owed
		netted = r.Terms.ByMonth && !r.Terms.ClawBack
	}

	return event, netted
}

// addMonths nets the months. It adds those that the statement is about, and those that are carried
// into them.
func (s *Statement) addMonths(
	months []ledger.Month,
	events map[ledger.Month][]MonthEvent,
	terms history,
) {
	var days []settle.DayNetted
	for _, m := range months {
		slices.SortFunc(events[m], func(a, b MonthEvent) int {
			return a.Span.From.Compare(b.Span.From)
		})
		days = append(days, nettedDays(events[m], terms.certaintyOf(m))...)
	}

	until := s.To
	if today := flex.DayAt(s.MadeAt); compareDays(today, until) < 0 {
		until = today
	}

	first := s.firstMonth()
	s.Months = []Month{}

	for _, m := range settle.NetMonths(days, until) {
		month := ledger.MonthOf(m.First)
		n := len(s.Months)
		if n > 0 && s.Months[n-1].Carried == 0 && month.Before(first) {
			s.Months = s.Months[:0] // what it came to is done with
		}

		s.Months = append(s.Months, Month{
			Month:       month,
			MonthNetted: m,
			Events:      events[month],
		})
	}

	n := len(s.Months)
	if n > 0 && s.Months[n-1].Before(first) && s.Months[n-1].Carried == 0 {
		s.Months = s.Months[:0]
	}
}

// firstMonth is the first month that the statement is about: that of its first day, or one
// before it that a line of it is about.
func (s *Statement) firstMonth() ledger.Month {
	first := ledger.MonthOf(s.From)
	for i := range s.Lines {
		l := &s.Lines[i]
		if l.Netting != nil && ledger.MonthOf(l.Settled).Before(first) {
			first = ledger.MonthOf(l.Settled)
		}
	}

	return first
}

// nettedDays adds up the events of a month by day; they are in order of time.
func nettedDays(
	events []MonthEvent,
	c settle.Certainty,
) []settle.DayNetted {
	var days []settle.DayNetted
	for _, e := range events {
		day := flex.DayAt(e.Span.From)
		if n := len(days); n == 0 || days[n-1].Day != day {
			days = append(days, settle.DayNetted{Day: day, Certainty: c})
		}

		days[len(days)-1].Add(e.Owed, e.Share, e.Error)
	}

	return days
}

// Note describes in plain words what happened to the month's sum.
func (m *Month) Note() string {
	name := monthName(m.Month)
	text := fmt.Sprintf("The events of %s come to %d p", name, m.Early)
	if m.CarriedIn != 0 {
		text += fmt.Sprintf(", and %d p were carried into it", m.CarriedIn)
	}

	if m.Lapsed != 0 {
		text += fmt.Sprintf(
			", of which %d p lapsed, as they were never certain enough in all the months for which they were carried",
			m.Lapsed,
		)
	}

	if !m.HasEvents {
		return fmt.Sprintf("%s. %d p are carried on.", text, m.CarriedOut)
	}

	if m.Certainty.Errors == 0 {
		return fmt.Sprintf(
			"%s. %d p are credited, and %d p below nothing are not taken.",
			text,
			m.Credited,
			m.Dropped,
		)
	}

	text += fmt.Sprintf(
		". Their standard error is %s, and what is above %s times that, %s, is credited",
		m.Error,
		factorText(m.Certainty.Errors),
		m.Threshold,
	)

	if m.Credited > 0 {
		return fmt.Sprintf("%s: %d p.", text, m.Credited)
	}

	return fmt.Sprintf(
		"%s: not yet. %d p are carried on, for %d months at most.",
		text,
		m.CarriedOut,
		m.Certainty.Months,
	)
}

func monthName(m ledger.Month) string {
	return time.Date(
		m.Year,
		m.Month,
		1,
		12,
		0,
		0,
		0,
		time.UTC,
	).Format("January 2006")
}
