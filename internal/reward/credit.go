package reward

import (
	"context"
	"fmt"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// credit makes the transaction of what the event earned, or of what it earned more or less
// than was posted before; nil if there is none. All revenue is posted, whatever the user's
// share; without one the user does not see it.
func credit(ctx context.Context, tx *store.Tx, e *store.FlexEvent, r *settle.Result, t *terms, run flex.RunID) (*store.Transaction, error) {
	if r.Missing > 0 && !r.Final {
		return nil, nil
	}

	was, err := tx.PostingsAbout(ctx, ledger.Cause{FlexEvent: e.ID})
	if err != nil {
		return nil, err
	}

	listed := t.settle.Share > 0 || slices.ContainsFunc(was, func(p ledger.Posting) bool { return p.Account.PerSite() })
	worth, netting, err := worthOf(ctx, tx, e, r, t, listed)
	if err != nil {
		return nil, err
	}

	more := r.Flex - e.PostedWh // a sum over transactions counts no energy twice
	tr := store.Transaction{Flex: &more, Netting: netting.others}
	tr.SiteID, tr.Time, tr.Settled = e.SiteID, e.Span, e.Day
	tr.Cause = ledger.Cause{FlexEvent: e.ID, Session: e.SessionID, Run: run}
	tr.Kind, tr.Key = ledger.FlexEvent, fmt.Sprintf("flex event:%s", e.ID)
	kept := r.Kept + r.Owed - worth.Credited - worth.Accrued
	tr.Postings = ledger.Revised(was, ledger.EarnedInPart(worth.Gross, worth.Credited, worth.Accrued, kept))

	if e.Posted > 0 {
		tr.Key = fmt.Sprintf("flex event:%s:%d", e.ID, e.Posted)
		tr.Kind = changeKind(&tr, -more)
	}

	moved := more != 0 || netting.moved // of what the user reads
	unchanged := len(tr.Postings) == 0 && !(moved && worth.Listed)
	if unchanged && (e.Posted > 0 || !worth.Listed) {
		return nil, nil
	}

	e.Posted++
	e.PostedWh = r.Flex
	return &tr, nil
}

// netting is how an event stands in a month that is netted.
type netting struct {
	others *store.Netting // nil where it is not
	moved  bool           // whether its own share is another than was posted
}

// worthOf works out what an event is worth to its user, and keeps it. What is netted by month
// gives each event the difference that it makes to the month: the sum of the shares, or
// nothing if that is below zero. So the month comes to the same in whatever order its events
// are settled.
func worthOf(ctx context.Context, tx *store.Tx, e *store.FlexEvent, r *settle.Result, t *terms, listed bool) (c store.EventCredit, n netting, err error) {
	c = store.EventCredit{
		Event: e.ID, Site: e.SiteID, Day: e.Day, Listed: listed, Netted: t.settle.ByMonth && !t.settle.ClawBack,
		Gross: r.Gross.Pence(), Share: r.Owed, Early: r.Credit, Credited: r.Credit, Accrued: r.Owed - r.Credit,
	}
	if c.Netted {
		others, was, err := tx.OtherCredits(ctx, c)
		if err != nil {
			return c, n, err
		}

		credited, owed := max(0, others.Early+c.Early), max(0, others.Share+c.Share)
		c.Credited = credited - others.Credited
		c.Accrued = owed - credited - others.Accrued
		n = netting{&store.Netting{Share: others.Early, Credited: others.Credited}, c.Early != was}
	}

	return c, n, tx.PutEventCredit(ctx, c)
}
