package reward

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// Statement is what a site's user earned and withdrew in some London days, and why.
type Statement struct {
	From, To flex.Day // both included
	Opening  flex.Pence
	Closing  flex.Pence
	Lines    []Line // oldest first
}

// Line is one transaction with what it rests on.
type Line struct {
	store.Transaction
	Balance     flex.Pence // after it
	Cause       string     // in plain words
	Provisional bool       // it may still be followed by a top-up or a correction without anybody's mistake
	Periods     []Period
}

// Period is one settlement period behind a line; what does not apply or is not known is nil.
type Period struct {
	Start                   time.Time
	Baseline, Metered, Flex *flex.WattHours
}

// StatementDaysMax is the number of days that one statement covers.
const StatementDaysMax = 366

// Statement returns the site's statement from one day to another. The zero days stand for
// the current month so far.
func (d *Service) Statement(ctx context.Context, org flex.OrgID, site flex.SiteID, from, to flex.Day) (s Statement, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}
		if s.From, s.To, err = statementDays(from, to, flex.DayAt(tx.Now())); err != nil {
			return err
		}
		span := flex.Span{From: s.From.Start(), To: s.To.Add(1).Start()}
		ts, before, err := tx.TransactionsWithin(ctx, site, span)
		if err != nil {
			return err
		}
		s.Opening, s.Closing, s.Lines = before, before, nil
		for _, t := range ts {
			if t.Amount == 0 && !t.Cause.Follows.IsZero() {
				continue // a step of a withdrawal that moved no money of the user's
			}
			s.Closing += t.Amount
			line := Line{Transaction: t, Balance: s.Closing}
			if err := explain(ctx, tx, &line); err != nil {
				return fmt.Errorf("explain transaction %s: %w", t.ID, err)
			}
			s.Lines = append(s.Lines, line)
		}
		return nil
	})
	return s, err
}

func statementDays(from, to, today flex.Day) (flex.Day, flex.Day, error) {
	if to == (flex.Day{}) {
		to = today
	}
	if from == (flex.Day{}) {
		from = flex.Day{Year: to.Year, Month: to.Month, Dom: 1}
	}
	switch {
	case to.Start().Before(from.Start()):
		return from, to, flex.Fail(flex.Malformed, "the last day, %s, is before the first, %s", to, from)
	case from.Add(StatementDaysMax - 1).Start().Before(to.Start()):
		return from, to, flex.Fail(flex.Malformed, "from %s to %s are more than %d days", from, to, StatementDaysMax)
	}
	return from, to, nil
}

// explain says why a transaction is, and from which readings.
func explain(ctx context.Context, tx *store.Tx, l *Line) error {
	switch c := l.Transaction.Cause; {
	case !c.FlexEvent.IsZero():
		return explainEvent(ctx, tx, l)
	case !c.Session.IsZero():
		return explainSession(ctx, tx, l)
	case !c.Follows.IsZero():
		l.Cause = "a withdrawal was not paid, and is back in the balance"
		if l.Amount < 0 {
			l.Cause = "a withdrawal that had failed is paid after all"
		}
	case l.Kind == ledger.Withdrawal:
		l.Cause = "withdrawn to the bank account"
	default:
		l.Cause = string(l.Kind)
	}
	return nil
}

func explainEvent(ctx context.Context, tx *store.Tx, l *Line) error {
	e, err := tx.FlexEvent(ctx, l.Transaction.Cause.FlexEvent)
	if err != nil {
		return err
	}
	l.Provisional = e.Final == nil
	settled, err := tx.SettlementBy(ctx, e.ID, l.Transaction.Cause.Run)
	if err != nil {
		return err
	}
	word := "less"
	if settled.Result.Flex > 0 {
		word = "more"
	}
	l.Cause = fmt.Sprintf("%s kWh %s than usual, %s (%s baseline over %d days)", kwhText(max(settled.Result.Flex, -settled.Result.Flex)), word,
		spanText(l.Time), settled.Result.Quality, len(settled.Result.Used))
	for _, s := range settled.Result.Periods {
		p := Period{Start: e.Day.Period(s.Period).Start()}
		if len(settled.Result.Used) > 0 || settled.Result.Method == settle.Nominated {
			p.Baseline = &s.Baseline
		}
		if s.Read {
			p.Metered = &s.Metered
		}
		if s.Known && p.Baseline != nil {
			p.Flex = &s.Flex
		}
		l.Periods = append(l.Periods, p)
	}
	return nil
}

func explainSession(ctx context.Context, tx *store.Tx, l *Line) error {
	r, err := tx.Reckoning(ctx, l.Transaction.Cause.Session)
	if err != nil {
		return err
	}
	l.Provisional = !r.WaitsAt.IsZero()
	if l.Creditable != nil && l.Rate != nil {
		l.Cause = fmt.Sprintf("charged %s kWh at %s p, %s", kwhText(*l.Creditable), strconv.FormatFloat(settle.Rate(*l.Rate).PencePerKWh(), 'f', -1, 64), spanText(l.Time))
	}
	periods, days, err := sessionReadings(ctx, tx, r)
	if err != nil {
		return err
	}
	for _, p := range periods {
		line := Period{Start: p.Start()}
		if e, known := energyIn(days, p); known {
			line.Metered = &e
		}
		l.Periods = append(l.Periods, line)
	}
	return nil
}

func kwhText(e flex.WattHours) string { return strconv.FormatFloat(e.KWh(), 'f', -1, 64) }

// spanText says a time as people at the site would.
func spanText(s flex.Span) string {
	from, to := s.From.In(flex.London), s.To.In(flex.London)
	if flex.DayAt(s.From) == flex.DayAt(s.To.Add(-1)) {
		return from.Format("2 January, 15:04") + " to " + to.Format("15:04")
	}
	return from.Format("2 January 15:04") + " to " + to.Format("2 January 15:04")
}
