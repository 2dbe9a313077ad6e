package portal_test

import (
	"context"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// A user reads what became of a month whose flexibility is not certain yet.
func TestStatement_Month(t *testing.T) {
	h := open(t)
	day := flex.DayAt(h.now).Add(-1)
	err := h.db.Write(t.Context(), h.org, func(tx *store.Tx) error { return doubtful(t.Context(), tx, h.site, day) })
	if err != nil {
		t.Fatal(err)
	}

	status, page := h.get(t, h.link(t, reward.LinkOptions{})+"/statement")
	want(t, status, page, 200, "January 2026 together", "That is not above 28.286 p, 2 standard errors of what is usual",
		"The events of January 2026 come to 8 p. Their standard error is 14.143 p", "Carried on to later months")
}

// doubtful posts an event of 8 p whose baseline errs by 14.143 p.
func doubtful(ctx context.Context, tx *store.Tx, site flex.SiteID, day flex.Day) error {
	event := flex.FlexEventID{3}
	terms := settle.DefaultTerms
	terms.ByMonth = true
	r := &settle.Result{
		Event: event, Day: day, Metering: settle.Boundary, Method: settle.Mean, Quality: settle.Full, Used: []flex.Day{day.Add(-7), day.Add(-14)},
		Flex: -800, Credit: 8, Owed: 8, Terms: terms,
		Periods: []settle.Settled{{Period: 36, Baseline: 1000, Error: 1415, Metered: 200, Flex: -800, Price: 199_900_000, Revenue: 159_920_000_000, Read: true, Known: true, Compared: true}},
	}

	run := store.Run{ID: tx.NewRunID(), Kind: store.PostingRun, KnownAt: tx.Now(), StartedAt: tx.Now(), Events: 1}
	if err := tx.AddRun(ctx, run); err != nil {
		return err
	}
	if err := tx.AddSettlements(ctx, run.ID, []store.Settlement{{Event: event, Version: 1, Result: r}}); err != nil {
		return err
	}

	tr := ledger.Booked{Netting: &settle.Netting{Error: r.StandardError(), Certainty: 2 * settle.Whole}, Flex: &r.Flex}
	tr.Key, tr.Kind, tr.SiteID, tr.Settled = "event", ledger.FlexEvent, site, day
	tr.Time = day.Period(36).Span()
	tr.Cause = ledger.Cause{FlexEvent: event, Run: run.ID}
	tr.Postings = ledger.EarnedInPart(16, 0, 0, 16)
	_, err := tx.Post(ctx, &tr)

	return err
}
