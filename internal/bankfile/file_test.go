package bankfile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
)

var payer = bankfile.Payer{Name: "Grön Flex & Sons (Holdings) Ltd", SortCode: "200000", Number: "55779911", SUN: "123456"}

// aFile returns a file of n payments.
func aFile(n int) bankfile.File {
	names := []string{"Ann O’Neill", "=HYPERLINK(\"http://evil\")", "Łukasz Müller-Öst", "J & K Smith", "  -1+1 x  ", "Ångström & Ćosić Very Long Name Of A Household Account That Goes On And On"}
	r := rand.New(rand.NewPCG(1, 2))
	f := bankfile.File{
		Message: "FLEXD-20261122-000007-1a2b3c4d", Serial: 7, MadeAt: time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC),
		Day: flex.Day{Year: 2026, Month: 11, Dom: 24}, Payer: payer,
	}
	for i := range n {
		f.Payments = append(f.Payments, bankfile.Payment{
			ID: fmt.Sprintf("withdrawal %d", i), Attempt: 1, Name: flex.Personal(names[i%len(names)]), SortCode: "123456", Number: flex.Personal(fmt.Sprintf("%08d", i)),
			Amount: flex.Pence(1 + r.IntN(100_000)), Reference: fmt.Sprintf("FLEXD%010d-1", i),
		})
	}
	return f
}

func write(t *testing.T, f bankfile.File, format bankfile.Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What a format needs of the payer is said, and nothing is written without it.
func TestFile_PayerMissing(t *testing.T) {
	for name, tt := range map[string]struct {
		format bankfile.Format
		payer  bankfile.Payer
		want   string // "" if it is ready
	}{
		"csv":                       {bankfile.CSV, bankfile.Payer{}, ""},
		"bacs18, nothing":           {bankfile.Bacs18, bankfile.Payer{}, "payer_name (in Latin letters) and payer_sun and payer_sort_code and payer_account"},
		"bacs18, an IBAN":           {bankfile.Bacs18, bankfile.Payer{Name: "X", SUN: "123456", IBAN: "GB29NWBK60161331926819"}, "payer_sort_code and payer_account: flexd org set NAME payer_sort_code=…"},
		"bacs18":                    {bankfile.Bacs18, payer, ""},
		"pain.001, nothing":         {bankfile.Pain001, bankfile.Payer{Name: "X"}, "payer_sort_code and payer_account"},
		"pain.001":                  {bankfile.Pain001, payer, ""},
		"pain.001, a British IBAN":  {bankfile.Pain001, bankfile.Payer{Name: "X", IBAN: "GB29NWBK60161331926819"}, ""},
		"pain.001, a foreign IBAN":  {bankfile.Pain001, bankfile.Payer{Name: "X", IBAN: "DE89370400440532013000"}, "payer_bic"},
		"pain.001, one and its BIC": {bankfile.Pain001, bankfile.Payer{Name: "X", IBAN: "DE89370400440532013000", BIC: "COBADEFFXXX"}, ""},
		"pain.001, a name in Kanji": {bankfile.Pain001, bankfile.Payer{Name: "東京", IBAN: "GB29NWBK60161331926819"}, "payer_name"},
	} {
		t.Run(name, func(t *testing.T) {
			f := aFile(1)

			f.Payer = tt.payer
			var b bytes.Buffer
			err := f.Write(&b, tt.format)
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || flex.KindOf(err) != flex.Conflict || b.Len() > 0) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// A payment that a format cannot hold is refused with its withdrawal.
func TestFile_Refused(t *testing.T) {
	for name, tt := range map[string]struct {
		format bankfile.Format
		change func(*bankfile.Payment)
		want   string
	}{
		"no Latin letter": {bankfile.Bacs18, func(p *bankfile.Payment) { p.Name = "東京" }, "no letter from A to Z"},

		"no Latin letter, ISO": {bankfile.Pain001, func(p *bankfile.Payment) { p.Name = "東京" }, "no letter from A to Z"},
		"no Latin letter, CSV": {bankfile.CSV, func(p *bankfile.Payment) { p.Name = "東京" }, ""},
		"the most by Bacs":     {bankfile.Bacs18, func(p *bankfile.Payment) { p.Amount = 2_000_000_000 }, ""},
		"more than it":         {bankfile.Bacs18, func(p *bankfile.Payment) { p.Amount = 2_000_000_001 }, "at most £20000000.00"},
		"nothing":              {bankfile.CSV, func(p *bankfile.Payment) { p.Amount = 0 }, "above nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			f := aFile(2)

			tt.change(&f.Payments[1])
			err := f.Write(&bytes.Buffer{}, tt.format)
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "withdrawal 1")) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// The CSV has no cell that begins a formula, and amounts with a point.
func TestFile_CSV(t *testing.T) {
	text := write(t, aFile(2), bankfile.CSV)
	want := "withdrawal_id,attempt,name,sort_code,account_number,amount_gbp,reference\n" +
		"withdrawal 0,1,Ann O’Neill,123456,00000000,"
	if !strings.HasPrefix(text, want) || !strings.Contains(text, "withdrawal 1,1,\"'=HYPERLINK(\"\"http://evil\"\")\",123456,00000001,") {
		t.Errorf("%s", text)
	}
}

func TestReadFormat(t *testing.T) {
	for _, f := range bankfile.Formats {
		if got, err := bankfile.ReadFormat(" " + strings.ToUpper(string(f))); err != nil || got != f {
			t.Errorf("%s: %s %v", f, got, err)
		}
	}
	if _, err := bankfile.ReadFormat("xls"); flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), "csv, bacs18 or pain.001") {
		t.Errorf("xls: %v", err)
	}
}
