package reward

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/pricing"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// Statement is what a site's user earned and withdrew in some London days, with the reasons. It has
// everything that is needed to compute every line again.
type Statement struct {
	From, To flex.Day // both included
	MadeAt   time.Time
	Number   string // of the statement: each has its own
	Payer    Payer
	Customer Customer
	Opening  flex.Pence
	Closing  flex.Pence
	Totals   Totals
	Lines    []Line  // oldest first
	Months   []Month // netted months that a line is about, oldest first
}

// Payer is who pays the user.
type Payer struct{ Name, Address, Contact string }

// Customer is whose statement it is.
type Customer struct {
	SiteID   flex.SiteID
	Address  flex.Personal
	Postcode flex.Personal
}

// Totals are the sums over a statement's lines. No energy counts twice in them.
type Totals struct {
	Earned    flex.Pence     // by flexibility and charging, corrections too
	Other     flex.Pence     // goodwill and the like
	Withdrawn flex.Pence     // below zero
	Flex      flex.WattHours // of events, with its sign: less than usual is negative
	// Flex by the sign of each event: less and more than usual. Each is negative if the corrections
	// of earlier days exceed the days' own energy
	Less, More flex.WattHours
	Charged    flex.WattHours // in sessions that are credited
}

// Line is one transaction with its basis.
type Line struct {
	ledger.Booked
	Balance flex.Pence // after it
	Cause   string     // in plain words
	Working []string   // how its pence were worked out, in plain words
	Note    string     // what cannot be shown of it, and why
	// a top-up or a correction may still follow, even without a mistake
	Provisional bool
	Label       flex.Label // by which it was metered; empty: several, or none
	Periods     []Period
	// nil if nothing was computed, or for lines from before calculations were stored
	Calculation *Calculation
}

// Period is one settlement period of a line. Values that do not apply or are not known are nil.
type Period struct {
	Start    time.Time
	Baseline *flex.WattHours
	Metered  *flex.WattHours
	Flex     *flex.WattHours
	// the event's share of the standard error of the baseline
	Error *flex.WattHours
	// the difference to the half-hour's energy in earlier lines
	Change flex.WattHours
	Price  *flex.Price
	// before the loss factor and the share
	Worth settle.PicoPounds

	Device      flex.AssetID       // that read it
	Source      string             // of the price
	Role        pricing.Role       // in which the price counts
	Publication flex.PublicationID // that the price is from
	Imported    time.Time          // when flexd imported the price
}

// Calculation is how a line's pence are computed from its half-hours. RoundingRule describes it.
type Calculation struct {
	settle.Terms
	Rate  settle.Rate       // of a session, per kilowatt-hour
	Worth settle.PicoPounds // of an event: the sum over its half-hours
	// of events settled before it on the same meter; they are rounded together
	Carried settle.PicoPounds
	Error   settle.MilliPence // of an event: the standard error of Due
	// the user's amount for the event, or the session, by itself
	Due     flex.Pence
	Earlier flex.Pence // what earlier lines about the same credited
	// the energy that earlier lines about the same event or session counted
	Counted flex.WattHours

	Month ledger.Month // in which the event is netted, if it is
	// the month's other events when the line was posted; nil if not netted, or not stored
	Others *settle.Netting
}

// Sum is the sum of the event's month: the carried amount, the other events and the event.
func (c *Calculation) Sum() flex.Pence {
	return c.Others.Carried + c.Others.Share + c.Due
}

// Threshold is what the month's sum must be above to be credited.
func (c *Calculation) Threshold() settle.MilliPence {
	return settle.Certainty{Errors: c.Others.Certainty}.Threshold(c.Others.Error)
}

// MonthCredit is what the event's month is credited in all.
func (c *Calculation) MonthCredit() flex.Pence {
	switch sum := c.Sum(); {
	case c.Others.Certainty == 0:
		return max(0, sum)
	case sum > c.Threshold().Whole():
		return sum
	}

	return 0
}

// Credit is what the line credits.
func (c *Calculation) Credit() flex.Pence {
	if c.Others == nil {
		return c.Due - c.Earlier
	}
	return c.MonthCredit() + c.Others.Later - c.Others.Credited - c.Earlier
}

// RoundingRule describes how a line's pence are computed from its figures. Statements print it.
const RoundingRule = "Of flexibility: in each half-hour the difference in kWh, with its sign turned, times the price in pence per kWh; " +
	"their sum and the carried pence, times share, times loss factor, times paid part, is rounded once to a whole penny; " +
	"the carried pence times the same, rounded, are taken off. That is what the event comes to. " +
	"By event: below nothing it is nothing, unless losses are passed on; what earlier lines about the event credited is taken off. " +
	"By month: an event that comes to less than nothing in whole pence counts in full at once, so that the paid part is 1 where that is less; " +
	"the event, the month's other events and what is carried in are added up. " +
	"Without a certainty, a month below nothing is nothing. With one, the month is credited in full if its sum is above the threshold, else not at all, and is carried on: " +
	"an event's standard error is the sum over its half-hours of standard error in kWh times price, without signs, times share, loss factor and the paid part (1 for an event that comes to less than nothing in whole pence); " +
	"those of one day are added up; the sum's standard error is the root of the sum of the squares of the days, of the month and of what is carried in, rounded up to a thousandth of a penny; " +
	"times the certainty it is the threshold. " +
	"What is carried lapses after the last month for which it is. " +
	"What the line changes of later months is added; what was credited for the others, and what earlier lines about the event credited, is taken off. " +
	"Of charging: all kWh of the session times rate, rounded once to a whole penny, less what earlier lines credited. " +
	"half_away_from_zero: half a penny is rounded away from zero; half_even: to the even penny."

// StatementDaysMax is the number of days that one statement covers.
const StatementDaysMax = 366

// Statement returns the site's statement from one day to another. Zero days mean the current month
// until today.
func (s *Service) Statement(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	from, to flex.Day,
) (Statement, error) {
	return s.statement(ctx, org, site, from, to, false)
}

// StatementWithOffboarded is Statement, also for a site that was offboarded. The address of such a
// site was deleted.
func (s *Service) StatementWithOffboarded(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	from, to flex.Day,
) (Statement, error) {
	return s.statement(ctx, org, site, from, to, true)
}

func (s *Service) statement(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	from, to flex.Day,
	allowOffboarded bool,
) (Statement, error) {
	var st Statement
	var err error
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		st = Statement{MadeAt: tx.Now()}

		st.From, st.To, err = statementDays(from, to, flex.DayAt(tx.Now()))
		if err != nil {
			return err
		}

		record, err := tx.Site(ctx, site)
		if allowOffboarded && flex.KindOf(err) == flex.NotFound {
			err = nil
		}
		if err != nil {
			return err
		}

		if err := st.addParties(ctx, tx, site, record); err != nil {
			return err
		}

		all, err := tx.SiteTransactions(ctx, site, st.To.Add(1).Start())
		if err != nil {
			return err
		}

		st.addLines(all)
		return st.explain(ctx, tx, all)
	})

	return st, err
}

// addLines makes the lines of the statement's days and adds them up.
func (s *Statement) addLines(all []ledger.Booked) {
	counted := map[ledger.Cause]previousLines{}
	for _, t := range all {
		key := creditedCause(t)
		before := counted[key]
		counted[key] = before.plus(t)

		if t.At.Before(s.From.Start()) {
			s.Opening += t.Amount
			s.Closing = s.Opening
			continue
		}

		if t.Amount == 0 && !t.Cause.Follows.IsZero() {
			continue // a step of a withdrawal that moved no money of the user's
		}

		s.Closing += t.Amount
		s.Totals.add(t)
		s.Totals.addShift(t, before.energy)

		line := Line{Booked: t, Balance: s.Closing}

		if key != (ledger.Cause{}) {
			line.Calculation = &Calculation{
				Earlier: before.credited,
				Counted: before.energy,
			}
		}

		s.Lines = append(s.Lines, line)
	}
}

// creditedCause returns what a transaction credits: an event, or a session; zero for all others.
func creditedCause(t ledger.Booked) ledger.Cause {
	if !t.Cause.FlexEvent.IsZero() {
		return ledger.Cause{FlexEvent: t.Cause.FlexEvent}
	}
	return ledger.Cause{Session: t.Cause.Session}
}

// previousLines has the sums of earlier lines about the same event or session.
type previousLines struct {
	credited flex.Pence
	energy   flex.WattHours
}

func (e previousLines) plus(t ledger.Booked) previousLines {
	e.credited += t.Amount
	for _, energy := range []*flex.WattHours{t.Flex, t.Creditable} {
		if energy != nil {
			e.energy += *energy
		}
	}

	return e
}

func (s *Totals) add(t ledger.Booked) {
	switch {
	case t.Kind == ledger.Withdrawal || !t.Cause.Follows.IsZero():
		s.Withdrawn += t.Amount
	case creditedCause(t) != (ledger.Cause{}):
		s.Earned += t.Amount
	default:
		s.Other += t.Amount
	}

	if t.Flex != nil {
		s.Flex += *t.Flex
	}

	if t.Creditable != nil {
		s.Charged += *t.Creditable
	}
}

// addShift adds a line of an event to Less or More. counted is the energy in earlier lines about the
// event. A correction changes the event's total and is not a shift by itself.
func (s *Totals) addShift(t ledger.Booked, counted flex.WattHours) {
	if t.Flex == nil {
		return
	}

	now := counted + *t.Flex
	s.Less += max(0, -now) - max(0, -counted)
	s.More += max(0, now) - max(0, counted)
}

func statementDays(from, to, today flex.Day) (flex.Day, flex.Day, error) {
	if to == (flex.Day{}) {
		to = today
	}

	if from == (flex.Day{}) {
		from = flex.Day{
			Year:  to.Year,
			Month: to.Month,
			Dom:   1,
		}
	}

	if to.Start().Before(from.Start()) {
		return from, to, flex.Fail(
			flex.Malformed,
			"the last day, %s, is before the first, %s",
			to,
			from,
		)
	}

	if from.Add(StatementDaysMax - 1).Start().Before(to.Start()) {
		return from, to, flex.Fail(
			flex.Malformed,
			"from %s to %s are more than %d days",
			from,
			to,
			StatementDaysMax,
		)
	}

	return from, to, nil
}

// addParties sets the payer, the customer and the statement's number.
func (s *Statement) addParties(
	ctx context.Context,
	tx *store.Tx,
	id flex.SiteID,
	site flex.Site,
) error {
	o, err := tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	s.Payer = payerFor(o)
	s.Customer = Customer{
		SiteID:   id,
		Address:  site.Address,
		Postcode: site.Postcode,
	}

	s.Number = fmt.Sprintf("%s/%s/%s", id, s.From, s.To)

	return nil
}

// payerFor returns the payer of an organisation's users.
func payerFor(o flex.Org) Payer {
	b := o.Settings.Books
	p := Payer{
		Name:    b.PayerName,
		Address: b.PayerAddress,
		Contact: b.PayerContact,
	}
	if p.Name == "" {
		p.Name = o.Name
	}

	return p
}

// TaxYear returns the first and the last day of the United Kingdom's tax year that begins in
// a year.
func TaxYear(year int) (from, to flex.Day) {
	return flex.Day{
			Year:  year,
			Month: time.April,
			Dom:   6,
		}, flex.Day{
			Year:  year + 1,
			Month: time.April,
			Dom:   5,
		}
}

// StatementSpan selects the days of a statement: from one day to another, a month, or a tax year by
// the year in which it begins. Fields that are not set are zero.
type StatementSpan struct {
	From    flex.Day
	To      flex.Day
	Month   string // YYYY-MM
	TaxYear int
}

// The first and the last year that a statement may be requested for.
const firstStatementYear, lastStatementYear = 2000, 2100

// Days returns the first and the last day; zero if it is not set. Future days are included, since
// nothing is recorded on them.
func (s StatementSpan) Days() (from, to flex.Day, err error) {
	ways := 0
	for _, set := range []bool{
		s.From != (flex.Day{}) || s.To != (flex.Day{}),
		s.Month != "",
		s.TaxYear != 0,
	} {
		if set {
			ways++
		}
	}

	if ways > 1 {
		return from, to, flex.Fail(
			flex.Malformed,
			"a statement is of days, of a month or of a tax year: give one of them",
		)
	}

	if s.Month != "" {
		m, err := ledger.ParseMonth(s.Month)
		if err != nil {
			return from, to, flex.Fail(
				flex.Malformed,
				"a month is written as in 2026-10",
			)
		}
		return m.First(), m.Last(), nil
	}

	if s.TaxYear == 0 {
		return s.From, s.To, nil
	}

	if s.TaxYear < firstStatementYear || s.TaxYear > lastStatementYear {
		return from, to, flex.Fail(
			flex.Malformed,
			"a tax year is named by the year in which it begins, %d to %d",
			firstStatementYear,
			lastStatementYear,
		)
	}

	from, to = TaxYear(s.TaxYear)

	return from, to, nil
}

// Month is a netted London month of a site, in its state at the end of a statement.
type Month struct {
	ledger.Month
	settle.MonthNetted
	Events []MonthEvent // by time
}

// MonthEvent is a flex event of a netted month, by its newest line.
type MonthEvent struct {
	ID    flex.FlexEventID
	Span  flex.Span
	Flex  flex.WattHours
	Gross flex.MicroPounds // what the market pays
	// the user's amount for the event by itself, as far as it is paid now
	Share    flex.Pence
	Error    settle.MilliPence // the standard error of that
	Credited flex.Pence        // by its lines
	Owed     flex.Pence        // Share, and what is paid later
}

// months returns the months in which the statement's lines are netted, and those that may be
// carried into them.
func (s *Statement) months(all []ledger.Booked) []ledger.Month {
	var ms []ledger.Month
	for i := range all {
		t := &all[i]
		n := t.Netting
		if n != nil && (n.Certainty > 0 || !t.At.Before(s.From.Start())) {
			ms = append(ms, ledger.MonthOf(t.Settled))
		}
	}

	slices.SortFunc(ms, func(a, b ledger.Month) int {
		return compareDays(a.First(), b.First())
	})

	return slices.Compact(ms)
}
