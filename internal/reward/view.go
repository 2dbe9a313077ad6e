package reward

import (
	"context"
	"time"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// The numbers of rows of an overview.
const (
	overviewRuns   = 30 // settlement runs
	overviewMonths = 36 // lines of market money
	overviewFiles  = 10 // payment files
)

// OverviewQuery asks for an organisation's settlement.
type OverviewQuery struct {
	Org flex.OrgID // the first of them if zero
	// only withdrawals of this status are listed; "" for all
	Status ledger.PaymentStatus
	// how many withdrawals to list; with 0 they are not counted either
	Withdrawals int
	// lists flex events that began before this instant; zero for the newest
	Before time.Time
	// of the events that began exactly then, those before this one; none if zero
	BeforeID flex.FlexEventID
	Events   int // how many flex events to list
}

// Overview is an organisation's runs, events and money.
type Overview struct {
	Orgs        []flex.Org
	Org         flex.OrgID // zero if there is none
	Today       flex.Day
	Withdrawals []WithdrawalLine
	Waiting     int        // for approval
	WaitingSum  flex.Pence // of those
	Approved    int
	Format      bankfile.Format // of payment files, the one that is set
	Files       []PaymentFileRecord
	Owed        flex.Pence // to users
	Accounts    []AccountSum
	Market      []MarketMoney // the newest months
	Closed      ledger.Month  // the last closed month of the books
	Events      []EventLine   // the newest first
	Runs        []Run         // the newest first
}

// AccountSum is the balance of an account of the books; a debit is positive.
type AccountSum struct {
	Account ledger.Account
	Sum     flex.Pence
}

// MarketMoney is what a counterparty owes for a month, and paid.
type MarketMoney struct {
	Counterparty string
	Month        ledger.Month
	Expected     flex.Pence // from settled gross revenue
	Received     flex.Pence
	WrittenOff   flex.Pence
}

// Difference is what was neither received nor written off.
func (m MarketMoney) Difference() flex.Pence {
	return m.Expected - m.Received - m.WrittenOff
}

// Run is a settlement of all events that were due.
type Run struct {
	ID        flex.RunID
	Kind      string
	KnownAt   time.Time
	StartedAt time.Time
	Events    int
	Hash      settle.Hash // of all its events' inputs
}

func runOf(r *store.Run) Run {
	return Run{
		ID:        r.ID,
		Kind:      string(r.Kind),
		KnownAt:   r.KnownAt,
		StartedAt: r.StartedAt,
		Events:    r.Events,
		Hash:      r.Hash,
	}
}

// WithdrawalLine is a withdrawal with its site's address.
type WithdrawalLine struct {
	Payout
	Address flex.Personal // empty if the site is gone, or has none
}

// EventLine is a flex event with its asset's name.
type EventLine struct {
	ID        flex.FlexEventID
	AssetID   flex.AssetID
	AssetName string
	Day       flex.Day
	From      time.Time
	To        time.Time
	Flex      *flex.WattHours   // nil until it was settled
	Estimated flex.MicroPounds  // gross
	Final     *flex.MicroPounds // nil while it may change
	Missing   int               // periods without a reading or a price
	// there were too few days for a baseline; then Flex is nil, and nothing is paid
	NoBaseline bool
	Version    int // of its newest settlement, 0 before the first
}

func eventLine(e *store.FlexEvent, name string) EventLine {
	return EventLine{
		ID:        e.ID,
		AssetID:   e.AssetID,
		AssetName: name,
		Day:       e.Day,
		From:      e.From,
		To:        e.To,
		Flex:      e.Flex,
		Estimated: e.Estimated,
		Final:     e.Final,
		Missing:   e.Missing,
		Version:   e.Version,
	}
}

// Overview reads an organisation's settlement in one transaction.
func (s *Service) Overview(
	ctx context.Context,
	q OverviewQuery,
) (Overview, error) {
	var v Overview
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, tx, err := all.Choose(ctx, q.Org)
		v = Overview{Orgs: orgs}
		if tx == nil || err != nil {
			return err
		}

		v.Org, v.Today = tx.Org(), flex.DayAt(tx.Now())
		if err := v.addMoney(ctx, tx); err != nil {
			return err
		}
		if err := v.addEvents(ctx, all, tx, q); err != nil {
			return err
		}
		return v.addWithdrawals(ctx, tx, q)
	})

	return v, err
}

// addEvents reads the runs and the events.
func (v *Overview) addEvents(
	ctx context.Context,
	all *store.All,
	tx *store.Tx,
	q OverviewQuery,
) error {
	runs, err := tx.Runs(ctx, overviewRuns)
	if err != nil {
		return err
	}

	for i := range runs {
		v.Runs = append(v.Runs, runOf(&runs[i]))
	}

	before := q.Before
	if before.IsZero() {
		before = tx.Now().Add(24 * time.Hour)
	}

	events, err := tx.NewestFlexEvents(ctx, before, q.BeforeID, q.Events)
	if err != nil {
		return err
	}

	ids := make([]flex.AssetID, len(events))
	for i, e := range events {
		ids[i] = e.AssetID
	}

	names, err := all.AssetNames(ctx, ids)
	if err != nil {
		return err
	}

	for _, e := range events {
		v.Events = append(v.Events, eventLine(&e, names[e.AssetID]))
	}

	return v.markUnpaid(ctx, tx)
}

// markUnpaid marks the events that have no baseline: their flex of 0 was not measured.
func (v *Overview) markUnpaid(ctx context.Context, tx *store.Tx) error {
	var ids []flex.FlexEventID
	for _, e := range v.Events {
		if e.Flex != nil && *e.Flex == 0 {
			ids = append(ids, e.ID)
		}
	}

	noBaseline, err := tx.WithoutBaseline(ctx, ids)
	for i := range v.Events {
		if e := &v.Events[i]; noBaseline[e.ID] {
			e.NoBaseline, e.Flex = true, nil
		}
	}

	return err
}

// addMoney reads the books, and what the market owes and has paid.
func (v *Overview) addMoney(ctx context.Context, tx *store.Tx) error {
	sums, err := tx.AccountSums(ctx)
	if err != nil {
		return err
	}

	for _, a := range sums {
		v.Accounts = append(v.Accounts, AccountSum(a))
		if a.Account == ledger.RewardsPayable {
			v.Owed = -a.Sum
		}
	}

	files, err := tx.PaymentFiles(ctx, overviewFiles)
	if err != nil {
		return err
	}

	v.Files = fileRecords(files)

	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	v.Format = bankfile.Format(org.Settings.Payout.FileFormat)
	money, err := tx.MarketMoney(ctx)
	if err != nil {
		return err
	}

	for _, m := range money[max(0, len(money)-overviewMonths):] {
		v.Market = append(v.Market, MarketMoney(m))
	}

	v.Closed, err = tx.LastClosedMonth(ctx)

	return err
}

// addWithdrawals counts the withdrawals, and lists those of the requested status.
func (v *Overview) addWithdrawals(
	ctx context.Context,
	tx *store.Tx,
	q OverviewQuery,
) error {
	if q.Withdrawals == 0 {
		return nil
	}

	open, err := tx.OpenWithdrawals(ctx)
	if err != nil {
		return err
	}

	v.Waiting = open.Waiting
	v.WaitingSum = open.Sum
	v.Approved = open.Approved

	v.Withdrawals, err = withdrawalLines(
		ctx,
		tx,
		q.Status,
		flex.TransactionID{},
		q.Withdrawals,
	)

	return err
}

// withdrawalLines are the withdrawals at a status, or all for "", after one, oldest first.
func withdrawalLines(
	ctx context.Context,
	tx *store.Tx,
	status ledger.PaymentStatus,
	after flex.TransactionID,
	limit int,
) ([]WithdrawalLine, error) {
	found, err := payouts(ctx, tx, status, after, limit)
	if err != nil {
		return nil, err
	}

	ids := make([]flex.SiteID, len(found))
	for i := range found {
		ids[i] = found[i].SiteID
	}

	sites, err := tx.SitesByID(ctx, ids)
	if err != nil {
		return nil, err
	}

	var lines []WithdrawalLine
	for _, w := range found {
		lines = append(lines, WithdrawalLine{
			Payout:  w,
			Address: sites[w.SiteID].Address,
		})
	}

	return lines, nil
}

// WithdrawalQuery asks for a part of an organisation's withdrawals.
type WithdrawalQuery struct {
	Org    flex.OrgID           // the first of them if zero
	Status ledger.PaymentStatus // "" for all
	After  flex.TransactionID   // the last one of the part before
	Limit  int
}

// Withdrawals returns a part of an organisation's withdrawals, oldest first.
func (s *Service) Withdrawals(
	ctx context.Context,
	q WithdrawalQuery,
) ([]WithdrawalLine, error) {
	var lines []WithdrawalLine
	err := s.choose(ctx, q.Org, func(tx *store.Tx) error {
		var err error
		lines, err = withdrawalLines(ctx, tx, q.Status, q.After, q.Limit)
		return err
	})

	return lines, err
}

// RunComparison has the differences between two runs.
type RunComparison struct {
	Before  Run
	After   Run
	Changes []settle.Change
}

// CompareRuns is Compare with the runs themselves.
func (s *Service) CompareRuns(
	ctx context.Context,
	org flex.OrgID,
	before, after flex.RunID,
) (RunComparison, error) {
	var c RunComparison
	var err error
	c.Changes, err = s.Compare(ctx, org, before, after)
	if err != nil {
		return c, err
	}

	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		first, err := tx.Run(ctx, before)
		if err != nil {
			return err
		}

		second, err := tx.Run(ctx, after)
		c.Before, c.After = runOf(&first), runOf(&second)
		return err
	})

	return c, err
}

// EventView is one flex event with its result.
type EventView struct {
	Org       flex.Org
	Event     EventLine
	AssetName string
	Result    *settle.Result // nil until it is settled
	Prices    []EventPrice   // where its prices are from
	Note      string         // why there is no result
}

// EventView reads a flex event of any organisation in one transaction.
func (s *Service) EventView(
	ctx context.Context,
	id flex.FlexEventID,
) (EventView, error) {
	var v EventView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		v = EventView{}
		org, err := all.FlexEventOrg(ctx, id)
		if err != nil {
			return err
		}

		tx, err := all.For(ctx, org)
		if err != nil {
			return err
		}

		v.Org, err = tx.OrgRecord(ctx)
		if err != nil {
			return err
		}

		event, err := tx.FlexEvent(ctx, id)
		if err != nil {
			return err
		}

		names, err := all.AssetNames(ctx, []flex.AssetID{event.AssetID})
		if err != nil {
			return err
		}

		v.AssetName = names[event.AssetID]
		v.Event = eventLine(&event, v.AssetName)
		return v.addResult(ctx, tx)
	})

	return v, err
}

// addResult reads the event's result.
func (v *EventView) addResult(ctx context.Context, tx *store.Tx) error {
	settled, err := tx.NewestSettlement(ctx, v.Event.ID)
	if flex.KindOf(err) == flex.NotFound {
		v.Note = err.Error()
		return nil
	}

	if err != nil {
		return err
	}

	v.Result = settled.Result
	prices, err := EventPrices(ctx, tx, []*settle.Result{settled.Result})
	v.Prices = prices[v.Event.ID]

	return err
}
