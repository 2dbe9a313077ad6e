package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"flexd/internal/app"
	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	records "flexd/internal/store"
)

// payouts is `flexd payouts`.
type payouts struct {
	List    payoutsList    `cmd:"" help:"Withdrawals and where their payment stands."`
	Approve payoutsApprove `cmd:"" help:"Let withdrawals be paid."`
	Reject  payoutsReject  `cmd:"" help:"Refuse withdrawals; the money goes back to the balances."`
	Export  payoutsExport  `cmd:"" help:"Write the payment file of what is approved, which counts as given to the bank from then on."`
	Import  payoutsImport  `cmd:"" help:"Read what became of payments, from a CSV with the columns withdrawal_id, status (posted|failed|returned) and, if you have them, attempt and note."`
}

// ofOrg is the flags of commands that work on one organisation's records.
type ofOrg struct {
	store
	Org string `help:"The organisation's name; may be left out if there is one alone." env:"FLEXD_ORG" placeholder:"NAME"`
}

// openOrg opens flexd and finds the organisation.
func (o ofOrg) openOrg(ctx context.Context) (*app.App, flex.Org, error) {
	h, err := o.open(ctx)
	if err != nil {
		return nil, flex.Org{}, err
	}
	var org flex.Org
	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		if o.Org != "" {
			org, err = orgNamed(ctx, all, o.Org)
			return err
		}
		orgs, err := all.Orgs(ctx)
		if err != nil {
			return err
		}
		if len(orgs) != 1 {
			return flex.Fail(flex.Invalid, "there are %d organisations: name one with --org; flexd org list prints them", len(orgs))
		}
		org = orgs[0]
		return nil
	})
	if err != nil {
		h.Close()
		return nil, org, err
	}
	return h, org, nil
}

// act does something to the organisation's money, in the audit log.
func (o ofOrg) actOn(ctx context.Context, act, subject string, do func(*app.App, flex.Org) error) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Access.Act(ctx, records.Act{Who: commandLine, Org: org.ID, Act: act, Subject: subject}, func() error { return do(h, org) })
}

type payoutsList struct {
	ofOrg
	Status string `help:"Only those at this status, such as pending_approval." placeholder:"STATUS"`
	JSON   bool   `help:"Print as JSON." name:"json"`
}

type payoutRow struct {
	ID      flex.TransactionID   `json:"withdrawal_id"`
	SiteID  flex.SiteID          `json:"site_id"`
	Amount  flex.Pence           `json:"amount_pence"`
	Status  ledger.PaymentStatus `json:"payment_status"`
	Attempt int                  `json:"attempt"`
	AskedAt time.Time            `json:"asked_at"`
	Changed time.Time            `json:"changed_at"`
}

// Run lists the withdrawals.
func (p *payoutsList) Run(ctx context.Context, c console) error {
	if status := ledger.PaymentStatus(p.Status); status != "" && !slices.Contains(ledger.Statuses, status) {
		return flex.Fail(flex.Invalid, "--status: %q is none of %v", status, ledger.Statuses)
	}
	h, org, err := p.openOrg(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	ws, err := h.Reward.Payouts(ctx, org.ID, ledger.PaymentStatus(p.Status))
	if err != nil {
		return err
	}
	rows := make([]payoutRow, len(ws))
	for i, w := range ws {
		rows[i] = payoutRow{w.ID, w.SiteID, w.Amount, w.Status, w.Attempt, w.AskedAt, w.ChangedAt}
	}
	if p.JSON {
		return c.json(rows)
	}
	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WITHDRAWAL\tSITE\tAMOUNT\tSTATUS\tASKED")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.SiteID, r.Amount, r.Status, r.AskedAt.Format(time.RFC3339))
	}
	return t.Flush()
}

type payoutsApprove struct {
	ofOrg
	IDs  []flex.TransactionID `arg:"" name:"withdrawal" help:"Withdrawals, by their id."`
	Note string               `help:"Kept with the decision." placeholder:"TEXT"`
}

// Run approves.
func (p *payoutsApprove) Run(ctx context.Context, c console) error {
	return p.decide(ctx, c, ledger.Approved)
}

type payoutsReject payoutsApprove

// Run rejects.
func (p *payoutsReject) Run(ctx context.Context, c console) error {
	return (*payoutsApprove)(p).decide(ctx, c, ledger.Rejected)
}

func (p *payoutsApprove) decide(ctx context.Context, c console, to ledger.PaymentStatus) error {
	var all error
	for _, id := range p.IDs {
		err := p.actOn(ctx, string(to)+" withdrawal", id.String(), func(h *app.App, org flex.Org) error {
			w, err := h.Reward.Decide(ctx, org.ID, id, to, commandLine, p.Note)
			if err == nil {
				fmt.Fprintf(c.out, "%s  %s  %s\n", w.ID, w.Amount, w.Status)
			}
			return err
		})
		all = errors.Join(all, err)
	}
	return all
}

type payoutsExport struct {
	ofOrg
	File  string `arg:"" help:"Where to write the CSV; it holds bank accounts, so it is made for its owner's eyes alone. - is standard output."`
	Again bool   `help:"Write what was exported before and has no result yet, for a file that was lost."`
}

// Run exports. The file is made before anything counts as exported.
func (p *payoutsExport) Run(ctx context.Context, c console) error {
	out := c.out
	if p.File != "-" {
		f, err := os.OpenFile(p.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}
	return p.actOn(ctx, "export payments", p.File, func(h *app.App, org flex.Org) error {
		payments, err := h.Reward.Export(ctx, org.ID, commandLine, p.Again)
		if err != nil {
			return err
		}
		var total flex.Pence
		w := csvfile.NewWriter(out, "withdrawal_id", "attempt", "name", "sort_code", "account_number", "amount_gbp", "reference")
		for _, pay := range payments {
			total += pay.Amount
			w.Write(pay.ID.String(), pay.Attempt, pay.Name.Reveal(), pay.SortCode.Reveal(), pay.Number.Reveal(),
				fmt.Sprintf("%d.%02d", pay.Amount/100, pay.Amount%100), pay.Reference)
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("write the payment file; write it again with --again: %w", err)
		}
		fmt.Fprintf(c.err, "%d payments of %s in all\n", len(payments), total)
		return nil
	})
}

type payoutsImport struct {
	ofOrg
	File string `arg:"" help:"The CSV; - reads standard input."`
}

// Run imports results, all or none.
func (p *payoutsImport) Run(ctx context.Context, c console) error {
	in := c.in
	if p.File != "-" {
		f, err := os.Open(p.File)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	results, err := readResults(in)
	if err != nil {
		return err
	}
	return p.actOn(ctx, "import payment results", p.File, func(h *app.App, org flex.Org) error {
		moved, err := h.Reward.Import(ctx, org.ID, commandLine, results)
		if err == nil {
			fmt.Fprintf(c.err, "%d results, %d of them new\n", len(results), moved)
		}
		return err
	})
}

// readResults reads a CSV of results, whose columns may come in any order.
func readResults(in io.Reader) (results []reward.PaymentResult, err error) {
	for row, err := range csvfile.Read(in, "withdrawal_id", "status") {
		if err != nil {
			return nil, err
		}
		r := reward.PaymentResult{Status: ledger.PaymentStatus(row.Get("status")), Note: row.Get("note")}
		if err := r.ID.UnmarshalText([]byte(row.Get("withdrawal_id"))); err != nil {
			return nil, row.Fault("%v", err)
		}
		if attempt := row.Get("attempt"); attempt != "" {
			if r.Attempt, err = strconv.Atoi(attempt); err != nil || r.Attempt < 1 {
				return nil, row.Fault("an attempt is a number from 1, as in the payment file, not %q", attempt)
			}
		}
		results = append(results, r)
	}
	return results, nil
}
