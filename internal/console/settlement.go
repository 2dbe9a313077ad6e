package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/access"
	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/settle"
)

// settlementPage is an organisation's runs, events and money.
type settlementPage struct {
	reward.Overview
	Status      ledger.PaymentStatus
	Statuses    []ledger.PaymentStatus
	Withdrawals []withdrawalLine
	Formats     []bankfile.Format // of payment files
	Next        string
	MonthAgo    flex.Day
	Export      Export
	Tables      moneyExports
}

type withdrawalLine struct {
	reward.WithdrawalLine
	SiteName string
	MayMove  []move
}

// move is a decision about a withdrawal.
type move struct {
	To   ledger.PaymentStatus
	Verb string
	// Means says what the decision leads to, if it must not be made by mistake; then Word must
	// be typed for it.
	Means string
}

// Word is what must be typed for the decision, "" if a click is enough.
func (m move) Word() string {
	if m.Means == "" {
		return ""
	}

	return strings.ToLower(m.Verb)
}

// decisions are the moves that operators decide about; the bank decides about the others.
var decisions = map[ledger.PaymentStatus][]move{
	ledger.PendingApproval: {
		{ledger.Approved, "Approve", "The next payment file has it."},
		{ledger.Rejected, "Reject", "It goes back to the balance, and the user has to request it again."},
	},
	ledger.Approved: {
		{ledger.Cancelled, "Cancel", "It goes back to the balance, and the user has to request it again."},
	},
	ledger.Failed: {{ledger.PendingApproval, "Try again", ""}},
}

// decision is the operators' move to a status.
func decision(to ledger.PaymentStatus) (move, error) {
	for _, moves := range decisions {
		for _, m := range moves {
			if m.To == to {
				return m, nil
			}
		}
	}

	return move{}, flex.Fail(
		flex.NotFound,
		"a withdrawal is approved, rejected, cancelled or tried again, not %q",
		to,
	)
}

func (s *Server) settlement(r *request) (view, error) {
	if err := r.onlyFilters("status", "org"); err != nil {
		return view{}, err
	}

	q := r.URL.Query()
	p := &settlementPage{
		Status:   ledger.PaymentStatus(q.Get("status")),
		Statuses: ledger.Statuses,
		Export:   r.exports(),
	}

	if !q.Has("status") {
		p.Status = ledger.PendingApproval
	}

	if err := knownStatus(p.Status); err != nil {
		return view{}, err
	}

	query := reward.OverviewQuery{
		Status: p.Status,
		Events: r.limit() + 1,
	}

	// they are no part of the table to download
	if !r.exporting() {
		query.Withdrawals = reward.SelectionMax
	}

	if err := readFilter(&query.Org, q.Get("org"), "organisation"); err != nil {
		return view{}, err
	}

	var err error
	query.Before, query.BeforeID, err = eventCursor(q.Get("before"))
	if err != nil {
		return view{}, err
	}

	p.Overview, err = s.Reward.Overview(r.Context(), query)
	if err != nil {
		return view{}, err
	}
	p.layOut(r)
	p.Tables = p.moneyExports()

	return view{
		page:  "settlement",
		title: "Settlement and rewards",
		data:  p,
		table: p.table(),
		next:  p.Next,
	}, nil
}

// knownStatus refuses an unknown status of withdrawals; "" is all.
func knownStatus(status ledger.PaymentStatus) error {
	if status == "" || slices.Contains(ledger.Statuses, status) {
		return nil
	}

	return flex.Fail(
		flex.Invalid,
		"there is no status %q of a withdrawal",
		string(status),
	)
}

// withdrawals answers an organisation's withdrawals, oldest first, as CSV or JSON.
func (s *Server) withdrawals(r *request) (view, error) {
	if err := r.onlyFilters("status", "org"); err != nil {
		return view{}, err
	}

	query := r.URL.Query()
	q := reward.WithdrawalQuery{
		Status: ledger.PaymentStatus(query.Get("status")),
		Limit:  r.limit() + 1,
	}
	if err := knownStatus(q.Status); err != nil {
		return view{}, err
	}

	if err := readFilter(&q.Org, query.Get("org"), "organisation"); err != nil {
		return view{}, err
	}

	if err := readFilter(&q.After, query.Get("before"), "withdrawal"); err != nil {
		return view{}, err
	}

	found, err := s.Reward.Withdrawals(r.Context(), q)
	if err != nil {
		return view{}, err
	}

	next := ""
	if len(found) > r.limit() {
		found = found[:r.limit()]
		next = r.with("before", found[len(found)-1].ID.String())
	}

	return view{table: withdrawalTable(found), next: next}, nil
}

func withdrawalTable(lines []reward.WithdrawalLine) *table {
	t := &table{
		Name: "withdrawals",
		Columns: []string{
			"withdrawal_id",
			"site_id",
			"amount_gbp",
			"status",
			"asked_at",
			"changed_at",
			"attempt",
			"account_ending",
			"reference",
			"note",
		},
	}

	for _, w := range lines {
		t.add(
			w.ID.String(),
			w.SiteID.String(),
			float64(w.Amount)/100,
			string(w.Status),
			w.AskedAt,
			w.ChangedAt,
			w.Attempt,
			w.Ending,
			w.Reference,
			w.Note,
		)
	}

	return t
}

// SelectionMax is how many withdrawals are approved as one selection.
func (*settlementPage) SelectionMax() int { return reward.SelectionMax }

// layOut limits the list of events to a page, and sets the possible decisions about
// withdrawals.
func (p *settlementPage) layOut(r *request) {
	if len(p.Events) > r.limit() {
		p.Events = p.Events[:r.limit()]
		last := &p.Events[len(p.Events)-1]
		p.Next = r.with(
			"before",
			last.From.UTC().Format(time.RFC3339)+" "+last.ID.String(),
		)
	}

	p.Formats, p.MonthAgo = bankfile.Formats, p.Today.Add(-30)
	for _, w := range p.Overview.Withdrawals {
		name := cmp.Or(w.Address.Reveal(), short(w.SiteID))
		p.Withdrawals = append(p.Withdrawals, withdrawalLine{
			w,
			name,
			decisions[w.Status],
		})
	}
}

// eventCursor reads where a page of flex events begins: an instant, and the id of the last
// event of the previous page, because many events begin at the same instant.
func eventCursor(text string) (time.Time, flex.FlexEventID, error) {
	var at time.Time
	var id flex.FlexEventID
	if text == "" {
		return at, id, nil
	}

	instant, event, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339, instant)
	if err != nil {
		return at, id, flex.Fail(
			flex.Malformed,
			"before is an instant such as 2026-01-14T00:00:00Z",
		)
	}

	err = readFilter(&id, event, "flex event")

	return at, id, err
}

func (p *settlementPage) table() *table {
	t := &table{
		Name: "flex-events",
		Columns: []string{
			"flex_event_id",
			"asset_id",
			"external_id",
			"from",
			"to",
			"flex_wh",
			"estimated_gbp",
			"final_gbp",
			"missing",
			"version",
		},
	}

	for _, e := range p.Events {
		var energy, estimated, final any
		if e.Flex != nil {
			energy = int64(*e.Flex)
		}

		if !e.NoBaseline {
			estimated = e.Estimated.GBP()
		}

		if e.Final != nil && !e.NoBaseline {
			final = e.Final.GBP()
		}

		t.add(
			e.ID.String(),
			e.AssetID.String(),
			e.AssetName,
			e.From,
			e.To,
			energy,
			estimated,
			final,
			e.Missing,
			e.Version,
		)
	}

	return t
}

// decide carries out the operator's decision about a withdrawal.
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
	m, err := decision(to)
	if err == nil && m.Means != "" {
		err = checkConfirmation(r, m.Word())
	}

	if err != nil {
		return view{}, err
	}

	act := access.Action{
		Act:     "withdrawal " + string(to),
		Org:     org,
		Subject: id.String(),
		Detail:  note,
	}

	err = s.act(r, act, func() error {
		_, err := s.Reward.Decide(r.Context(), org, id, to, r.operator.Name, note)
		return err
	})

	return view{to: decidedPath(r, org, "decided")}, err
}

// decidedPath returns the address of the list where a decision was made, with the status that
// was shown there.
func decidedPath(r *request, org flex.OrgID, done string) string {
	path := "/console/settlement?org=" + org.String() + "&done=" + done
	status := r.PostForm["status"]
	if len(status) == 0 || knownStatus(ledger.PaymentStatus(status[0])) != nil {
		return path
	}

	return path + "&status=" + status[0]
}

// overrideName allows another operator to approve a withdrawal although the name on its
// account does not match. The reason is stored and shown to them.
func (s *Server) overrideName(r *request) (view, error) {
	var org flex.OrgID
	var id flex.TransactionID

	if err := readID(&org, r.PathValue("org"), "organisation"); err != nil {
		return view{}, err
	}

	if err := readID(&id, r.PathValue("id"), "withdrawal"); err != nil {
		return view{}, err
	}

	reason, err := confirmedDecision(r, "")
	if err != nil {
		return view{}, err
	}

	err = s.act(
		r,
		access.Action{
			Act:     "override the check of a name",
			Org:     org,
			Subject: id.String(),
			Detail:  reason,
		},
		func() error {
			return s.Reward.OverrideName(
				r.Context(),
				org,
				id,
				r.operator.Name,
				reason,
			)
		},
	)

	return view{to: decidedPath(r, org, "overrode")}, err
}

// payments returns the payment file of the approved withdrawals. They then count as given to
// the bank.
func (s *Server) payments(r *request) (view, error) {
	var org flex.OrgID
	if err := readID(&org, r.PathValue("org"), "organisation"); err != nil {
		return view{}, err
	}

	if err := checkConfirmation(r, "export"); err != nil {
		return view{}, err
	}

	o := reward.ExportOptions{
		Repeat:  r.PostFormValue("again") != "",
		Message: r.PostFormValue("message"),
	}

	if text := r.PostFormValue("format"); text != "" {
		format, err := bankfile.ReadFormat(text)
		if err != nil {
			return view{}, err
		}

		o.Format = format
	}

	var file reward.PaymentFile
	act := access.Action{Act: "export payments", Org: org}.By(r.operator.Name, r.from)
	err := s.Access.ActWithDetail(r.Context(), act, func() (string, error) {
		var err error
		file, err = s.Reward.Export(r.Context(), org, r.operator.Name, o)
		if err != nil {
			return "", err
		}
		return file.String(), nil
	})

	if err != nil {
		return view{}, err
	}

	return view{file: &download{
		file.Name(),
		bankfile.Format(file.Format).ContentType(),
		file.Content,
	}}, nil
}

// resettle settles a time once more, for a comparison.
func (s *Server) resettle(r *request) (view, error) {
	var org flex.OrgID
	if err := readID(&org, r.PathValue("org"), "organisation"); err != nil {
		return view{}, err
	}

	var a reward.Resettlement
	var err1, err2 error
	a.From, err1 = flex.ParseDay(r.PostFormValue("from"))
	a.To, err2 = flex.ParseDay(r.PostFormValue("to"))
	if err1 != nil || err2 != nil {
		return view{}, flex.Fail(flex.Malformed, "a day is written YYYY-MM-DD")
	}

	err := s.act(
		r,
		access.Action{
			Act:     "settle again",
			Org:     org,
			Subject: fmt.Sprintf("%s to %s", a.From, a.To),
		},
		func() error {
			_, err := s.Reward.Resettle(r.Context(), org, a)
			return err
		},
	)

	return view{to: "/console/settlement?org=" + org.String() +
		"&done=settled#runs"}, err
}

// comparePage has the differences of two runs.
type comparePage struct {
	Org flex.OrgID
	reward.RunComparison
}

func (s *Server) compareRuns(r *request) (view, error) {
	if err := r.onlyFilters("org", "run_before", "run_after"); err != nil {
		return view{}, err
	}

	var p comparePage
	var before, after flex.RunID

	if err := readID(
		&p.Org,
		r.URL.Query().Get("org"),
		"organisation",
	); err != nil {
		return view{}, err
	}

	if err := readID(
		&before,
		r.URL.Query().Get("run_before"),
		"run",
	); err != nil {
		return view{}, err
	}

	if err := readID(
		&after,
		r.URL.Query().Get("run_after"),
		"run",
	); err != nil {
		return view{}, err
	}

	var err error
	p.RunComparison, err = s.Reward.CompareRuns(
		r.Context(),
		p.Org,
		before,
		after,
	)

	if err != nil {
		return view{}, err
	}

	t := &table{
		Name:    "comparison",
		Columns: []string{"flex_event_id", "what", "before", "after"},
	}

	for _, c := range p.Changes {
		t.add(c.Event.String(), c.What, c.Before, c.After)
	}

	return view{
		page:   "compare",
		title:  "Two runs compared",
		crumbs: []crumb{{"Settlement and rewards", "/console/settlement?org=" + p.Org.String()}},
		data:   p,
		table:  t,
	}, err
}

// flexEventPage is one flex event: baseline, metered energy and result.
type flexEventPage struct {
	reward.EventView
	Lines []settledLine
}

type settledLine struct {
	Start    time.Time      `json:"start"`
	Baseline *float64       `json:"baseline_kwh"` // nil without one
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
	var err error
	p.EventView, err = s.Reward.EventView(r.Context(), id)
	if err != nil {
		return view{}, err
	}

	p.Note = sentence(p.Note)
	if p.Result != nil {
		p.addLines()
	}

	t := &table{
		Name: "flex-event",
		Columns: []string{
			"start",
			"baseline_kwh",
			"metered_kwh",
			"flex_kwh",
			"price_gbp_per_mwh",
			"price_source",
		},
	}

	for _, l := range p.Lines {
		t.add(
			l.Start,
			orNull(l.Baseline),
			orNull(l.Metered),
			orNull(l.Flex),
			orNull(l.Price),
			l.Source,
		)
	}

	crumbs := []crumb{
		{"Settlement and rewards", "/console/settlement?org=" + p.Org.ID.String()},
		{p.AssetName, "/console/assets/" + p.Event.AssetID.String()},
	}

	return view{
		page:   "flexevent",
		title:  "Flex event",
		crumbs: crumbs,
		data:   p,
		table:  t,
	}, nil
}

func (p *flexEventPage) addLines() {
	for _, q := range p.Result.Periods {
		l := settledLine{
			Start:  p.Event.Day.Period(q.Period).Start(),
			Exact:  q,
			Source: q.Source,
		}

		if q.Compared || q.Baseline != 0 {
			l.Baseline = new(q.Baseline.KWh())
		}

		if q.Read {
			l.Metered = new(q.Metered.KWh())
		}

		if q.Known {
			l.Price = new(q.Price.GBPPerMWh())
		}

		if q.Known && l.Baseline != nil {
			l.Flex = new(q.Flex.KWh())
		}

		p.Lines = append(p.Lines, l)
	}
}

// NoBaseline reports whether there were too few days for a baseline.
func (p *flexEventPage) NoBaseline() bool {
	return p.Result.Quality == settle.Insufficient
}

func orNull(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}
