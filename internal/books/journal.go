package books

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// Format is how a journal is written.
type Format string

// The formats.
const (
	// a line a posting, and a last line with the totals
	CSV  Format = "csv"
	JSON Format = "json" // the same as one document
	Xero Format = "xero" // Xero's import of manual journals
	// QuickBooks Online's import of journal entries
	QuickBooks Format = "quickbooks"
)

// Per says what one journal comprises in the files for Xero and QuickBooks.
type Per string

// A journal comprises the postings of one transaction, one day or one month.
const (
	PerTransaction Per = "transaction"
	PerDay         Per = "day"
	PerMonth       Per = "month"
)

// Export says which part of the journal to export, and how.
type Export struct {
	From, To flex.Day // booking days, both included
	Format   Format
	Per      Per // PerMonth if empty; for Xero and QuickBooks only

	// Accounts maps accounts to those of the importing program: a code for Xero, a name for
	// QuickBooks.
	Accounts map[ledger.Account]string
	TaxRate  string // for Xero, by its full name there; DefaultTaxRate if empty
}

// DefaultTaxRate is Xero's name for the tax rate of items outside value added tax.
const DefaultTaxRate = "No VAT"

// Totals are the last line of a journal.
type Totals struct {
	Postings       int
	Debits, Credit flex.Pence // both positive
}

// Export writes the journal to out, and returns its totals. If it fails, the file is incomplete.
func (s *Service) Export(
	ctx context.Context,
	org flex.OrgID,
	e Export,
	out io.Writer,
) (Totals, error) {
	if e.To.Start().Before(e.From.Start()) {
		return Totals{}, flex.Fail(
			flex.Invalid,
			"the last day, %s, is before the first, %s",
			e.To,
			e.From,
		)
	}

	w := bufio.NewWriterSize(out, 1<<16)
	journal, err := newJournal(w, e)
	if err != nil {
		return Totals{}, err
	}

	var sum Totals
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		return tx.Journal(ctx, e.From, e.To, func(l store.JournalLine) error {
			sum.Postings++
			if l.Amount > 0 {
				sum.Debits += l.Amount
			} else {
				sum.Credit -= l.Amount
			}

			return journal.line(l)
		})
	})

	if err == nil {
		err = journal.end(sum)
	}

	if err == nil {
		err = w.Flush()
	}

	return sum, err
}

// newJournal returns a writer of the export's format.
func newJournal(w *bufio.Writer, e Export) (writer, error) {
	switch e.Format {
	case CSV:
		return newPlainCSV(w), nil
	case JSON:
		return newPlainJSON(w, e), nil
	case Xero, QuickBooks:
		return newImport(w, e)
	}

	return nil, flex.Fail(
		flex.Invalid,
		"%q is no format; it is %s, %s, %s or %s",
		e.Format,
		CSV,
		JSON,
		Xero,
		QuickBooks,
	)
}

// writer writes a journal line by line.
type writer interface {
	line(store.JournalLine) error
	end(Totals) error
}

// columns are those of the plain journal.
var columns = []string{
	"date", "account", "debit_gbp", "credit_gbp", "cause", "key", "site_id", "about", "kind", "recorded_at", "transaction_id", "counterparty", "reference", "reason",
}

type plainCSV struct{ *csvfile.Writer }

func newPlainCSV(w io.Writer) plainCSV {
	return plainCSV{csvfile.NewWriter(w, columns...)}
}

func (c plainCSV) line(l store.JournalLine) error {
	debit, credit := sides(l.Amount)
	c.Write(
		l.BookedOn.String(),
		string(l.Account),
		debit,
		credit,
		CauseText(l.Cause),
		l.Key,
		siteText(l.SiteID),
		dayText(l.About),
		string(l.Kind),
		l.RecordedAt,
		l.ID.String(),
		l.Counterparty,
		l.Reference,
		l.Cause.Reason,
	)

	return nil
}

// end writes the line of totals, without which the file is incomplete.
func (c plainCSV) end(sum Totals) error {
	c.Write(
		"total",
		fmt.Sprintf("%d postings", sum.Postings),
		Decimal(sum.Debits),
		Decimal(sum.Credit),
	)

	return c.Flush()
}

// jsonLine is a posting in the JSON journal.
type jsonLine struct {
	Date         string     `json:"date"`
	Account      string     `json:"account"`
	Debit        flex.Pence `json:"debit_pence"`
	Credit       flex.Pence `json:"credit_pence"`
	Cause        string     `json:"cause"`
	Key          string     `json:"key"`
	SiteID       string     `json:"site_id,omitempty"`
	About        string     `json:"about,omitempty"`
	Kind         string     `json:"kind"`
	RecordedAt   time.Time  `json:"recorded_at"`
	ID           string     `json:"transaction_id"`
	Counterparty string     `json:"counterparty,omitempty"`
	Reference    string     `json:"reference,omitempty"`
	Reason       string     `json:"reason,omitempty"`
}

type plainJSON struct {
	w    *bufio.Writer
	next string // separator before the next line
}

func newPlainJSON(w *bufio.Writer, e Export) *plainJSON {
	fmt.Fprintf(w, "{\"from\":%q,\"to\":%q,\"postings\":[", e.From, e.To)
	return &plainJSON{w, "\n"}
}

func (j *plainJSON) line(l store.JournalLine) error {
	line := jsonLine{
		Date:         l.BookedOn.String(),
		Account:      string(l.Account),
		Cause:        CauseText(l.Cause),
		Key:          l.Key,
		SiteID:       siteText(l.SiteID),
		About:        dayText(l.About),
		Kind:         string(l.Kind),
		RecordedAt:   l.RecordedAt,
		ID:           l.ID.String(),
		Counterparty: l.Counterparty,
		Reference:    l.Reference,
		Reason:       l.Cause.Reason,
	}

	line.Debit, line.Credit = max(0, l.Amount), max(0, -l.Amount)
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}

	j.w.WriteString(j.next) // bufio.Writer returns an error at the next write or Flush too
	j.w.Write(b)
	j.next = ",\n"

	return nil
}

func (j *plainJSON) end(sum Totals) error {
	_, err := fmt.Fprintf(
		j.w,
		"\n],\"total\":{\"postings\":%d,\"debit_pence\":%d,\"credit_pence\":%d}}\n",
		sum.Postings,
		sum.Debits,
		sum.Credit,
	)

	return err
}

// CauseText describes a transaction's cause: the ids of the records that led to it, and who
// booked it.
func CauseText(c ledger.Cause) string {
	var parts []string
	add := func(what, id string) { parts = append(parts, what+" "+id) }

	if !c.FlexEvent.IsZero() {
		add("flex event", c.FlexEvent.String())
	}

	if !c.Session.IsZero() {
		add("session", c.Session.String())
	}

	if !c.Run.IsZero() {
		add("run", c.Run.String())
	}

	if !c.Corrects.IsZero() {
		add("corrects", c.Corrects.String())
	}

	if !c.Follows.IsZero() {
		add("withdrawal", c.Follows.String())
	}

	if c.By != "" {
		add("by", c.By)
	}

	return strings.Join(parts, ", ")
}

// Decimal writes an amount in pounds with two decimals, for the files of spreadsheets and banks.
func Decimal(p flex.Pence) csvfile.Number {
	sign := ""
	if p < 0 {
		sign, p = "-", -p
	}

	return csvfile.Number(fmt.Sprintf("%s%d.%02d", sign, p/100, p%100))
}

// sides returns an amount as a debit and a credit, one of which is nil.
func sides(p flex.Pence) (debit, credit any) {
	if p > 0 {
		return Decimal(p), nil
	}
	return nil, Decimal(-p)
}

func siteText(id flex.SiteID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

func dayText(d flex.Day) string {
	if d == (flex.Day{}) {
		return ""
	}
	return d.String()
}
