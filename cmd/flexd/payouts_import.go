package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"flexd/internal/app"
	"flexd/internal/bankfile"
	"flexd/internal/csvfile"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
)

type payoutsImport struct {
	ofOrg
	Mail    mailRelay `embed:"" prefix:"mail-"`
	BaseURL string    `help:"The service's own address as users reach it, for the links in mails sent from here." env:"FLEXD_BASE_URL" placeholder:"URL"`

	File   string `arg:"" help:"The file; - reads standard input. Example: flexd payouts import --dry-run statement.xml"`
	DryRun bool   `help:"Show what would change, and change nothing."`
	JSON   bool   `help:"Print as JSON how each result of the bank's file was handled." name:"json"`
}

// Run imports results.
func (p *payoutsImport) Run(ctx context.Context, c console) error {
	content, err := p.read(c.in)
	if err != nil {
		return err
	}

	mailer, err := p.mailer()
	if err != nil {
		return err
	}

	// flexd's own CSV counts all or none; of a bank's file each result counts by itself.
	importFile := p.bankFile

	if ownResults(content) {
		importFile = p.ownFile
	}

	h, org, err := p.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	do := func() (string, error) {
		return importFile(ctx, c, h, org, content, mailer)
	}

	if p.DryRun {
		_, err := do()
		return err
	}

	return h.Access.ActWithDetail(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Org:     org.ID,
			Act:     "import payment results",
			Subject: p.File,
		},
		do,
	)
}

// mailer returns what sends e-mails from this process. It returns nil without the service's
// address: the links would lead nowhere, and each e-mail is sent only once.
func (p *payoutsImport) mailer() (*egress.Mailer, error) {
	m, err := p.Mail.mailer()
	if err == nil && m != nil && !isWebURL(p.BaseURL) {
		err = flex.Fail(
			flex.Invalid,
			"--mail-relay needs --base-url, the service's own address such as https://flexd.example.com, for the links in mails",
		)
	}

	return m, err
}

func (p *payoutsImport) read(in io.Reader) ([]byte, error) {
	if p.File != "-" {
		f, err := os.Open(p.File)
		if err != nil {
			return nil, err
		}

		defer f.Close()
		in = f
	}

	content, err := io.ReadAll(io.LimitReader(in, bankfile.ResultsMax+1))
	if err == nil && len(content) > bankfile.ResultsMax { // a part of it would be taken for all
		err = flex.Fail(
			flex.TooLarge,
			"a file of results has at most %d bytes",
			bankfile.ResultsMax,
		)
	}

	return content, err
}

// ownResults reports whether the file is flexd's own CSV: its first line has the column
// withdrawal_id, or is not that of any other known format.
func ownResults(content []byte) bool {
	first, _, _ := strings.Cut(
		strings.ToLower(strings.TrimPrefix(string(content), "\ufeff")),
		"\n",
	)
	if strings.Contains(first, "withdrawal_id") {
		return true
	}

	return !strings.HasPrefix(strings.TrimSpace(first), "<") &&
		!strings.Contains(first, "reference")
}

// ownFile imports flexd's own CSV, all results or none.
func (p *payoutsImport) ownFile(
	ctx context.Context,
	c console,
	h *app.App,
	org flex.Org,
	content []byte,
	mailer *egress.Mailer,
) (string, error) {
	results, err := readResults(bytes.NewReader(content))
	if err != nil {
		return "", err
	}

	importFile := h.Reward.Import
	if p.DryRun {
		importFile = h.Reward.TryImport
	}

	outcome, err := importFile(ctx, org.ID, commandLine, results)
	if err != nil {
		return "", err
	}

	message := fmt.Sprintf(
		"%s, %d of them new",
		flex.Count(outcome.Results, "result"),
		outcome.Moved,
	)
	fmt.Fprintln(c.err, p.dryRunPrefix()+message)

	return message, p.notify(ctx, c, h, outcome, mailer)
}

// dryRunPrefix begins the output of a dry run.
func (p *payoutsImport) dryRunPrefix() string {
	if p.DryRun {
		return "dry run, nothing is changed: "
	}
	return ""
}

// bankFile imports a bank's file, each result by itself.
func (p *payoutsImport) bankFile(
	ctx context.Context,
	c console,
	h *app.App,
	org flex.Org,
	content []byte,
	mailer *egress.Mailer,
) (string, error) {
	results, err := bankfile.ReadResults(content)
	if err != nil {
		return "", err
	}

	outcome, err := h.Reward.ImportBank(
		ctx,
		org.ID,
		commandLine,
		results.Results,
		p.DryRun,
	)

	if err != nil {
		return "", err
	}

	if err := p.show(c, outcome); err != nil {
		return "", err
	}

	message := fmt.Sprintf(
		"%s: %s, %d new, %d known, %d under way, %d unknown, %d refused; %d other entries",
		results.Format,
		flex.Count(outcome.Results, "result"),
		outcome.Count(reward.VerdictNew),
		outcome.Count(reward.VerdictKnown),
		outcome.Count(reward.VerdictOpen),
		outcome.Count(reward.VerdictUnknown),
		outcome.Count(reward.VerdictRefused),
		results.Others,
	)

	fmt.Fprintln(c.err, p.dryRunPrefix()+message)

	err = p.notify(ctx, c, h, outcome.Imported, mailer)

	if n := outcome.Count(reward.VerdictRefused); n > 0 {
		err = errors.Join(
			err,
			flex.Fail(
				flex.Conflict,
				"%d results were refused: they contradict what is known, and changed nothing; the others count",
				n,
			),
		)
	}

	return message, err
}

type importRow struct {
	Where      string               `json:"where"`
	Reference  string               `json:"reference"`
	Verdict    reward.ImportVerdict `json:"verdict"`
	Outcome    bankfile.Outcome     `json:"outcome"`
	Reason     string               `json:"reason,omitempty"`
	Withdrawal string               `json:"withdrawal_id,omitempty"`
	Amount     flex.Pence           `json:"amount_pence,omitempty"`
	From       ledger.PaymentStatus `json:"from,omitempty"`
	To         ledger.PaymentStatus `json:"to,omitempty"`
	Why        string               `json:"why,omitempty"`
}

// show prints the outcome of each result that is not known already; as JSON, of all.
func (p *payoutsImport) show(c console, outcome reward.BankImport) error {
	rows := make([]importRow, len(outcome.Lines))
	for i, l := range outcome.Lines {
		rows[i] = importRow{
			Where:     l.Where,
			Reference: l.Reference,
			Verdict:   l.Verdict,
			Outcome:   l.Outcome,
			Reason:    l.Reason,
			Why:       l.Refusal,
		}

		if l.ID.IsZero() {
			// of a payment that is not known only the bank says how much it was, if it does
			if l.Known {
				rows[i].Amount = l.Result.Amount
			}
			continue
		}

		rows[i].Withdrawal, rows[i].Amount = l.ID.String(), l.Amount
		rows[i].From, rows[i].To = l.From, l.To
	}

	if p.JSON {
		return c.json(rows)
	}

	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(
		t,
		"WHERE\tREFERENCE\tVERDICT\tBANK SAYS\tREASON\tAMOUNT\tFROM\tTO\tWHY",
	)

	for _, r := range rows {
		if r.Verdict != reward.VerdictKnown {
			fmt.Fprintf(
				t,
				"%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				r.Where,
				r.Reference,
				r.Verdict,
				r.Outcome,
				r.Reason,
				r.Amount,
				r.From,
				r.To,
				r.Why,
			)
		}
	}

	return t.Flush()
}

// notify prints who is notified by e-mail, and sends the e-mails if it can.
func (p *payoutsImport) notify(
	ctx context.Context,
	c console,
	h *app.App,
	outcome reward.Imported,
	mailer *egress.Mailer,
) error {
	if outcome.WithoutEmail > 0 {
		fmt.Fprintf(
			c.err,
			"%d users were not notified: there is no e-mail address\n",
			outcome.WithoutEmail,
		)
	}

	if outcome.Mails == 0 || p.DryRun {
		return nil
	}

	if mailer == nil {
		fmt.Fprintf(
			c.err,
			"%d mails wait to be sent by flexd serve, if it has --mail-relay, for %d hours\n",
			outcome.Mails,
			reward.MailLinkLife/time.Hour,
		)

		return nil
	}

	h.Reward.Mail, h.Reward.BaseURL = mailer.Send, p.BaseURL

	return sendMails(ctx, c, h)
}

// sendMails sends the queued e-mails.
func sendMails(ctx context.Context, c console, h *app.App) error {
	sent := 0
	for more := true; more; {
		r, err := h.Reward.SendMail(ctx)
		if err != nil {
			return err
		}

		sent += r.Count
		more = r.More
	}

	fmt.Fprintf(c.err, "%d mails given to the relay\n", sent)

	return nil
}

// readResults reads a CSV of results. The columns may be in any order.
func readResults(in io.Reader) ([]reward.PaymentResult, error) {
	var results []reward.PaymentResult
	for row, err := range csvfile.Read(in, "withdrawal_id", "status") {
		if err != nil {
			return nil, err
		}

		r := reward.PaymentResult{
			Status: ledger.PaymentStatus(row.Get("status")),
			Note:   row.Get("note"),
		}

		if err := r.ID.UnmarshalText([]byte(row.Get("withdrawal_id"))); err != nil {
			return nil, row.Fault("%v", err)
		}

		if attempt := row.Get("attempt"); attempt != "" {
			r.Attempt, err = strconv.Atoi(attempt)
			if err != nil || r.Attempt < 1 {
				return nil, row.Fault(
					"an attempt is a number from 1, as in the payment file, not %q",
					attempt,
				)
			}
		}

		results = append(results, r)
	}

	return results, nil
}
