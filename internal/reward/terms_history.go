package reward

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// TermValue is a value of a term from a day on. The zero day means from the beginning, an empty
// value the default.
type TermValue struct {
	Name    string
	From    flex.Day // London; zero: from the beginning
	Value   string   // as flexd org set takes it; empty: the default
	SetAt   time.Time
	SetBy   string
	InForce bool // in force today
}

func termValue(t flex.Term) TermValue {
	return TermValue{
		Name:  t.Name,
		From:  t.From,
		Value: t.Value,
		SetAt: t.SetAt,
		SetBy: t.SetBy,
	}
}

// History returns all past, present and future values of a term, in order of day. It begins with
// the default if no other value was set from the beginning.
func (t Terms) History(name string) []TermValue {
	var values []TermValue
	for _, change := range t.Changes {
		if change.Name == name {
			values = append(values, termValue(change))
		}
	}

	if len(values) == 0 || values[0].From != (flex.Day{}) {
		values = slices.Insert(values, 0, TermValue{Name: name})
	}

	for i := len(values) - 1; i >= 0; i-- {
		if compareDays(values[i].From, t.Today) <= 0 {
			values[i].InForce = true
			break
		}
	}

	return values
}

// TermsPreview describes the effect of a change of terms.
type TermsPreview struct {
	// the first day of the new terms; zero: from the beginning
	From flex.Day
	// values in force on that day before the change, by name; empty for the default
	Before map[string]string
	// values of the same terms from later days, which the change keeps
	Later []flex.Term
	// the last day with anything settled; zero: none
	Settled flex.Day
	// the first month that is not closed; zero: none was closed
	Open ledger.Month
}

// PreviewTerms returns what SetTerms would do, with the same errors, and changes nothing.
func (s *Service) PreviewTerms(
	ctx context.Context,
	org flex.OrgID,
	values map[string]string,
	from flex.Day,
) (TermsPreview, error) {
	var p TermsPreview
	if err := checkTerms(values); err != nil {
		return p, err
	}

	var err error
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		p, err = previewTerms(ctx, tx, values, from)
		return err
	})

	return p, err
}

func previewTerms(
	ctx context.Context,
	tx *store.Tx,
	values map[string]string,
	from flex.Day,
) (TermsPreview, error) {
	var p TermsPreview
	var err error
	p.From, err = firstDay(ctx, tx, from)
	if err != nil {
		return p, err
	}

	p.Settled, err = tx.LastSettled(ctx)
	if err != nil {
		return p, err
	}

	all, err := tx.Terms(ctx)
	if err != nil {
		return p, err
	}

	p.Before = valuesOn(all, p.From)
	for _, t := range all {
		_, changes := values[t.Name]
		isLater := p.From != (flex.Day{}) && compareDays(t.From, p.From) > 0
		if changes && isLater {
			p.Later = append(p.Later, t)
		}
	}

	closed, err := tx.LastClosedMonth(ctx)
	if closed != (ledger.Month{}) {
		p.Open = closed.Next()
	}

	return p, err
}
