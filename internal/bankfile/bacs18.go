package bankfile

import (
	"bufio"
	"fmt"
	"io"

	"flexd/internal/flex"
)

// The widths and limits of Bacs Standard 18.
const (
	bacsName  = 18 // characters of a name or reference
	labelWide = 80

	bacsMost flex.Pence = 20_000_000_00 // the most of one payment
)

// The transaction codes that are used.
const (
	bacsCredit = "99" // a payment
	bacsContra = "17" // the debit of the account that pays
)

// expireAfter is how many days after processing a file's medium may be overwritten.
const expireAfter = 5

// writeBacs18 writes a file of one processing day: four labels, a record a payment, the
// contra that takes their sum from the account that pays, and three labels. A label has 80
// characters, a record 100; each ends with CR and LF.
func (f File) writeBacs18(out io.Writer) error {
	w := bufio.NewWriter(out)
	serial := fmt.Sprintf("%06d", (f.Serial-1)%999_999+1)
	line := func(text string) { w.WriteString(text + "\r\n") }

	line(fmt.Sprintf("VOL1%s%31s%s%32s1", serial, "", f.Payer.SUN, ""))
	line("HDR1" + f.fileLabel(serial))
	line("HDR2" + recordLabel)
	line(fmt.Sprintf(
		"%-*s",
		labelWide,
		"UHL1"+julian(f.Day)+"999999    "+"00"+"000000"+"1 DAILY  "+"001",
	))

	for _, p := range f.Payments {
		line(f.bacsRecord(
			p.SortCode.Reveal(),
			p.Number.Reveal(),
			bacsCredit,
			p.Amount,
			p.Reference,
			p.Name.Reveal(),
		))
	}

	total := f.Total()
	line(f.bacsRecord(
		f.Payer.SortCode,
		f.Payer.Number,
		bacsContra,
		total,
		"CONTRA",
		f.Payer.Name,
	))

	line("EOF1" + f.fileLabel(serial))
	line("EOF2" + recordLabel)

	// The contra is the one debit.
	line(fmt.Sprintf(
		"%-*s",
		labelWide,
		fmt.Sprintf("UTL1%013d%013d%07d%07d", total, total, 1, len(f.Payments)),
	))

	return w.Flush()
}

// recordLabel is HDR2 and EOF2 after their names: fixed records of 100 characters in blocks
// of 2,000.
var recordLabel = fmt.Sprintf("F%05d%05d%35s00%28s", 2000, 100, "", "")

// fileLabel is HDR1 and EOF1 after their names: whose file it is, and when it was made.
func (f File) fileLabel(serial string) string {
	// the 15th is a blank or 1; every bank takes the blank
	id := "A" + f.Payer.SUN + "S   " + f.Payer.SUN
	made, expires := julian(flex.DayAt(f.MadeAt)), julian(f.Day.Add(expireAfter))
	return fmt.Sprintf(
		"%s%s00010001%6s%s%s 000000%20s",
		id,
		serial,
		"",
		made,
		expires,
		"",
	)
}

// bacsRecord writes a payment or the contra.
func (f File) bacsRecord(
	sortCode, number, code string,
	amount flex.Pence,
	reference, name string,
) string {
	return fmt.Sprintf(
		"%s%s0%s%s%s%4s%011d%-18s%-18s%-18s",
		sortCode,
		number,
		code,
		f.Payer.SortCode,
		f.Payer.Number,
		"",
		amount,
		bacsAlphabet.text(f.Payer.Name, bacsName),
		bacsAlphabet.text(reference, bacsName),
		bacsAlphabet.text(name, bacsName),
	)
}

// julian writes a day as a blank, two digits of the year and three of the day in it.
func julian(d flex.Day) string {
	at := d.Period(24).Start() // about noon, whatever the clock change
	return fmt.Sprintf(" %02d%03d", d.Year%100, at.YearDay())
}
