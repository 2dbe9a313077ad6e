package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"flexd/internal/app"
	"flexd/internal/books"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	records "flexd/internal/store"
)

// booksCommand is `flexd books`.
type booksCommand struct {
	Close   booksClose   `cmd:"" help:"Close a month that is over, and every open month before it: flexd books close ACME 2026-10. A closed month never changes."`
	Months  booksMonths  `cmd:"" aliases:"list" help:"The closed months, the newest first: flexd books months ACME."`
	Balance booksBalance `cmd:"" help:"The trial balance as of a day: flexd books balance ACME --as-of 2026-10-31."`
	Receive booksReceive `cmd:"" help:"Book money that the market paid: flexd books receive ACME --counterparty NAME --month 2026-10 --amount 123.45 --reference R. The same again changes nothing."`
	Market  booksMarket  `cmd:"" help:"What the market owes and paid, by counterparty and month: flexd books market ACME."`

	Owed      booksOwed      `cmd:"" help:"What is owed to users and not yet paid, by age: flexd books owed ACME --as-of 2026-10-31."`
	Unclaimed booksUnclaimed `cmd:"" help:"Balances of offboarded sites; --move books those that are old enough to a separate account: flexd books unclaimed ACME."`
	Goodwill  booksGoodwill  `cmd:"" help:"Give a site's user money: flexd books goodwill ACME SITE --amount 5.00 --reason TEXT."`
	Bonus     booksBonus     `cmd:"" help:"Give a signup or referral bonus: flexd books bonus ACME SITE --kind referrer --amount 10.00 --reason TEXT."`
	WriteOff  booksWriteOff  `cmd:"" help:"Write off what a user owes, or what a counterparty does not pay: flexd books write-off ACME --site SITE --amount 0.59 --reason TEXT."`

	Reverse booksReverse `cmd:"" help:"Take back market money, a goodwill, a bonus or a write-off that was booked by mistake: flexd books reverse ACME TRANSACTION --reason TEXT. The same again changes nothing."`

	Export booksExport `cmd:"" help:"Write the journal, also for Xero and QuickBooks: flexd books export ACME --from 2026-10-01 --to 2026-10-31 --out journal.csv."`
}

// booksOrg is the flags of commands on the books of one organisation.
type booksOrg struct {
	store
	Name string `arg:"" optional:"" name:"org" help:"The organisation's name; optional if there is only one."`
}

func (b booksOrg) of() ofOrg { return ofOrg{store: b.store, Org: b.Name} }

// read does something with the organisation's books that changes nothing.
func (b booksOrg) read(
	ctx context.Context,
	do func(*app.App, flex.Org) error,
) error {
	h, org, err := b.of().openOrg(ctx)
	if err != nil {
		return err
	}
	defer h.Close()

	return do(h, org)
}

type booksClose struct {
	store
	Name  string `arg:"" name:"org" help:"The organisation's name."`
	Month string `arg:"" help:"The month, as YYYY-MM."`
	JSON  bool   `help:"Print as JSON." name:"json"`
}

type monthRow struct {
	Month        string    `json:"month"`
	ClosedAt     time.Time `json:"closed_at"`
	ClosedBy     string    `json:"closed_by"`
	Transactions int       `json:"transactions"`
	Hash         string    `json:"trial_balance_sha256"`
	Balance      string    `json:"trial_balance"`
}

// Run closes the month.
func (b *booksClose) Run(ctx context.Context, c console) error {
	month, err := ledger.ParseMonth(b.Month)
	if err != nil {
		return err
	}

	orgStore := ofOrg{store: b.store, Org: b.Name}

	return orgStore.actOn(
		ctx,
		"close month",
		month.String(),
		func(h *app.App, org flex.Org) error {
			months, err := h.Books.Close(ctx, org.ID, month, commandLine)
			if err != nil {
				return err
			}

			return printMonths(c, months, b.JSON)
		},
	)
}

type booksMonths struct {
	booksOrg
	JSON bool `help:"Print as JSON." name:"json"`
}

// Run lists the closed months.
func (b *booksMonths) Run(ctx context.Context, c console) error {
	return b.read(ctx, func(h *app.App, org flex.Org) error {
		months, err := h.Books.Months(ctx, org.ID)
		if err != nil {
			return err
		}
		return printMonths(c, months, b.JSON)
	})
}

func printMonths(c console, months []records.ClosedMonth, asJSON bool) error {
	rows := make([]monthRow, len(months))
	for i, m := range months {
		rows[i] = monthRow{
			m.Month.String(),
			m.ClosedAt,
			m.ClosedBy,
			m.Transactions,
			hex.EncodeToString(m.Hash[:]),
			m.Balance,
		}
	}

	if asJSON {
		return c.json(rows)
	}

	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MONTH\tCLOSED\tBY\tTRANSACTIONS\tTRIAL BALANCE SHA-256")

	for _, r := range rows {
		fmt.Fprintf(
			t,
			"%s\t%s\t%s\t%d\t%s\n",
			r.Month,
			r.ClosedAt.Format(time.RFC3339),
			r.ClosedBy,
			r.Transactions,
			r.Hash,
		)
	}

	return t.Flush()
}

type booksBalance struct {
	booksOrg
	AsOf string `help:"The last day that counts; today if left out." name:"as-of" placeholder:"YYYY-MM-DD"`
	JSON bool   `help:"Print as JSON." name:"json"`
}

type balanceRow struct {
	Account string     `json:"account"`
	Opening flex.Pence `json:"opening_pence"`
	Debits  flex.Pence `json:"debit_pence"`
	Credits flex.Pence `json:"credit_pence"`
	Closing flex.Pence `json:"closing_pence"`
}

type balanceReport struct {
	From     string       `json:"from"`
	AsOf     string       `json:"as_of"`
	Closed   bool         `json:"closed"`
	Accounts []balanceRow `json:"accounts"`
	Total    balanceRow   `json:"total"`
}

// Run prints the trial balance.
func (b *booksBalance) Run(ctx context.Context, c console) error {
	day, err := optionalDay("--as-of", b.AsOf)
	if err != nil {
		return err
	}

	return b.read(ctx, func(h *app.App, org flex.Org) error {
		balance, err := h.Books.Balance(ctx, org.ID, day)
		if err != nil {
			return err
		}
		if b.JSON {
			return c.json(reportBalance(balance))
		}

		return printBalance(c, balance)
	})
}

func reportBalance(b books.Balance) balanceReport {
	row := func(name string, a ledger.AccountTotals) balanceRow {
		return balanceRow{name, a.Opening, a.Debits, -a.Credits, a.Closing()}
	}

	r := balanceReport{
		From:     b.From.String(),
		AsOf:     b.To.String(),
		Closed:   b.Closed,
		Accounts: []balanceRow{},
		Total:    row("total", b.Total()),
	}

	for _, l := range b.Lines {
		r.Accounts = append(r.Accounts, row(string(l.Account), l))
	}

	return r
}

func printBalance(c console, b books.Balance) error {
	state := "open"
	if b.Closed {
		state = "closed"
	}

	fmt.Fprintf(
		c.out,
		"%s to %s, the month is %s; pounds, a credit is negative\n",
		b.From,
		b.To,
		state,
	)

	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "ACCOUNT\tOPENING\tDEBITS\tCREDITS\tCLOSING\t")
	line := func(name string, a ledger.AccountTotals) {
		fmt.Fprintf(
			t,
			"%s\t%s\t%s\t%s\t%s\t\n",
			name,
			books.Decimal(a.Opening),
			books.Decimal(a.Debits),
			books.Decimal(a.Credits),
			books.Decimal(a.Closing()),
		)
	}

	for _, l := range b.Lines {
		line(string(l.Account), l)
	}

	line("total", b.Total())

	return t.Flush()
}

type booksExport struct {
	booksOrg
	From     string            `help:"The first booking day." required:"" placeholder:"YYYY-MM-DD"`
	To       string            `help:"The last booking day." required:"" placeholder:"YYYY-MM-DD"`
	Format   string            `help:"csv or json: every posting; xero or quickbooks: journals in the columns that their imports take." enum:"csv,json,xero,quickbooks" default:"csv"`
	Per      string            `help:"For xero and quickbooks: a journal per transaction, day or month." enum:"transaction,day,month" default:"month"`
	Accounts map[string]string `name:"account" help:"For xero and quickbooks: the code or name of an account in their books, as in --account bank=090." placeholder:"ACCOUNT=CODE"`
	TaxRate  string            `help:"For xero: the tax rate of every line, by its name there." default:"No VAT"`
	Out      string            `help:"The file to write; it appears only when it is complete. - is standard output, for csv and json." default:"-"`
}

// Run writes the journal.
func (b *booksExport) Run(ctx context.Context, c console) error {
	e, err := b.export()
	if err != nil {
		return err
	}

	return b.read(ctx, func(h *app.App, org flex.Org) error {
		var sum books.Totals
		write := func(w io.Writer) error {
			var err error
			sum, err = h.Books.Export(ctx, org.ID, e, w)
			return err
		}

		if b.Out == "-" {
			err = write(c.out)
		} else {
			err = writeAtomically(b.Out, write)
		}

		if err == nil {
			fmt.Fprintf(
				c.err,
				"%d postings, debits %s, credits %s\n",
				sum.Postings,
				sum.Debits,
				sum.Credit,
			)
		}

		return err
	})
}

func (b *booksExport) export() (books.Export, error) {
	e := books.Export{
		Format:   books.Format(b.Format),
		Per:      books.Per(b.Per),
		TaxRate:  b.TaxRate,
		Accounts: map[ledger.Account]string{},
	}

	imported := e.Format == books.Xero || e.Format == books.QuickBooks
	if imported && b.Out == "-" {
		return e, flex.Fail(
			flex.Invalid,
			"--format %s needs --out FILE: its file has no last line by which a part could be known",
			b.Format,
		)
	}

	for name, code := range b.Accounts {
		a := ledger.Account(name)
		if !slices.Contains(ledger.Accounts, a) {
			return e, flex.Fail(
				flex.Invalid,
				"--account: %q is none of %v",
				name,
				ledger.Accounts,
			)
		}
		e.Accounts[a] = strings.TrimSpace(code)
	}

	var err error
	e.From, err = optionalDay("--from", b.From)
	if err != nil {
		return e, err
	}

	e.To, err = optionalDay("--to", b.To)

	return e, err
}

// optionalDay reads the day of a flag; an empty text is no day.
func optionalDay(flag, text string) (flex.Day, error) {
	if text == "" {
		return flex.Day{}, nil
	}

	d, err := flex.ParseDay(text)
	if err != nil {
		return d, flex.Fail(
			flex.Invalid,
			"%s: a day is written YYYY-MM-DD, not %q",
			flag,
			text,
		)
	}

	return d, nil
}

// writeAtomically writes a file that is there under its name only once it is whole.
func writeAtomically(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return err
	}

	defer os.Remove(f.Name()) // after the rename there is none

	err = write(f)
	if err == nil {
		err = f.Sync()
	}

	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}

	return os.Rename(f.Name(), path)
}
