package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// runsMax is how many settlement runs are listed.
const runsMax = 30

// marketMax is how many lines of market money are shown.
const marketMax = 36

// filesMax is how many payment files are listed.
const filesMax = 10

// settlementPage is an organisation's runs, events and money.
type settlementPage struct {
	ofOrg
	Status      ledger.PaymentStatus
	Statuses    []ledger.PaymentStatus
	Withdrawals []withdrawalLine
	Waiting     int        // for approval
	WaitingSum  flex.Pence // of those
	Approved    int
	Formats     []bankfile.Format // of payment files
	Format      bankfile.Format   // the one that is set
	Files       []store.PaymentFile
	Owed        flex.Pence // to users
	Accounts    []store.AccountSum
	Market      []store.MarketMoney // the newest months
	Closed      ledger.Month        // the last closed month of the books
	Events      []eventLine
	Next        string
	Runs        []store.Run
	Today       flex.Day
	MonthAgo    flex.Day
	Export      Export
}

type withdrawalLine struct {
	reward.Payout
	SiteName string
	MayMove  []move
}

// move is a decision that an operator may take on a withdrawal.
type move struct {
	To   ledger.PaymentStatus
	Verb string
}

// decisions are the moves that are an operator's; the others are the bank's.
var decisions = map[ledger.PaymentStatus][]move{
	ledger.PendingApproval: {{ledger.Approved, "Approve"}, {ledger.Rejected, "Reject"}},
	ledger.Approved:        {{ledger.Cancelled, "Cancel"}},
	ledger.Failed:          {{ledger.PendingApproval, "Try again"}},
}

type eventLine struct {
	store.FlexEvent
	AssetName string
}

func (s *Server) settlement(r *request) (view, error) {
	q := r.URL.Query()
	p := &settlementPage{Status: ledger.PaymentStatus(q.Get("status")), Statuses: ledger.Statuses, Export: r.exports()}

	if !q.Has("status") {
		p.Status = ledger.PendingApproval
	}

	if err := readFilter(&p.Org, q.Get("org"), "organisation"); err != nil {
		return view{}, err
	}

	before := time.Time{}
	if text := q.Get("before"); text != "" {
		var err error
		before, err = time.Parse(time.RFC3339, text)
		if err != nil {
			return view{}, flex.Fail(flex.Malformed, "before is an instant such as 2026-01-14T00:00:00Z")
		}
	}

	err := s.DB.ReadAll(r.Context(), func(all *store.All) error { return p.fill(r, all, before) })
	if err != nil {
		return view{}, err
	}
	if err := s.withdrawals(r.Context(), p); err != nil {
		return view{}, err
	}

	t := &table{Name: "flex-events", Columns: []string{"flex_event_id", "asset_id", "external_id", "from", "to", "flex_wh", "estimated_gbp", "final_gbp", "missing", "version"}}
	for _, e := range p.Events {
		var energy, final any
		if e.Flex != nil {
			energy = int64(*e.Flex)
		}

		if e.Final != nil {
			final = e.Final.GBP()
		}

		t.add(e.ID.String(), e.AssetID.String(), e.AssetName, e.From, e.To, energy, e.Estimated.GBP(), final, e.Missing, e.Version)
	}

	return view{page: "settlement", title: "Settlement and rewards", data: p, table: t}, nil
}

func (p *settlementPage) fill(r *request, all *store.All, before time.Time) (err error) {
	ctx := r.Context()
	tx, err := p.choose(ctx, all)
	if tx == nil || err != nil {
		return err
	}

	p.Today = flex.DayAt(tx.Now())
	p.MonthAgo = p.Today.Add(-30)
	err = errors.Join(p.money(ctx, all, tx), p.market(ctx, tx))
	if err != nil {
		return err
	}

	p.Runs, err = tx.Runs(ctx, runsMax)
	if err != nil {
		return err
	}

	if before.IsZero() {
		before = tx.Now().Add(24 * time.Hour)
	}

	events, err := tx.NewestFlexEvents(ctx, before, r.limit()+1)
	if err != nil {
		return err
	}

	if err := r.whole(len(events)); err != nil {
		return err
	}

	if len(events) > r.limit() {
		events = events[:r.limit()]
		p.Next = r.with("before", events[len(events)-1].From.Format(time.RFC3339))
	}

	ids := make([]flex.AssetID, len(events))
	for i, e := range events {
		ids[i] = e.AssetID
	}

	names, err := all.AssetNames(ctx, ids)
	for _, e := range events {
		p.Events = append(p.Events, eventLine{e, names[e.AssetID]})
	}

	return err
}

// market reads what the market owes and paid, and up to when the books are closed.
func (p *settlementPage) market(ctx context.Context, tx *store.Tx) error {
	money, err := tx.MarketMoney(ctx)
	if err != nil {
		return err
	}
	p.Market = money[max(0, len(money)-marketMax):]
	p.Closed, err = tx.LastClosedMonth(ctx)
	return err
}

// money reads the books and the withdrawals.
func (p *settlementPage) money(ctx context.Context, all *store.All, tx *store.Tx) (err error) {
	p.Accounts, err = tx.AccountSums(ctx)
	if err != nil {
		return err
	}

	for _, a := range p.Accounts {
		if a.Account == ledger.RewardsPayable {
			p.Owed = -a.Sum
		}
	}

	if err := p.paymentFiles(ctx, tx); err != nil {
		return err
	}

	ws, err := tx.Withdrawals(ctx, "")
	if err != nil {
		return err
	}

	for _, w := range ws {
		switch w.Status {
		case ledger.PendingApproval:
			p.Waiting, p.WaitingSum = p.Waiting+1, p.WaitingSum+w.Amount
		case ledger.Approved:
			p.Approved++
		}
	}

	return nil
}

// paymentFiles reads which files were made, and what the next one is written as.
func (p *settlementPage) paymentFiles(ctx context.Context, tx *store.Tx) (err error) {
	p.Files, err = tx.PaymentFiles(ctx, filesMax)
	if err != nil {
		return err
	}

	org, err := tx.OrgRecord(ctx)
	p.Formats, p.Format = bankfile.Formats, bankfile.Format(org.Settings.Payout.FileFormat)
	return err
}

// withdrawals lists the withdrawals of the status that was asked for.
func (s *Server) withdrawals(ctx context.Context, p *settlementPage) error {
	if p.Org.IsZero() {
		return nil
	}

	found, err := s.Reward.Payouts(ctx, p.Org, p.Status)
	if err != nil {
		return err
	}

	return s.DB.Read(ctx, p.Org, func(tx *store.Tx) error {
		for _, w := range found[:min(len(found), exportMax)] {
			l := withdrawalLine{Payout: w, SiteName: short(w.SiteID), MayMove: decisions[w.Status]}

			site, err := tx.Site(ctx, w.SiteID)
			if err != nil && flex.KindOf(err) != flex.NotFound {
				return err
			}

			if site.Address.Reveal() != "" {
				l.SiteName = site.Address.Reveal()
			}

			p.Withdrawals = append(p.Withdrawals, l)
		}

		return nil
	})
}

// decide moves a withdrawal by the operator's decision.
func (s *Server) decide(r *request) (view, error) {
	var org flex.OrgID
	var id flex.TransactionID

	if err := readID(&org, r.PathValue("org"), "organisation"); err != nil {
		return view{}, err
	}
	if err := readID(&id, r.PathValue("id"), "withdrawal"); err != nil {
		return view{}, err
	}

	to, note := ledger.PaymentStatus(r.PathValue("to")), r.PostFormValue("note")
	switch to {
	case ledger.Approved, ledger.Rejected, ledger.Cancelled, ledger.PendingApproval:
	default:
		return view{}, flex.Fail(flex.NotFound, "a withdrawal is approved, rejected, cancelled or tried again, not %q", to)
	}

	act := store.Act{Act: "withdrawal " + string(to), Org: org, Subject: id.String(), Detail: note}
	err := s.act(r, act, func() error {
		_, err := s.Reward.Decide(r.Context(), org, id, to, r.who.Name, note)
		return err
	})

	return view{to: "/console/settlement?org=" + org.String() + "&done=decided"}, err
}

// overrideName lets another operator approve a withdrawal though the name on its account does not
// match, for a reason that is kept and shown to them.
func (s *Server) overrideName(r *request) (view, error) {
	var org flex.OrgID
	var id flex.TransactionID

	if err := readID(&org, r.PathValue("org"), "organisation"); err != nil {
		return view{}, err
	}
	if err := readID(&id, r.PathValue("id"), "withdrawal"); err != nil {
		return view{}, err
	}

	reason, err := confirmed(r)
	if err != nil {
		return view{}, err
	}

	err = s.act(r, store.Act{Act: "override the check of a name", Org: org, Subject: id.String(), Detail: reason}, func() error {
		return s.Reward.OverrideName(r.Context(), org, id, r.who.Name, reason)
	})

	return view{to: "/console/settlement?org=" + org.String() + "&done=overrode"}, err
}

// payments answers the payment file of what is approved, which then counts as given to the
// bank.
func (s *Server) payments(r *request) (view, error) {
	var org flex.OrgID
	if err := readID(&org, r.PathValue("org"), "organisation"); err != nil {
		return view{}, err
	}

	o := reward.ExportOptions{Again: r.PostFormValue("again") != "", Message: r.PostFormValue("message")}
	if text := r.PostFormValue("format"); text != "" {
		format, err := bankfile.ReadFormat(text)
		if err != nil {
			return view{}, err
		}

		o.Format = format
	}

	var file reward.PaymentFile
	act := store.Act{Act: "export payments", Org: org, Who: r.who.Name, Source: r.from}
	err := s.Access.ActWithDetail(r.Context(), act, func() (detail string, err error) {
		file, err = s.Reward.Export(r.Context(), org, r.who.Name, o)
		if err != nil {
			return "", err
		}
		return file.String(), nil
	})

	if err != nil {
		return view{}, err
	}

	return view{file: &download{file.Name(), bankfile.Format(file.Format).ContentType(), file.Content}}, nil
}

// settleAgain settles a time once more, to be compared.
func (s *Server) settleAgain(r *request) (view, error) {
	var org flex.OrgID
	if err := readID(&org, r.PathValue("org"), "organisation"); err != nil {
		return view{}, err
	}

	var a reward.Again
	var err1, err2 error
	a.From, err1 = flex.ParseDay(r.PostFormValue("from"))
	a.To, err2 = flex.ParseDay(r.PostFormValue("to"))
	if err1 != nil || err2 != nil {
		return view{}, flex.Fail(flex.Malformed, "a day is written YYYY-MM-DD")
	}

	err := s.act(r, store.Act{Act: "settle again", Org: org, Subject: fmt.Sprintf("%s to %s", a.From, a.To)}, func() error {
		_, err := s.Reward.SettleAgain(r.Context(), org, a)
		return err
	})
	return view{to: "/console/settlement?org=" + org.String() + "&done=settled#runs"}, err
}

// comparePage is what two runs say differently.
type comparePage struct {
	Org           flex.OrgID
	Before, After store.Run
	Changes       []settle.Change
}

func (s *Server) compareRuns(r *request) (view, error) {
	var p comparePage
	var before, after flex.RunID

	if err := readID(&p.Org, r.URL.Query().Get("org"), "organisation"); err != nil {
		return view{}, err
	}
	if err := readID(&before, r.URL.Query().Get("run_before"), "run"); err != nil {
		return view{}, err
	}

	if err := readID(&after, r.URL.Query().Get("run_after"), "run"); err != nil {
		return view{}, err
	}

	var err error
	p.Changes, err = s.Reward.Compare(r.Context(), p.Org, before, after)
	if err != nil {
		return view{}, err
	}

	err = s.DB.Read(r.Context(), p.Org, func(tx *store.Tx) error {
		p.Before, err = tx.Run(r.Context(), before)
		if err != nil {
			return err
		}

		p.After, err = tx.Run(r.Context(), after)
		return err
	})

	t := &table{Name: "comparison", Columns: []string{"flex_event_id", "what", "before", "after"}}
	for _, c := range p.Changes {
		t.add(c.Event.String(), c.What, c.Before, c.After)
	}

	return view{page: "compare", title: "Two runs compared", crumbs: []crumb{{"Settlement and rewards", "/console/settlement?org=" + p.Org.String()}}, data: p, table: t}, err
}

// flexEventPage is one flex event: baseline against metered, and what it came to.
type flexEventPage struct {
	Org       flex.Org
	Event     store.FlexEvent
	AssetName string
	Result    *settle.Result // nil until it is settled
	Lines     []settledLine
	Prices    []reward.EventPrice // where its prices are from
	Note      string
}

type settledLine struct {
	Start    time.Time      `json:"start"`
	Baseline float64        `json:"baseline_kwh"`
	Metered  *float64       `json:"metered_kwh"`
	Flex     *float64       `json:"flex_kwh"`
	Price    *float64       `json:"price_gbp_per_mwh"`
	Source   string         `json:"price_source"`
	Exact    settle.Settled `json:"-"`
}

func (s *Server) flexEvent(r *request) (view, error) {
	var id flex.FlexEventID
	if err := readID(&id, r.PathValue("id"), "flex event"); err != nil {
		return view{}, err
	}

	p := &flexEventPage{}
	err := s.DB.ReadAll(r.Context(), func(all *store.All) error {
		org, err := all.FlexEventOrg(r.Context(), id)
		if err != nil {
			return err
		}

		tx, err := all.For(r.Context(), org)
		if err != nil {
			return err
		}

		p.Org, err = tx.OrgRecord(r.Context())
		if err != nil {
			return err
		}

		p.Event, err = tx.FlexEvent(r.Context(), id)
		if err != nil {
			return err
		}

		names, err := all.AssetNames(r.Context(), []flex.AssetID{p.Event.AssetID})
		if err != nil {
			return err
		}

		p.AssetName = names[p.Event.AssetID]

		settled, err := tx.NewestSettlement(r.Context(), id)
		if flex.KindOf(err) == flex.NotFound {
			p.Note = sentence(err.Error())
			return nil
		}

		if err != nil {
			return err
		}

		p.Result = settled.Result
		prices, err := reward.EventPrices(r.Context(), tx, []*settle.Result{settled.Result})
		p.Prices = prices[id]
		return err
	})

	if err != nil {
		return view{}, err
	}

	if p.Result != nil {
		p.addLines()
	}

	t := &table{Name: "flex-event", Columns: []string{"start", "baseline_kwh", "metered_kwh", "flex_kwh", "price_gbp_per_mwh", "price_source"}}
	for _, l := range p.Lines {
		t.add(l.Start, l.Baseline, orNull(l.Metered), orNull(l.Flex), orNull(l.Price), l.Source)
	}

	crumbs := []crumb{{"Settlement and rewards", "/console/settlement?org=" + p.Org.ID.String()}, {p.AssetName, "/console/assets/" + p.Event.AssetID.String()}}
	return view{page: "flexevent", title: "Flex event", crumbs: crumbs, data: p, table: t}, nil
}

func (p *flexEventPage) addLines() {
	for _, q := range p.Result.Periods {
		l := settledLine{Start: p.Event.Day.Period(q.Period).Start(), Baseline: q.Baseline.KWh(), Exact: q, Source: q.Source}
		if q.Read {
			l.Metered = new(q.Metered.KWh())
		}

		if q.Known {
			l.Flex, l.Price = new(q.Flex.KWh()), new(q.Price.GBPPerMWh())
		}

		p.Lines = append(p.Lines, l)
	}
}

func orNull(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}
