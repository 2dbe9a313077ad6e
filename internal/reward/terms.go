package reward

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// DefaultCredit is what a kilowatt-hour charged in a plug session earns, in pence, where the
// organisation has set neither a rate nor a share.
const DefaultCredit = 2.0

// terms are the rules of one London day: how its events and sessions are settled and credited,
// and what its withdrawals must satisfy.
type terms struct {
	// per kilowatt-hour of a plug session; zero: sessions earn nothing
	credit     settle.Rate
	hasCredit  bool // whether the organisation has set the rate
	withdrawal ledger.WithdrawalTerms
	rule       settle.Rule
	settle     settle.Terms
	certainty  settle.Certainty // of the month that the day begins
}

// TermSetting is a term that an organisation may set, from a day on.
type TermSetting struct {
	Name    string
	Default string // as it is printed
	Help    string

	read func(*terms, string) error
}

// TermSettings lists the terms with the defaults that are used.
func TermSettings() []TermSetting {
	return slices.Concat(userTerms(), baselineTerms(), revenueTerms())
}

// userTerms decide what users earn, and when they may withdraw it.
func userTerms() []TermSetting {
	return []TermSetting{
		{
			"credit_pence_per_kwh",
			fmt.Sprint(DefaultCredit) + ", or none if user_share is above 0",
			"what a plug session's energy earns",
			readCredit,
		},
		{"user_share", "0", "part of a flex event's revenue that is the user's, 0 to 1",
			readParts(func(t *terms) *settle.Parts {
				return &t.settle.Share
			}, 1)},
		{
			"min_withdrawal_pence",
			strconv.Itoa(int(ledger.DefaultWithdrawalTerms.Minimum)),
			"the least withdrawal",
			readInteger(func(t *terms) *flex.Pence {
				return &t.withdrawal.Minimum
			}, 0, 1_000_000),
		},
		{"min_wait_days", "0", "days from the first reward to the first withdrawal",
			readInteger(func(t *terms) *int {
				return &t.withdrawal.WaitDays
			}, 0, 3650)},
	}
}

// baselineTerms decide how a flex event's baseline is computed.
func baselineTerms() []TermSetting {
	return []TermSetting{
		{"baseline", string(settle.DefaultRule.Method), "how a flex event's baseline is found",
			readChoice(
				func(t *terms, choice string) {
					t.rule.Method = settle.Method(choice)
				},
				string(settle.Mean),
				string(settle.MiddleEight),
				string(settle.Nominated),
			)},
		{
			"in_day",
			"false",
			"adjust the baseline by the hours before the event",
			readBool(func(t *terms) *bool { return &t.rule.InDay }),
		},
		{"in_day_cap_wh", "no cap", "by at most so much in a half-hour",
			readInteger(func(t *terms) *flex.WattHours {
				return &t.rule.InDayCap
			}, 1, settle.MaxEnergy)},
	}
}

// revenueTerms decide how revenue is converted into pence, and when those are credited.
func revenueTerms() []TermSetting {
	return []TermSetting{
		{"paid_early", "1", "part of the user's share that an estimate pays, 0 to 1",
			readParts(func(t *terms) *settle.Parts {
				return &t.settle.PaidEarly
			}, 1)},
		{
			"loss_factor",
			"1",
			"by which settlement scales volumes, 0 to 2",
			readParts(func(t *terms) *settle.Parts {
				return &t.settle.LossFactor
			}, 2),
		},
		{
			"rounding",
			settle.HalfAway.String(),
			"of amounts between two pennies",
			readChoice(setRounding, settle.HalfAway.String(), settle.HalfEven.String()),
		},
		{
			"crediting",
			byMonth,
			"a user's shares are netted over a London month before they are floored at nothing, or each event is floored",
			readChoice(func(t *terms, choice string) {
				t.settle.ByMonth = choice == byMonth
			}, byMonth, byEvent),
		},

		{
			"certainty",
			factorText(settle.DefaultCertainty.Errors),
			"a month's sum is credited once it is more than so many standard errors of its baselines, 0 to 10; the day that counts is the month's first",
			readParts(func(t *terms) *settle.Parts {
				return &t.certainty.Errors
			}, 10),
		},
		{
			"carry_months",
			strconv.Itoa(settle.DefaultCertainty.Months),
			"for so many months a sum is carried that is not, and lapses then",
			readInteger(func(t *terms) *int {
				return &t.certainty.Months
			}, 0, 120),
		},
		{
			"claw_back",
			"false",
			"what cost money takes it from the user",
			readBool(func(t *terms) *bool { return &t.settle.ClawBack }),
		},
	}
}

// The values of the term crediting.
const (
	byMonth = "month"
	byEvent = "event"
)

func readCredit(t *terms, text string) error {
	f, err := decimal(text, 1000)
	t.credit, t.hasCredit = settle.RateOf(f), true
	return err
}

func setRounding(t *terms, choice string) {
	// readChoice has checked the value, so that no error is possible
	t.settle.Rounding, _ = settle.ParseRounding(choice)
	t.rule.Rounding = t.settle.Rounding
}

// decimal reads a number from 0 to most.
func decimal(text string, most float64) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if inRange := f >= 0 && f <= most; err != nil || !inRange {
		return 0, fmt.Errorf("a number from 0 to %g", most)
	}

	return f, nil
}

func readParts(
	field func(*terms) *settle.Parts,
	most float64,
) func(*terms, string) error {
	return func(t *terms, text string) error {
		f, err := decimal(text, most)
		*field(t) = settle.PartsOf(f)
		return err
	}
}

func readInteger[N ~int | ~int64](
	field func(*terms) *N,
	least, most N,
) func(*terms, string) error {
	return func(t *terms, text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		inRange := n >= int64(least) && n <= int64(most)
		if err != nil || !inRange {
			return fmt.Errorf("a whole number from %d to %d", least, most)
		}

		*field(t) = N(n)
		return nil
	}
}

func readBool(field func(*terms) *bool) func(*terms, string) error {
	return func(t *terms, text string) error {
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("true or false")
		}

		*field(t) = b
		return nil
	}
}

func readChoice(
	set func(*terms, string),
	choices ...string,
) func(*terms, string) error {
	return func(t *terms, text string) error {
		if !slices.Contains(choices, text) {
			return fmt.Errorf("one of %s", strings.Join(choices, ", "))
		}
		set(t, text)
		return nil
	}
}

// defaultTerms are those of an organisation that has set none.
func defaultTerms() terms {
	t := terms{
		withdrawal: ledger.DefaultWithdrawalTerms,
		rule:       settle.DefaultRule,
	}

	t.settle = settle.Terms{
		PaidEarly:  settle.Whole,
		LossFactor: settle.Whole,
		ByMonth:    true,
	}

	t.certainty = settle.DefaultCertainty

	return t
}

// termsOf reads the values of terms by name. A user earns a rate by session or a share by flex
// event. Both count only if both are set.
func termsOf(values map[string]string) (terms, error) {
	t := defaultTerms()
	for _, s := range TermSettings() {
		value := values[s.Name]
		if value == "" {
			continue
		}

		if err := s.read(&t, value); err != nil {
			return t, flex.Fail(
				flex.Invalid,
				"%s: %q is not %v",
				s.Name,
				value,
				err,
			)
		}
	}

	if !t.hasCredit && t.settle.Share == 0 {
		t.credit = settle.RateOf(DefaultCredit)
	}

	return t, nil
}

// history has an organisation's terms over time, in order of their first day.
type history []struct {
	from flex.Day
	terms
}

// historyOf reads a history of terms.
func historyOf(ctx context.Context, tx *store.Tx) (history, error) {
	all, err := tx.Terms(ctx)
	if err != nil {
		return nil, err
	}

	days := []flex.Day{{}}
	for _, t := range all {
		days = append(days, t.From)
	}

	slices.SortFunc(days, compareDays)
	days = slices.Compact(days)

	h := make(history, len(days))

	for i, d := range days {
		t, err := termsOf(valuesOn(all, d))
		if err != nil {
			return nil, fmt.Errorf("stored terms from %s: %w", d, err)
		}
		h[i].from, h[i].terms = d, t
	}

	return h, nil
}

// valuesOn returns the values in force on a day, by name. The days of each name must be in order.
func valuesOn(all []flex.Term, d flex.Day) map[string]string {
	values := map[string]string{}
	for _, t := range all {
		if compareDays(t.From, d) <= 0 {
			values[t.Name] = t.Value
		}
	}

	return values
}

// forDay returns the terms in force on a day.
func (h history) forDay(d flex.Day) *terms {
	last := 0
	for i := range h {
		if compareDays(h[i].from, d) <= 0 {
			last = i
		}
	}

	return &h[last].terms
}

// certaintyOf returns the rule for crediting a month's sum. The month's first day decides, so
// that a month has only one rule.
func (h history) certaintyOf(m ledger.Month) settle.Certainty {
	return h.forDay(m.First()).certainty
}

// Terms are an organisation's terms: those in force today, and all changes to them.
type Terms struct {
	Today flex.Day
	// in force today, by name; empty or absent for the default
	Values  map[string]string
	Changes []flex.Term // by name, then by day
}

// Terms returns the organisation's terms.
func (s *Service) Terms(
	ctx context.Context,
	org flex.OrgID,
) (Terms, error) {
	var t Terms
	var err error
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		t, err = currentTerms(ctx, tx)
		return err
	})

	return t, err
}

func currentTerms(ctx context.Context, tx *store.Tx) (Terms, error) {
	var t Terms
	t.Today = flex.DayAt(tx.Now())
	var err error
	t.Changes, err = tx.Terms(ctx)
	t.Values = valuesOn(t.Changes, t.Today)
	return t, err
}

// SetTerms sets terms by name from a London day on; an empty value restores the default. The zero
// day means tomorrow, or all days if nothing was settled yet. A day is a Conflict if something of
// it, or of a later day, was settled already: those events and sessions keep the terms of their
// day. It returns the first day of the new terms; zero means from the beginning.
func (s *Service) SetTerms(
	ctx context.Context,
	org flex.OrgID,
	values map[string]string,
	from flex.Day,
	by string,
) (flex.Day, error) {
	if err := checkTerms(values); err != nil {
		return from, err
	}

	day := from
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		// With the lock, a transaction that settles a day ends before this change or waits for it.
		if _, err := tx.LockBooks(ctx); err != nil {
			return err
		}

		// From what was asked for, whenever the transaction is run again.
		var err error
		day, err = firstDay(ctx, tx, from)
		if err != nil {
			return err
		}

		for _, name := range slices.Sorted(maps.Keys(values)) {
			err := putTerm(ctx, tx, flex.Term{
				Name:  name,
				From:  day,
				Value: values[name],
				SetBy: by,
			})
			if err != nil {
				return err
			}
		}

		return tx.LookAgainWaiting(ctx, flex.Later(day.Start(), tx.Now().Add(-readableFor)))
	})

	return day, err
}

// checkTerms fails if a name is not that of a term, or a value is not valid for its term.
func checkTerms(values map[string]string) error {
	for name := range values {
		if !slices.ContainsFunc(TermSettings(), func(s TermSetting) bool {
			return s.Name == name
		}) {
			return flex.Fail(flex.Invalid, "there is no term %q", name)
		}
	}
	_, err := termsOf(values)

	return err
}

// firstDay returns the first day of new terms, or a Conflict if that day was settled already.
func firstDay(
	ctx context.Context,
	tx *store.Tx,
	from flex.Day,
) (flex.Day, error) {
	last, err := tx.LastSettled(ctx)
	if err != nil || last == (flex.Day{}) {
		return from, err
	}

	if from == (flex.Day{}) {
		from = flex.DayAt(tx.Now()).Add(1)
	}

	if compareDays(from, last) <= 0 {
		return from, flex.Fail(
			flex.Conflict,
			"%s was settled already, on the terms of then, which its events and sessions keep: the first day from which terms can be changed is %s",
			last,
			last.Add(1),
		)
	}

	return from, nil
}

// putTerm stores a term. One that holds from the beginning replaces all others of its name,
// because nothing was settled on those.
func putTerm(ctx context.Context, tx *store.Tx, t flex.Term) error {
	if t.From == (flex.Day{}) {
		if err := tx.DropTerm(ctx, t.Name); err != nil {
			return err
		}
	}

	return tx.PutTerm(ctx, t)
}
