package bankfile

import (
	"fmt"
	"io"
	"strings"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
)

// Format is how a payment file is written.
type Format string

// The formats of payment files.
const (
	// flexd's own, for a provider or a program of the operator's
	CSV     Format = "csv"
	Bacs18  Format = "bacs18"   // Bacs Standard 18, one processing day
	Pain001 Format = "pain.001" // ISO 20022 pain.001.001.09
)

// Formats lists the formats.
var Formats = []Format{CSV, Bacs18, Pain001}

// ReadFormat reads the name of a format.
func ReadFormat(text string) (Format, error) {
	for _, f := range Formats {
		if string(f) == strings.ToLower(strings.TrimSpace(text)) {
			return f, nil
		}
	}

	return "", flex.Fail(
		flex.Invalid,
		"a payment file is %s, %s or %s, not %q",
		CSV,
		Bacs18,
		Pain001,
		text,
	)
}

// Extension is how the name of such a file ends.
func (f Format) Extension() string {
	switch f {
	case Bacs18:
		return ".txt"
	case Pain001:
		return ".xml"
	}

	return ".csv"
}

// ContentType is the media type of such a file.
func (f Format) ContentType() string {
	switch f {
	case Bacs18:
		return "text/plain; charset=us-ascii"
	case Pain001:
		return "application/xml"
	}

	return "text/csv; charset=utf-8"
}

// Payer is who pays.
type Payer struct {
	Name     string
	SortCode string
	Number   string
	SUN      string // the service user number at Bacs
	IBAN     string // in the place of sort code and number, in pain.001
	BIC      string
}

// Payment is one payment to a United Kingdom account.
type Payment struct {
	ID        string // of the withdrawal
	Attempt   int
	Name      flex.Personal
	SortCode  flex.Personal // six digits
	Number    flex.Personal // eight digits
	Amount    flex.Pence
	Reference string // names the payment in what the bank answers
}

// File is what goes into a payment file.
type File struct {
	// names the file; the same name again is the same file, which a bank takes once
	Message  string
	Serial   int       // of the file, from 1
	MadeAt   time.Time // when it was made
	Day      flex.Day  // on which the payments are to be made: a working day
	Payer    Payer
	Payments []Payment
}

// Total is the sum of the payments.
func (f File) Total() flex.Pence {
	var sum flex.Pence
	for _, p := range f.Payments {
		sum += p.Amount
	}
	return sum
}

// Refusal returns why a payment cannot be written in the format, or nothing.
func Refusal(format Format, p Payment) string {
	if p.Amount <= 0 {
		return "its amount is not above nothing"
	}

	if format != CSV && !Payable(p.Name.Reveal()) {
		return "the name on the account has no letter from A to Z; reject it, and the user can link the account again with the name in Latin letters"
	}

	if format == Bacs18 && p.Amount > bacsMost {
		return fmt.Sprintf("one payment by Bacs is at most %s", bacsMost)
	}

	return ""
}

// Write writes the file in a format. It fails without writing if what the format needs of
// the payer is not set.
func (f File) Write(w io.Writer, format Format) error {
	if err := f.Payer.Ready(format); err != nil {
		return err
	}

	for _, p := range f.Payments {
		if why := Refusal(format, p); why != "" {
			return flex.Fail(flex.Conflict, "withdrawal %s: %s", p.ID, why)
		}
	}

	switch format {
	case Bacs18:
		return f.writeBacs18(w)
	case Pain001:
		return f.writePain001(w)
	}

	return f.writeCSV(w)
}

// Ready fails if the format needs something of the payer that is not set, and says what.
func (p Payer) Ready(format Format) error {
	var missing []string
	need := func(value, setting string) {
		if value == "" {
			missing = append(missing, setting)
		}
	}

	if format == CSV {
		return nil
	}

	// A name that the format cannot write is as good as none.
	need(isoAlphabet.text(p.Name, isoName), "payer_name (in Latin letters)")

	if format == Bacs18 {
		need(p.SUN, "payer_sun")
	}

	if format == Bacs18 || p.IBAN == "" {
		need(p.SortCode, "payer_sort_code")
		need(p.Number, "payer_account")
	}

	// Outside the United Kingdom the IBAN does not say which bank it is.
	if format == Pain001 && p.IBAN != "" && p.sortCode() == "" {
		need(p.BIC, "payer_bic")
	}

	if len(missing) == 0 {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"a %s file needs the account that pays; set %s: flexd org set NAME %s=…",
		format,
		strings.Join(missing, " and "),
		strings.Fields(missing[0])[0],
	)
}

// sortCode is the payer's sort code, as it is set or as a British IBAN has it.
func (p Payer) sortCode() string {
	if p.IBAN == "" {
		return p.SortCode
	}
	if strings.HasPrefix(p.IBAN, "GB") && len(p.IBAN) == ibanGB {
		return p.IBAN[8:14]
	}

	return ""
}

// ibanGB is the length of a British IBAN.
const ibanGB = 22

// pounds writes an amount as files have it.
func pounds(p flex.Pence) string { return fmt.Sprintf("%d.%02d", p/100, p%100) }

// writeCSV writes flexd's own format.
func (f File) writeCSV(out io.Writer) error {
	w := csvfile.NewWriter(
		out,
		"withdrawal_id",
		"attempt",
		"name",
		"sort_code",
		"account_number",
		"amount_gbp",
		"reference",
	)

	for _, p := range f.Payments {
		w.Write(
			p.ID,
			p.Attempt,
			p.Name.Reveal(),
			p.SortCode.Reveal(),
			p.Number.Reveal(),
			csvfile.Number(pounds(p.Amount)),
			p.Reference,
		)
	}

	return w.Flush()
}
