package books

import (
	"io"
	"slices"
	"strings"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// The most lines that Xero and QuickBooks Online accept in one file.
const (
	XeroLinesMax       = 300
	QuickBooksLinesMax = 1000
)

// importFile writes journals for another program's import. The lines of a journal are
// consecutive, each journal is balanced, and has one line for each account.
type importFile struct {
	Export
	out      *csvfile.Writer
	most     int // lines that the importing program accepts
	lines    int // written so far
	journals int // written so far

	// the journal under way
	name string
	date flex.Day
	sums map[ledger.Account]flex.Pence
}

func newImport(w io.Writer, e Export) (*importFile, error) {
	f := &importFile{
		Export: e,
		most:   XeroLinesMax,
		sums:   map[ledger.Account]flex.Pence{},
	}

	switch f.Per {
	case "":
		f.Per = PerMonth

	case PerTransaction, PerDay, PerMonth:
	default:
		return nil, flex.Fail(
			flex.Invalid,
			"a journal is made per %s, %s or %s, not per %q",
			PerTransaction,
			PerDay,
			PerMonth,
			f.Per,
		)
	}

	if f.TaxRate == "" {
		f.TaxRate = DefaultTaxRate
	}

	if f.Format == Xero {
		f.out = csvfile.NewWriter(
			w,
			"*Narration",
			"*Date",
			"Description",
			"*AccountCode",
			"*TaxRate",
			"*Amount",
			"TrackingName1",
			"TrackingOption1",
			"TrackingName2",
			"TrackingOption2",
		)

		return f, nil
	}

	f.most = QuickBooksLinesMax
	f.out = csvfile.NewWriter(
		w,
		"*JournalNo",
		"*JournalDate",
		"*AccountName",
		"*Debits",
		"*Credits",
		"Description",
		"Name",
		"Location",
		"Class",
	)

	return f, nil
}

func (f *importFile) line(l store.JournalLine) error {
	name, date := f.journalOf(l)
	if name != f.name {
		if err := f.finish(); err != nil {
			return err
		}
		f.name, f.date = name, date
	}

	f.sums[l.Account] += l.Amount

	return nil
}

// journalOf returns the name and the day of the journal that a posting belongs to.
func (f *importFile) journalOf(l store.JournalLine) (string, flex.Day) {
	switch f.Per {
	case PerTransaction:
		return "flexd " + l.Key, l.BookedOn
	case PerDay:
		return "flexd " + l.BookedOn.String(), l.BookedOn
	}

	month := ledger.MonthOf(l.BookedOn)
	last := month.Last()
	if f.To.Start().Before(last.Start()) {
		last = f.To
	}

	return "flexd " + month.String(), last
}

// finish writes the journal under way.
func (f *importFile) finish() error {
	accounts := make([]ledger.Account, 0, len(f.sums))
	for a, sum := range f.sums {
		if sum != 0 {
			accounts = append(accounts, a)
		}
	}

	slices.Sort(accounts)

	if len(accounts) > 0 {
		f.journals++
	}

	for _, a := range accounts {
		if f.lines++; f.lines > f.most {
			return flex.Fail(
				flex.TooLarge,
				"the file would have more than the %d lines that %s takes: choose fewer days, or a journal per %s",
				f.most,
				f.Format,
				PerMonth,
			)
		}

		if err := f.write(a, f.sums[a]); err != nil {
			return err
		}
	}

	clear(f.sums)

	return nil
}

func (f *importFile) write(a ledger.Account, sum flex.Pence) error {
	code := f.Accounts[a]
	words := strings.ReplaceAll(string(a), "_", " ")

	if f.Format == Xero {
		if code == "" {
			return flex.Fail(
				flex.Invalid,
				"Xero needs a code for every account: give one for %s, as in --account %s=820",
				a,
				a,
			)
		}

		f.out.Write(
			f.name,
			xeroDate(f.date),
			words,
			code,
			f.TaxRate,
			Decimal(sum),
			nil,
			nil,
			nil,
			nil,
		)

		return nil
	}

	if code == "" {
		code = strings.ToUpper(words[:1]) + words[1:]
	}

	debit, credit := sides(sum)
	f.out.Write(
		f.journals,
		usDate(f.date),
		code,
		debit,
		credit,
		f.name,
		nil,
		nil,
		nil,
	)

	return nil
}

// xeroDate writes a day in Xero's format for organisations in the United Kingdom, DD/MM/YYYY.
func xeroDate(d flex.Day) string {
	return d.Start().In(flex.London).Format("02/01/2006")
}

// usDate writes a day in the format of QuickBooks Online's import, MM/DD/YYYY.
func usDate(d flex.Day) string {
	return d.Start().In(flex.London).Format("01/02/2006")
}

func (f *importFile) end(Totals) error {
	if err := f.finish(); err != nil {
		return err
	}
	return f.out.Flush()
}
