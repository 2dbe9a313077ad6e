package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"flexd/internal/app"
	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	records "flexd/internal/store"
)

// payouts is `flexd payouts`.
type payouts struct {
	List     payoutsList     `cmd:"" help:"Withdrawals and the state of their payments."`
	Approve  payoutsApprove  `cmd:"" help:"Approve withdrawals for payment."`
	Reject   payoutsReject   `cmd:"" help:"Refuse withdrawals; the money goes back to the balances."`
	Retry    payoutsRetry    `cmd:"" help:"Try failed withdrawals again: each waits for approval again, and is paid to the account that is linked now. Example: flexd payouts retry ID"`
	Check    payoutsCheck    `cmd:"" help:"Ask the service set by flexd payouts hook whether accounts are in their users' names; without ids, for all withdrawals that wait for approval and were not checked. Example: flexd payouts check"`
	Override payoutsOverride `cmd:"" help:"Let another operator approve a withdrawal although the name on its account does not match. Example: flexd payouts override ID --reason 'married name, as on the bank statement'"`
	Hook     payoutsHook     `cmd:"" help:"Show or set the hook that says whether a bank account is in a user's name: an HTTPS endpoint. Example: flexd payouts hook https://payee.example.com/check --secret-file secret.txt"`
	Export   payoutsExport   `cmd:"" help:"Write the payment file of the approved withdrawals, which then count as sent to the bank."`
	Modulus  payoutsModulus  `cmd:"" help:"The published tables by which bank accounts are checked."`
	Files    payoutsFiles    `cmd:"" help:"The payment files that were made, with their sums."`
	Import   payoutsImport   `cmd:"" help:"Import the results of payments: the bank's pain.002, camt.053 or CSV of returned credits, or a CSV with the columns withdrawal_id, status (posted|failed|returned) and, if you have them, attempt and note."`
}

// ofOrg is the flags of commands that work on one organisation's records.
type ofOrg struct {
	store
	Org string `help:"The organisation's name; optional if there is only one." env:"FLEXD_ORG" placeholder:"NAME"`
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
			return flex.Fail(
				flex.Invalid,
				"there are %d organisations: name one with --org; flexd org list prints them",
				len(orgs),
			)
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

// actOn does something to the organisation's money, and notes it in the audit log.
func (o ofOrg) actOn(
	ctx context.Context,
	act, subject string,
	do func(*app.App, flex.Org) error,
) error {
	return o.actOnWith(ctx, flex.AuditEntry{Act: act, Subject: subject}, do)
}

// actOnWith is actOn with further details for the audit log.
func (o ofOrg) actOnWith(
	ctx context.Context,
	act flex.AuditEntry,
	do func(*app.App, flex.Org) error,
) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	act.Who, act.Org = commandLine, org.ID

	return h.Access.Act(ctx, act, func() error { return do(h, org) })
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
	Name      string     `json:"account_name_check,omitempty"`
}

func payoutRowOf(p reward.Payout) payoutRow {
	r := payoutRow{
		ID:        p.ID,
		SiteID:    p.SiteID,
		Amount:    p.Amount,
		Status:    p.Status,
		Attempt:   p.Attempt,
		AskedAt:   p.AskedAt,
		Changed:   p.ChangedAt,
		Ending:    p.Ending,
		Sites:     p.Sites,
		Reference: p.Reference,
		Approvals: p.Approvals,
		Note:      p.Note,
		Warnings:  p.Warnings,
		Name:      p.Name,
	}

	if !p.LinkedAt.IsZero() {
		r.LinkedAt = &p.LinkedAt
	}

	return r
}

// Run lists the withdrawals.
func (p *payoutsList) Run(ctx context.Context, c console) error {
	status := ledger.PaymentStatus(p.Status)
	if status != "" && !slices.Contains(ledger.Statuses, status) {
		return flex.Fail(
			flex.Invalid,
			"--status: %q is none of %v",
			status,
			ledger.Statuses,
		)
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

	return list(
		c,
		p.JSON,
		rows,
		"WITHDRAWAL\tSITE\tAMOUNT\tSTATUS\tASKED\tACCOUNT\tLINKED\tSITES\tNAME\tWARNINGS",
		func(r payoutRow) []any {
			return []any{
				r.ID,
				r.SiteID,
				r.Amount,
				r.Status,
				r.AskedAt,
				r.Ending,
				r.LinkedAt,
				r.Sites,
				r.Name,
				r.Warnings,
			}
		},
	)
}

type payoutsApprove struct {
	ofOrg
	form
	IDs  []flex.TransactionID `arg:"" name:"withdrawal" help:"Withdrawals, by their id."`
	Note string               `help:"A note that is stored with the decision." placeholder:"TEXT"`
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

type payoutsRetry payoutsApprove

// Run has failed payments tried again.
func (p *payoutsRetry) Run(ctx context.Context, c console) error {
	return (*payoutsApprove)(p).decide(ctx, c, ledger.PendingApproval)
}

func (p *payoutsApprove) decide(
	ctx context.Context,
	c console,
	to ledger.PaymentStatus,
) error {
	var all error
	decided, message := []fields{}, ""

	for _, id := range p.IDs {
		err := p.actOn(
			ctx,
			string(to)+" withdrawal",
			id.String(),
			func(h *app.App, org flex.Org) error {
				w, err := h.Reward.Decide(
					ctx,
					org.ID,
					id,
					to,
					commandLine,
					p.Note,
				)
				if err != nil {
					return err
				}

				decided = append(decided, fields{
					"transaction_id": w.ID,
					"amount_pence":   w.Amount,
					"status":         w.Status,
				})

				message += fmt.Sprintf(
					"%s  %s  %s%s\n",
					w.ID,
					w.Amount,
					w.Status,
					waitsForSecond(to, w.Status),
				)

				return nil
			},
		)

		all = errors.Join(all, err)
	}

	return errors.Join(all, p.print(c, decided, "%s", message))
}

// waitsForSecond explains that a second approval is needed.
func waitsForSecond(requested, status ledger.PaymentStatus) string {
	if requested == ledger.Approved && status == ledger.PendingApproval {
		return " (approved by you; a second operator is needed)"
	}
	return ""
}

type payoutsExport struct {
	ofOrg
	File    string `arg:"" help:"Where to write the file. It contains bank accounts, so only its owner may read it. - is standard output. Example: flexd payouts export --format pain.001 payments.xml"`
	Format  string `help:"csv, bacs18 (Bacs Standard 18) or pain.001 (ISO 20022 pain.001.001.09); the setting payment_file_format by default." placeholder:"FORMAT"`
	Day     string `help:"The working day on which the payments are to be made (for bacs18, processed), as 2026-01-31; the earliest by default." placeholder:"DAY"`
	Again   bool   `help:"Write again the payments that were exported before and have no result yet, because a file was lost. A bank that has the first file makes no payment twice."`
	Message string `help:"With --again: only the payments of the file with this name, as flexd payouts files lists it." placeholder:"NAME"`
}

// options reads the flags.
func (p *payoutsExport) options() (reward.ExportOptions, error) {
	o := reward.ExportOptions{Repeat: p.Again, Message: p.Message}
	if p.Message != "" && !p.Again {
		return o, flex.Fail(flex.Invalid, "--message is for --again")
	}

	var err error
	if p.Format != "" {
		o.Format, err = bankfile.ReadFormat(p.Format)
		if err != nil {
			return o, err
		}
	}

	if p.Day != "" {
		o.Day, err = flex.ParseDay(p.Day)
		if err != nil {
			return o, flex.Fail(
				flex.Invalid,
				"--day: %q is not a day such as 2026-01-31",
				p.Day,
			)
		}
	}

	return o, nil
}

// Run exports. The file is created before anything counts as exported, and removed again if
// nothing does.
func (p *payoutsExport) Run(ctx context.Context, c console) error {
	o, err := p.options()
	if err != nil {
		return err
	}

	if p.File == "-" {
		_, err := p.export(ctx, c, c.out, o)
		return err
	}

	f, err := os.OpenFile(p.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return flex.Fail(
			flex.Conflict,
			"%s exists already, and may be a file of payments that was sent: name another, or - for standard output",
			p.File,
		)
	}
	if err != nil {
		return err
	}

	file, err := p.export(ctx, c, f, o)
	err = errors.Join(err, f.Close())

	if !file {
		return errors.Join(err, os.Remove(p.File))
	}

	return err
}

// export writes the file. It reports whether payments count as exported.
func (p *payoutsExport) export(
	ctx context.Context,
	c console,
	out io.Writer,
	o reward.ExportOptions,
) (made bool, err error) {
	h, org, err := p.openOrg(ctx)
	if err != nil {
		return false, err
	}

	defer h.Close()

	act := flex.AuditEntry{
		Who:     commandLine,
		Org:     org.ID,
		Act:     "export payments",
		Subject: p.File,
	}

	err = h.Access.ActWithDetail(ctx, act, func() (string, error) {
		file, err := h.Reward.Export(ctx, org.ID, commandLine, o)
		if err != nil {
			return "", err
		}

		made = true

		if _, err := out.Write(file.Content); err != nil {
			return file.String(), fmt.Errorf(
				"write the payment file; write it again with --again: %w",
				err,
			)
		}

		fmt.Fprintln(c.err, file)

		for _, line := range file.LeftOut {
			fmt.Fprintf(c.err, "not paid: %s\n", line)
		}

		return file.String(), nil
	})

	return made, err
}

type payoutsFiles struct {
	ofOrg
	JSON bool `help:"Print as JSON." name:"json"`
}

type paymentFileRow struct {
	Number   int64      `json:"number"`
	Message  string     `json:"message"`
	Format   string     `json:"format"`
	Day      string     `json:"day"`
	MadeAt   time.Time  `json:"made_at"`
	MadeBy   string     `json:"made_by"`
	Payments int        `json:"payments"`
	Total    flex.Pence `json:"total_pence"`
	SHA256   string     `json:"sha256"`
}

// Run lists the payment files that were made.
func (p *payoutsFiles) Run(ctx context.Context, c console) error {
	h, org, err := p.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	files, err := h.Reward.PaymentFiles(ctx, org.ID)
	if err != nil {
		return err
	}

	rows := make([]paymentFileRow, len(files))
	for i, f := range files {
		rows[i] = paymentFileRow{
			f.Number,
			f.Message,
			f.Format,
			f.Day.String(),
			f.MadeAt,
			f.MadeBy,
			f.Payments,
			f.Total,
			hex.EncodeToString(f.SHA256),
		}
	}

	return list(
		c,
		p.JSON,
		rows,
		"NUMBER\tMESSAGE\tFORMAT\tDAY\tMADE\tBY\tPAYMENTS\tTOTAL\tSHA-256",
		func(r paymentFileRow) []any {
			return []any{
				r.Number,
				r.Message,
				r.Format,
				r.Day,
				r.MadeAt,
				r.MadeBy,
				r.Payments,
				r.Total,
				r.SHA256,
			}
		},
	)
}
