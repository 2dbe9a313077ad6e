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
func (d *Desk) settleDue(ctx context.Context, org flex.OrgID, report *worker.Report) error {
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
	o, err := tx.OrgRecord(ctx)
	if err != nil {
		return 0, err
	}
	run := store.Run{ID: tx.NewRunID(), Kind: store.RoundRun, KnownAt: tx.Now(), StartedAt: tx.Now()}
	hashes := map[flex.FlexEventID]settle.Hash{}
	var settlements []store.Settlement
	var earned []*store.Transaction
	for _, e := range events {
		was := e
		if e.Consented {
			s, err := settleEvent(ctx, tx, e, o.Settings, time.Time{})
			if err != nil {
				return 0, fmt.Errorf("settle flex event %s: %w", e.ID, err)
			}
			if !slices.Equal(s.Hash[:], e.Hash) {
				e.Version++
				s.Version, e.Hash, hashes[e.ID] = e.Version, s.Hash[:], s.Hash
				settlements = append(settlements, s)
				t, err := credit(ctx, tx, &e, s.Result, termsOf(o.Settings), run.ID)
				if err != nil {
					return 0, err
				}
				if t != nil {
					earned = append(earned, t)
				}
			}
			note(&e, s.Result)
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
		run.Events, run.Hash = len(settlements), settle.RunHash(hashes)
		if err := tx.AddRun(ctx, run, settlements); err != nil {
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

// settleEvent works out one event on what was known at an instant, or for the zero instant
// on what is known now.
func settleEvent(ctx context.Context, tx *store.Tx, e store.FlexEvent, s flex.OrgSettings, knownAt time.Time) (store.Settlement, error) {
	asOf := knownAt
	if asOf.IsZero() {
		asOf = tx.Now()
	}
	c := settle.Case{
		Event: e.ID, Day: e.Day, First: e.First, Last: e.Last, Rule: ruleOf(s.Settlement), Terms: settleTerms(s),
		Final: !asOf.Before(finalAt(e.Day)),
	}
	for i, wh := range e.Nominated {
		c.Nominated.Day = e.Day
		c.Nominated.Set(e.First+i, wh)
	}
	var err error
	if c.Prices, err = tx.PricesAt(ctx, e.Span, asOf); err != nil {
		return store.Settlement{}, err
	}
	if err := meter(ctx, tx, e, &c, knownAt); err != nil {
		return store.Settlement{}, err
	}
	if c.EventDays, err = tx.EventDays(ctx, e, c.Metering == settle.Boundary, c.Needs().Oldest, e.Day.Add(-1)); err != nil {
		return store.Settlement{}, err
	}
	r, err := settle.Settle(&c)
	if err != nil {
		return store.Settlement{}, err
	}
	return store.Settlement{Hash: c.Hash(), Result: r}, nil
}

// meter chooses whose meter the event is settled on and gives the case its readings: the
// asset's own if its model is qualified for that; else the site's boundary if it was read
// in the event; else the asset's own, as the best that there is.
func meter(ctx context.Context, tx *store.Tx, e store.FlexEvent, c *settle.Case, knownAt time.Time) error {
	if !e.CoP11 {
		assets, err := tx.AssetsOf(ctx, e.SiteID)
		if err != nil {
			return err
		}
		all := make([]flex.AssetID, 0, len(assets))
		for _, a := range assets {
			all = append(all, a.ID)
		}
		c.Metering = settle.Boundary
		if err := read(ctx, tx, all, c, knownAt); err != nil || len(c.Metered) > 0 {
			return err
		}
	}
	c.Metering = settle.Asset
	return read(ctx, tx, []flex.AssetID{e.AssetID}, c, knownAt)
}

// read gives the case the metered days that it needs. Like is compared with like: the days
// before count by the labels that the event's own day was read in, and not at all if it was
// not read.
func read(ctx context.Context, tx *store.Tx, assets []flex.AssetID, c *settle.Case, knownAt time.Time) error {
	n := c.Needs()
	q := store.ReadingQuery{
		Assets: assets, Labels: settle.Labels(c.Metering), Days: []flex.Day{c.Day}, First: n.Own[0], Last: n.Own[1], KnownAt: knownAt,
	}
	own, err := tx.Readings(ctx, q)
	if err != nil || len(own) == 0 || c.Rule.Method == settle.Nominated {
		c.Metered = settle.HalfHours(c.Metering, own)
		return err
	}
	q.Labels = slices.DeleteFunc(q.Labels, func(l flex.Label) bool {
		return !slices.ContainsFunc(own, func(r flex.Reading) bool { return r.Label == l })
	})
	q.Days, q.First, q.Last = daysBetween(n.Oldest, c.Day), n.History[0], n.History[1]
	before, err := tx.Readings(ctx, q)
	if err != nil {
		return err
	}
	c.Metered = settle.HalfHours(c.Metering, append(own, before...))
	return nil
}

// daysBetween lists the days from one to before another.
func daysBetween(from, to flex.Day) (days []flex.Day) {
	for d := from; d.Start().Before(to.Start()); d = d.Add(1) {
		days = append(days, d)
	}
	return days
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
