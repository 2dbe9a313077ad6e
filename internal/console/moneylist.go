package console

import (
	"encoding/hex"
	"net/url"
	"strconv"

	"flexd/internal/flex"
	"flexd/internal/reward"
)

// moneyExports are where the tables of the settlement page can be had that are not its events.
type moneyExports struct{ Withdrawals, Files, Runs, Market, Books Export }

// moneyExports returns the tables of the organisation that is shown. The withdrawals have the
// page's status.
func (p *settlementPage) moneyExports() moneyExports {
	q := url.Values{}
	if !p.Org.IsZero() {
		q.Set("org", p.Org.String())
	}

	export := func(name string, q url.Values) Export {
		path := "/console/settlement/" + name
		tail := ""
		if len(q) > 0 {
			tail = "?" + q.Encode()
		}

		return Export{CSV: path + ".csv" + tail, JSON: path + ".json" + tail}
	}

	e := moneyExports{
		Files:  export("payment-files", q),
		Runs:   export("runs", q),
		Market: export("market-money", q),
		Books:  export("books", q),
	}

	q.Set("status", string(p.Status))
	e.Withdrawals = export("withdrawals", q)

	return e
}

// moneyOrg reads the organisation whose money is requested, where it is the only choice.
func moneyOrg(r *request) (flex.OrgID, error) {
	var org flex.OrgID
	if err := r.onlyFilters("org"); err != nil {
		return org, err
	}

	err := readFilter(&org, r.URL.Query().Get("org"), "organisation")

	return org, err
}

// books lists the balance of each account, as CSV or JSON.
func (s *Server) books(r *request) (view, error) {
	b, err := s.booksOf(r)
	t := &table{
		Name:    "books",
		Columns: []string{"account", "debit_gbp", "credit_gbp", "closed_up_to"},
	}

	var closed any
	if b.Closed.String() != "" {
		closed = b.Closed.String()
	}

	for _, a := range b.Accounts {
		debit, credit := max(a.Sum, 0), max(-a.Sum, 0)
		t.add(string(a.Account), float64(debit)/100, float64(credit)/100, closed)
	}

	return view{table: t}, err
}

// marketMoney lists what each counterparty owes for each month and has paid, as CSV or JSON.
func (s *Server) marketMoney(r *request) (view, error) {
	b, err := s.booksOf(r)
	t := &table{
		Name: "market-money",
		Columns: []string{
			"month",
			"counterparty",
			"expected_gbp",
			"received_gbp",
			"written_off_gbp",
			"difference_gbp",
		},
	}

	for _, m := range b.Market {
		t.add(
			m.Month.String(),
			m.Counterparty,
			float64(m.Expected)/100,
			float64(m.Received)/100,
			float64(m.WrittenOff)/100,
			float64(m.Difference())/100,
		)
	}

	return view{table: t}, err
}

func (s *Server) booksOf(r *request) (reward.Books, error) {
	org, err := moneyOrg(r)
	if err != nil {
		return reward.Books{}, err
	}

	return s.Reward.Books(r.Context(), org)
}

// runs answers the settlement runs, newest first, as CSV or JSON.
func (s *Server) runs(r *request) (view, error) {
	org, err := moneyOrg(r)
	if err != nil {
		return view{}, err
	}

	var before flex.RunID
	if err := readFilter(&before, r.URL.Query().Get("before"), "run"); err != nil {
		return view{}, err
	}

	var v view

	found, err := s.Reward.RunList(r.Context(), org, before, r.limit()+1)
	if len(found) > r.limit() {
		found = found[:r.limit()]
		v.next = r.with("before", found[len(found)-1].ID.String())
	}

	v.table = &table{
		Name:    "runs",
		Columns: []string{"run_id", "kind", "started_at", "known_at", "flex_events", "inputs_sha256"},
	}

	for _, run := range found {
		v.table.add(
			run.ID.String(),
			run.Kind,
			run.StartedAt,
			run.KnownAt,
			run.Events,
			run.Hash.String(),
		)
	}

	return v, err
}

// paymentFiles answers the payment files that were made, newest first, as CSV or JSON.
func (s *Server) paymentFiles(r *request) (view, error) {
	org, err := moneyOrg(r)
	if err != nil {
		return view{}, err
	}

	var v view
	var before int64
	if text := r.URL.Query().Get("before"); text != "" {
		before, err = strconv.ParseInt(text, 10, 64)
	}

	if err != nil {
		return v, flex.Fail(flex.Malformed, "before is the number of a payment file")
	}

	found, err := s.Reward.PaymentFileList(r.Context(), org, before, r.limit()+1)
	if len(found) > r.limit() {
		found = found[:r.limit()]
		v.next = r.with("before", strconv.FormatInt(found[len(found)-1].Number, 10))
	}

	v.table = paymentFileTable(found)

	return v, err
}

func paymentFileTable(files []reward.PaymentFileRecord) *table {
	t := &table{
		Name: "payment-files",
		Columns: []string{
			"number",
			"message",
			"serial",
			"format",
			"pay_on",
			"made_at",
			"made_by",
			"payments",
			"total_gbp",
			"sha256",
		},
	}

	for _, f := range files {
		t.add(
			f.Number,
			f.Message,
			f.Serial,
			f.Format,
			f.Day.String(),
			f.MadeAt,
			f.MadeBy,
			f.Payments,
			float64(f.Total)/100,
			hex.EncodeToString(f.SHA256),
		)
	}

	return t
}
