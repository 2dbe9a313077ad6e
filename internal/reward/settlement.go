package reward

import (
	"context"
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

var eventQueue = store.Queue[flex.FlexEventID]{
	Kind:  store.PutOffFlexEvent,
	Batch: eventsMax,
	Most:  dueMax,
	After: worker.PutOffFor,
	Due:   (*store.Tx).DueFlexEvents,
	Do:    settleFlexEvents,
	Item:  store.OneID[flex.FlexEventID],
}

// settleFlexEvents settles events, and with them all others of their sites and days, in one run,
// and posts what that changes. It returns how many moved on.
func settleFlexEvents(
	ctx context.Context,
	tx *store.Tx,
	due []flex.FlexEventID,
) (int, error) {
	events, err := tx.LockFlexEvents(ctx, due)
	if err != nil {
		return 0, err
	}

	events, err = keepFinalSettlements(ctx, tx, events)
	if err != nil || len(events) == 0 {
		return 0, err
	}

	// Terms are not changed from here on for a day that is settled on what they are.
	if err := tx.ShareBooks(ctx); err != nil {
		return 0, err
	}

	basis, err := basisOf(ctx, tx, joinSpans(events), time.Time{})
	if err != nil {
		return 0, err
	}

	outcomes, err := settleConsented(ctx, tx, basis, events)
	if err != nil {
		return 0, err
	}

	run := &postingRun{
		run: store.Run{
			ID:        tx.NewRunID(),
			Kind:      store.PostingRun,
			KnownAt:   tx.Now(),
			StartedAt: tx.Now(),
		},
		terms: basis.terms,
	}

	var done int
	for i, e := range events {
		posted, err := run.settle(ctx, tx, e, outcomes[i])
		if err != nil {
			return 0, err
		}

		if posted {
			done++
		}
	}

	return done, run.finish(ctx, tx, events, outcomes)
}

// keepFinalSettlements returns the events without those that are so old that their readings may be
// forgotten, which are looked at no more. The events of a day are all as old.
func keepFinalSettlements(
	ctx context.Context,
	tx *store.Tx,
	events []store.FlexEvent,
) ([]store.FlexEvent, error) {
	var remaining []store.FlexEvent
	for _, e := range events {
		if !pastRetention(e.Day, tx.Now()) {
			remaining = append(remaining, e)
			continue
		}

		e.LookAt, e.WaitsAt = time.Time{}, time.Time{}
		if err := tx.PutFlexEvent(ctx, e); err != nil {
			return nil, err
		}
	}

	return remaining, nil
}

// settleConsented settles the events that the site consents to. The others have no part in
// what their meter shows, and their outcome is empty. What left while it was under way has its
// part, so that nobody else is credited for it.
func settleConsented(
	ctx context.Context,
	tx *store.Tx,
	b *basis,
	events []store.FlexEvent,
) ([]outcome, error) {
	var consented []store.FlexEvent
	var at []int

	for i, e := range events {
		if e.SiteConsented {
			consented, at = append(consented, e), append(at, i)
		}
	}

	settled, err := settleEvents(ctx, tx, b, consented, false)
	if err != nil {
		return nil, err
	}

	outcomes := make([]outcome, len(events))
	for k, o := range settled {
		outcomes[at[k]] = o
	}

	return outcomes, nil
}

// postingRun is a run under way that posts what it changes.
type postingRun struct {
	run         store.Run
	terms       history
	settlements []store.Settlement
	inputs      []settle.Inputs
	revisions   []*ledger.Booked
}

// settle takes an event on to what it comes to now, and reports whether that moved it on.
func (p *postingRun) settle(
	ctx context.Context,
	tx *store.Tx,
	e store.FlexEvent,
	o outcome,
) (moved bool, err error) {
	before := e
	missing := e.WaitsAt

	if e.Consented {
		if err := p.revise(ctx, tx, &e, o.Settlement); err != nil {
			return false, err
		}

		missing = recordResult(&e, o.Result)
	}

	now := tx.Now()
	arrived := before.Due && before.LookAt.After(now)
	outlook{
		missing: missing,
		next:    nextSettlement(e, missing, now),
		arrived: arrived,
	}.wait(&e.Progress, now)

	// Two events of a day that wait for what is there and not enough would have each other
	// looked at for ever.
	if !before.Due && e.Version == before.Version {
		e.LookAt, e.WaitsAt = before.LookAt, before.WaitsAt
	}

	moved = e.Version != before.Version || hasProgressed(before.Progress, e.Progress)

	return moved, tx.PutFlexEvent(ctx, e)
}

// revise gives an event its next settlement, and what that is worth more or less, if anything
// that it depends on has changed.
func (p *postingRun) revise(
	ctx context.Context,
	tx *store.Tx,
	e *store.FlexEvent,
	s store.Settlement,
) error {
	if slices.Equal(s.Hash[:], e.Hash) {
		return nil
	}

	e.Version++
	e.Hash = s.Hash[:]
	s.Version = e.Version
	p.settlements, p.inputs = append(p.settlements, s), append(p.inputs, settle.Inputs{Event: e.ID, Hash: s.Hash})

	if s.Result.Missing > 0 && !s.Result.Final {
		return nil
	}

	o, err := eventTarget(ctx, tx, e, s.Result, p.terms)
	if err != nil {
		return err
	}

	o.Cause.Run = p.run.ID
	if t := o.revision(&e.Progress); t != nil {
		p.revisions = append(p.revisions, t)
	}

	return nil
}

// finish keeps the run, how the half-hours were settled, and the transactions.
func (p *postingRun) finish(
	ctx context.Context,
	tx *store.Tx,
	events []store.FlexEvent,
	outcomes []outcome,
) error {
	if len(p.settlements) == 0 {
		return nil
	}

	p.run.Events, p.run.Hash = len(p.settlements), settle.RunHash(p.inputs)
	if err := tx.AddRun(ctx, p.run); err != nil {
		return err
	}

	if err := tx.AddSettlements(ctx, p.run.ID, p.settlements); err != nil {
		return err
	}

	if err := storeHalfHours(ctx, tx, events, outcomes); err != nil {
		return err
	}

	return postRevisions(ctx, tx, p.revisions)
}

// storeHalfHours keeps, of the sites and days of the events, what each meter deviated by in each
// half-hour and what the events have of it.
func storeHalfHours(
	ctx context.Context,
	tx *store.Tx,
	events []store.FlexEvent,
	outcomes []outcome,
) error {
	days := map[siteDay]*settledDay{}
	var order []siteDay

	for i, e := range events {
		if !e.SiteConsented {
			continue // of a day of which nothing is settled, what was kept stays
		}

		key := siteDay{e.SiteID, e.Day}
		if days[key] == nil {
			order, days[key] = append(order, key), &settledDay{at: map[settledAt]int{}}
		}

		days[key].add(&e, &outcomes[i])
	}

	for _, key := range order {
		err := tx.PutHalfHours(ctx, key.site, key.day, days[key].halfHours)
		if err != nil {
			return err
		}
	}

	return nil
}

type siteDay struct {
	site flex.SiteID
	day  flex.Day
}

// settledDay collects the half-hours of a site's day.
type settledDay struct {
	halfHours []store.HalfHour
	at        map[settledAt]int // of a meter and period, where it is among them
}

type settledAt struct {
	meter  meterKey
	period int
}

// add adds what an event has in its half-hours. The part of one that left is nobody's.
func (d *settledDay) add(e *store.FlexEvent, o *outcome) {
	for _, p := range o.Result.Periods {
		if !p.Known || !p.Compared {
			continue
		}

		key := settledAt{o.meter, p.Period}
		n, known := d.at[key]
		if !known {
			n = len(d.halfHours)
			d.at[key] = n
			d.halfHours = append(d.halfHours, o.halfHour(p))
		}

		h := &d.halfHours[n]
		if e.AssetLeft {
			h.Unassigned += p.Flex
			continue
		}

		h.Parts = append(h.Parts, store.Part{
			Event: e.ID,
			Flex:  p.Flex,
			Most:  o.most,
		})
	}
}

// halfHour is a settled half-hour of the event's meter, without its parts.
func (o *outcome) halfHour(p settle.Settled) store.HalfHour {
	limits := o.limits.At(o.Result.Day.Period(p.Period))
	return store.HalfHour{
		Site:       o.meter.site,
		Meter:      o.meter.asset,
		Period:     o.Result.Day.Period(p.Period),
		Label:      o.Result.Label,
		Metered:    p.Metered,
		Baseline:   p.Baseline,
		Apart:      p.Metered - p.Baseline - p.Deviation,
		Deviation:  p.Deviation,
		Unassigned: p.Unassigned,
		Import:     limits.Import,
		Export:     limits.Export,
	}
}

// recordResult writes into the event what it came to, and returns the first half-hour that is
// not read.
func recordResult(e *store.FlexEvent, r *settle.Result) time.Time {
	e.Missing = r.Missing
	var missing time.Time
	for _, p := range r.Periods {
		if !p.Read && missing.IsZero() {
			missing = e.Day.Period(p.Period).Start()
		}
	}

	if r.Missing == 0 || r.Final {
		e.Flex, e.Estimated = &r.Flex, r.Gross
	}

	if r.Final {
		e.Final = &r.Gross
	}

	return missing
}

// nextSettlement is when to look at an event again, whether or not a reading comes: when its
// settlement becomes final, sooner if it waits for more than readings, and never after. A
// price, a consent or a reading that comes marks what it touches. By itself an event that
// waits is looked at ever more seldom, each time when it is twice as old; so is one that is
// not final at its time, for want of prices.
func nextSettlement(e store.FlexEvent, missing, now time.Time) time.Time {
	final := finalAt(e.Day)
	if e.Final != nil || now.After(final.Add(CloseAfter)) {
		return time.Time{}
	}

	waits := !e.Consented || e.Missing > 0 && missing.IsZero()
	if waits || !final.After(now) {
		retryAt := now.Add(max(recheck, now.Sub(e.To)))
		if final.After(now) {
			retryAt = sooner(retryAt, final)
		}
		return retryAt
	}

	return final
}
