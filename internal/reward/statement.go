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

// Statement is what a site's user earned and withdrew in some London days, and why. Whoever
// reads it alone can work every line out again.
type Statement struct {
	From, To flex.Day // both included
	Number   string   // of the statement: another one has another
	Payer    Payer
	Customer Customer
	Opening  flex.Pence
	Closing  flex.Pence
	Lines    []Line // oldest first
}

// Payer is who pays the user.
type Payer struct{ Name, Address, Contact string }

// Customer is whose statement it is.
type Customer struct {
	SiteID            flex.SiteID
	Address, Postcode flex.Personal
}

// Line is one transaction with what it rests on.
type Line struct {
	store.Transaction
	Balance     flex.Pence // after it
	Cause       string     // in plain words
	Provisional bool       // it may still be followed by a top-up or a correction without anybody's mistake
	Periods     []Period
	Calculation *Calculation // nil where nothing was worked out, or before it was kept
}

// Period is one settlement period behind a line; what does not apply or is not known is nil.
type Period struct {
	Start                   time.Time
	Baseline, Metered, Flex *flex.WattHours
	Price                   *flex.Price
}

// Calculation is how a line's pence come from its half-hours. For a flex event: the sum over
// them of minus energy times price, plus what is carried, times share, loss factor and the
// part paid early, rounded once; less the same of what is carried alone; nothing if that is
// below nothing and losses are not passed on; less what earlier lines credited. For a session:
// energy times rate, rounded once, less what earlier lines credited.
type Calculation struct {
	settle.Terms
	Carried settle.PicoPounds // of events settled before it on the same meter; they are rounded together
	Earlier flex.Pence        // what earlier lines about the same credited
}

// RoundingRule says how a line's pence come from what stands beside them. Statements print it.
const RoundingRule = "Of flexibility: in each half-hour the difference in kWh, with its sign turned, times the price in pence per kWh; " +
	"their sum and the carried pence, times share, times loss factor, times paid part, is rounded once to a whole penny; " +
	"the carried pence times the same, rounded, are taken off; below nothing it is nothing unless losses are passed on; " +
	"what earlier lines credited is taken off. Of charging: kWh times rate, rounded once to a whole penny, less what earlier lines credited. " +
	"half_away_from_zero: half a penny is rounded away from zero; half_even: to the even penny."

// StatementDaysMax is the number of days that one statement covers.
const StatementDaysMax = 366

// Statement returns the site's statement from one day to another. The zero days stand for
// the current month so far.
func (d *Service) Statement(ctx context.Context, org flex.OrgID, site flex.SiteID, from, to flex.Day) (s Statement, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		s.From, s.To, err = statementDays(from, to, flex.DayAt(tx.Now()))
		if err != nil {
			return err
		}
		if err := s.address(ctx, tx, site); err != nil {
			return err
		}

		span := flex.Span{From: s.From.Start(), To: s.To.Add(1).Start()}
		ts, before, err := tx.TransactionsWithin(ctx, site, span)
		if err != nil {
			return err
		}

		s.Opening = before
		s.Closing = before
		s.Lines = nil

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
		if c.Reason != "" {
			l.Cause += ": " + c.Reason
		}
	}

	return nil
}

// address fills in who pays whom, and the statement's number.
func (s *Statement) address(ctx context.Context, tx *store.Tx, id flex.SiteID) error {
	site, err := tx.Site(ctx, id)
	if err != nil {
		return err
	}

	o, err := tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	b := o.Settings.Books
	s.Payer = Payer{Name: b.PayerName, Address: b.PayerAddress, Contact: b.PayerContact}
	if s.Payer.Name == "" {
		s.Payer.Name = o.Name
	}

	s.Customer = Customer{SiteID: id, Address: site.Address, Postcode: site.Postcode}
	s.Number = fmt.Sprintf("%s/%s/%s", id, s.From, s.To)
	return nil
}

// TaxYear returns the first and the last day of the United Kingdom's tax year that begins in
// a year.
func TaxYear(year int) (from, to flex.Day) {
	return flex.Day{Year: year, Month: time.April, Dom: 6}, flex.Day{Year: year + 1, Month: time.April, Dom: 5}
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

	l.Cause = eventText(settled.Result, l.Time)
	if settled.Result.Terms != (settle.Terms{}) {
		l.Calculation = &Calculation{Terms: settled.Result.Terms, Carried: settled.Result.Before}
		l.Calculation.Earlier, err = tx.CreditedBefore(ctx, l.Transaction)
		if err != nil {
			return err
		}
	}

	for _, s := range settled.Result.Periods {
		p := Period{Start: e.Day.Period(s.Period).Start()}
		if len(settled.Result.Used) > 0 || settled.Result.Method == settle.Nominated {
			p.Baseline = &s.Baseline
		}

		if s.Read {
			p.Metered = &s.Metered
		}

		if s.Known && p.Baseline != nil {
			p.Flex, p.Price = &s.Flex, &s.Price
		}

		l.Periods = append(l.Periods, p)
	}

	return nil
}

// eventText says what a flex event came to, and what usual means.
func eventText(r *settle.Result, span flex.Span) string {
	word := "less"
	if r.Flex > 0 {
		word = "more"
	}

	usual := "usual is what the plan without flexibility would have used"
	if r.Method != settle.Nominated {
		usual = fmt.Sprintf("usual is what was used at the same time on %d similar days before", len(r.Used))
	}

	if r.Quality == settle.Insufficient {
		usual = fmt.Sprintf("there are only %d similar days before to compare with, too few to be paid for", len(r.Used))
	}

	return fmt.Sprintf("%s kWh %s than usual, %s; %s", kwhText(max(r.Flex, -r.Flex)), word, spanText(span), usual)
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

	terms, err := historyOf(ctx, tx)
	if err != nil {
		return err
	}

	l.Calculation = &Calculation{Terms: settle.Terms{
		Share: settle.Whole, LossFactor: settle.Whole, PaidEarly: settle.Whole, Rounding: terms.on(flex.DayAt(r.From)).settle.Rounding,
	}}

	l.Calculation.Earlier, err = tx.CreditedBefore(ctx, l.Transaction)
	if err != nil {
		return err
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
