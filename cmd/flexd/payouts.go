package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
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

	Ending    string     `json:"account_ending,omitempty"`
	LinkedAt  *time.Time `json:"account_linked_at,omitempty"`
	Sites     int        `json:"account_sites,omitempty"`
	Reference string     `json:"reference,omitempty"`
	Approvals []string   `json:"approved_by,omitempty"`
	Note      string     `json:"note,omitempty"`
	Warnings  []string   `json:"warnings,omitempty"`
}

func payoutRowOf(p reward.Payout) payoutRow {
	r := payoutRow{
		ID: p.ID, SiteID: p.SiteID, Amount: p.Amount, Status: p.Status, Attempt: p.Attempt, AskedAt: p.AskedAt, Changed: p.ChangedAt,
		Ending: p.Ending, Sites: p.Sites, Reference: p.Reference, Approvals: p.Approvals, Note: p.Note, Warnings: p.Warnings,
	}

	if !p.LinkedAt.IsZero() {
		r.LinkedAt = &p.LinkedAt
	}

	return r
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
		rows[i] = payoutRowOf(w)
	}

	if p.JSON {
		return c.json(rows)
	}

	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WITHDRAWAL\tSITE\tAMOUNT\tSTATUS\tASKED\tACCOUNT\tLINKED\tSITES\tWARNINGS")

	for _, r := range rows {
		linked := ""
		if r.LinkedAt != nil {
			linked = r.LinkedAt.Format(time.RFC3339)
		}

		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", r.ID, r.SiteID, r.Amount, r.Status, r.AskedAt.Format(time.RFC3339),
			r.Ending, linked, r.Sites, strings.Join(r.Warnings, "; "))
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
				fmt.Fprintf(c.out, "%s  %s  %s%s\n", w.ID, w.Amount, w.Status, waitsForSecond(to, w.Status))
			}

			return err
		})

		all = errors.Join(all, err)
	}

	return all
}

// waitsForSecond says that an approval was not enough.
func waitsForSecond(asked, is ledger.PaymentStatus) string {
	if asked == ledger.Approved && is == ledger.PendingApproval {
		return " (approved by you; a second operator is needed)"
	}
	return ""
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
		file, err := h.Reward.Export(ctx, org.ID, commandLine, reward.ExportOptions{Again: p.Again})
		if err != nil {
			return err
		}
		if err := writePayments(out, file.Payments); err != nil {
			return fmt.Errorf("write the payment file; write it again with --again: %w", err)
		}

		fmt.Fprintf(c.err, "%d payments of %s in all\n", len(file.Payments), file.Total)

		for _, kept := range file.Kept {
			fmt.Fprintf(c.err, "not paid: %s\n", kept)
		}

		return nil
	})
}

// writePayments writes the payment file.
func writePayments(out io.Writer, payments []reward.Payment) error {
	w := csvfile.NewWriter(out, "withdrawal_id", "attempt", "name", "sort_code", "account_number", "amount_gbp", "reference")
	for _, p := range payments {
		w.Write(p.ID.String(), p.Attempt, p.Name.Reveal(), p.SortCode.Reveal(), p.Number.Reveal(),
			fmt.Sprintf("%d.%02d", p.Amount/100, p.Amount%100), p.Reference)
	}
	return w.Flush()
}

type payoutsImport struct {
	ofOrg
	Mail    mailRelay `embed:"" prefix:"mail-"`
	BaseURL string    `help:"The service's own address as users reach it, for the links in mails sent from here." env:"FLEXD_BASE_URL" placeholder:"URL"`

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

	mailer, err := p.Mail.mailer()
	if err != nil {
		return err
	}

	return p.actOn(ctx, "import payment results", p.File, func(h *app.App, org flex.Org) error {
		done, err := h.Reward.Import(ctx, org.ID, commandLine, results)
		if err != nil {
			return err
		}

		fmt.Fprintf(c.err, "%d results, %d of them new\n", done.Results, done.Moved)

		if done.Without > 0 {
			fmt.Fprintf(c.err, "%d users were not told: there is no e-mail address\n", done.Without)
		}

		if done.Mails == 0 {
			return nil
		}

		if mailer == nil {
			fmt.Fprintf(c.err, "%d mails wait to be sent by flexd serve, if it has --mail-relay, for %d hours\n", done.Mails, reward.LetterLinkLife/time.Hour)
			return nil
		}

		h.Reward.Mail, h.Reward.BaseURL = mailer.Send, p.BaseURL
		return sendMails(ctx, c, h)
	})
}

// sendMails sends what waits to be sent.
func sendMails(ctx context.Context, c console, h *app.App) error {
	sent := 0
	for more := true; more; {
		r, err := h.Reward.SendMail(ctx)
		if err != nil {
			return err
		}

		sent += r.Did
		more = r.More
	}

	fmt.Fprintf(c.err, "%d mails given to the relay\n", sent)
	return nil
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
			r.Attempt, err = strconv.Atoi(attempt)
			if err != nil || r.Attempt < 1 {
				return nil, row.Fault("an attempt is a number from 1, as in the payment file, not %q", attempt)
			}
		}

		results = append(results, r)
	}

	return results, nil
}
