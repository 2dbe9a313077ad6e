package reward

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// eventsMax is the number of flex events settled in one transaction.
const eventsMax = 20

// settleDue settles the events whose time has come, or whose missing reading has.
func (d *Service) settleDue(ctx context.Context, org flex.OrgID, report *worker.Report) error {
	var due []flex.FlexEventID
	err := d.DB.Read(ctx, org, func(tx *store.Tx) (err error) {
		due, err = tx.DueFlexEvents(ctx, dueMax)
		return err
	})
	report.More = report.More || len(due) == dueMax
	for chunk := range slices.Chunk(due, eventsMax) {
		if err != nil {
			return err
		}
		var did int
		err = d.DB.Write(ctx, org, func(tx *store.Tx) error {
			events, err := tx.HoldFlexEvents(ctx, chunk)
			if err != nil || len(events) == 0 {
				return err
			}
			did, err = settleAll(ctx, tx, events)
			return err
		})
		report.Did += did
	}
	return err
}

// settleAll settles events in one run, and posts what that changes. It returns how many
// moved on.
func settleAll(ctx context.Context, tx *store.Tx, events []store.FlexEvent) (did int, err error) {
	basis, err := basisOf(ctx, tx, stretches(events), time.Time{})
	if err != nil {
		return 0, err
	}
	outcomes, err := settleEvents(ctx, tx, basis, events, false)
	if err != nil {
		return 0, err
	}
	run := store.Run{ID: tx.NewRunID(), Kind: store.RoundRun, KnownAt: tx.Now(), StartedAt: tx.Now()}
	var settlements []store.Settlement
	var inputs []settle.Inputs
	var earned []*store.Transaction
	for i, e := range events {
		was, s := e, outcomes[i]
		if e.Consented {
			if !slices.Equal(s.Hash[:], e.Hash) {
				e.Version++
				s.Version, e.Hash = e.Version, s.Hash[:]
				settlements, inputs = append(settlements, s), append(inputs, settle.Inputs{Event: e.ID, Hash: s.Hash})
				t, err := credit(ctx, tx, &e, s.Result, termsOf(basis.settings), run.ID)
				if err != nil {
					return 0, err
				}
				if t != nil {
					earned = append(earned, t)
				}
			}
			note(&e, s.Result)
			came := was.LookAt.After(tx.Now())        // it is looked at because a reading came that it waited for
			if came && e.WaitsAt.Equal(was.WaitsAt) { // what came was not enough: look again, but not at once
				e.WaitsAt = time.Time{}
			}
		}
		e.LookAt = nextSettlement(e, tx.Now())
		if e.Version != was.Version || e.LookAt.IsZero() || !e.WaitsAt.Equal(was.WaitsAt) {
			did++
		}
		if err := tx.PutFlexEvent(ctx, e); err != nil {
			return 0, err
		}
	}
	if len(settlements) > 0 {
		run.Events, run.Hash = len(settlements), settle.RunHash(inputs)
		if err := tx.AddRun(ctx, run); err != nil {
			return 0, err
		}
		if err := tx.AddSettlements(ctx, run.ID, settlements); err != nil {
			return 0, err
		}
	}
	for _, t := range earned {
		if _, err := tx.Post(ctx, t); err != nil {
			return 0, err
		}
	}
	return did, nil
}

// note keeps on the event where its settlement stands.
func note(e *store.FlexEvent, r *settle.Result) {
	e.Missing, e.WaitsAt = r.Missing, time.Time{}
	for _, p := range r.Periods {
		if !p.Read && e.WaitsAt.IsZero() {
			e.WaitsAt = e.Day.Period(p.Period).Start()
		}
	}
	if r.Missing == 0 || r.Final {
		e.Flex, e.Estimated = &r.Flex, r.Gross
	}
	if r.Final {
		e.Final = &r.Gross
	}
}

// recheck is how often an event is looked at that waits for a price or for consent.
const recheck = time.Hour

// nextSettlement is when to look at an event again, whether or not a reading comes: when
// its settlement becomes final, sooner if it waits for more than readings, and never after.
func nextSettlement(e store.FlexEvent, now time.Time) time.Time {
	final := finalAt(e.Day)
	switch {
	case e.Final != nil || now.After(final.Add(CloseAfter)):
		return time.Time{}
	case !e.Consented || e.Missing > 0 && e.WaitsAt.IsZero():
		return now.Add(recheck)
	}
	return final
}

// ruleOf reads an organisation's settings of baselines.
func ruleOf(s flex.SettlementSettings) settle.Rule {
	r := settle.DefaultRule
	if s.Baseline != "" {
		r.Method = settle.Method(s.Baseline)
	}
	r.InDay, r.InDayCap = s.InDay, s.InDayCap
	r.Rounding, _ = settle.ParseRounding(s.Rounding)
	return r
}

// settleTerms reads an organisation's settings of money.
func settleTerms(s flex.OrgSettings) settle.Terms {
	t := settle.Terms{Share: settle.PartsOf(s.UserShare), PaidEarly: settle.Whole, LossFactor: settle.Whole, ClawBack: s.Settlement.ClawBack}
	if s.Settlement.PaidEarly > 0 {
		t.PaidEarly = settle.PartsOf(s.Settlement.PaidEarly)
	}
	if s.Settlement.LossFactor > 0 {
		t.LossFactor = settle.PartsOf(s.Settlement.LossFactor)
	}
	t.Rounding, _ = settle.ParseRounding(s.Settlement.Rounding)
	return t
}

// credit makes the transaction of what the event earned, or of what it earned more or less
// than was posted before; nil if there is none. Users who earn by session alone are not
// credited by event.
func credit(ctx context.Context, tx *store.Tx, e *store.FlexEvent, r *settle.Result, t terms, run flex.RunID) (*store.Transaction, error) {
	if t.share == 0 && e.Posted == 0 || r.Missing > 0 && !r.Final {
		return nil, nil
	}
	was, err := tx.PostingsAbout(ctx, ledger.Cause{FlexEvent: e.ID})
	if err != nil {
		return nil, err
	}
	tr := store.Transaction{Flex: &r.Flex}
	tr.SiteID, tr.Time, tr.Settled = e.SiteID, e.Span, e.Day
	tr.Cause = ledger.Cause{FlexEvent: e.ID, Session: e.SessionID, Run: run}
	tr.Kind, tr.Key = ledger.FlexEvent, fmt.Sprintf("flex event:%s", e.ID)
	tr.Postings = ledger.Revised(was, ledger.Earned(r.Gross.Pence(), r.Credit, r.Kept))
	if e.Posted > 0 {
		tr.Key = fmt.Sprintf("flex event:%s:%d", e.ID, e.Posted)
		tr.Kind = ledger.FlexPeriodTopUp
		switch {
		case len(tr.Postings) == 0:
			return nil, nil
		case tr.Credit() < 0:
			tr.Kind = ledger.Correction
		}
	}
	e.Posted++
	return &tr, nil
}
