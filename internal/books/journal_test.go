package books_test

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"flexd/internal/books"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store/storetest"
)

// export writes the journal of 2026 as text.
func (o *office) export(e books.Export) (string, books.Totals, error) {
	o.Helper()
	e.From, e.To = day(o, "2026-01-01"), day(o, "2026-12-31")
	var b strings.Builder
	sum, err := o.books.Export(o.Context(), o.org, e, &b)
	return b.String(), sum, err
}

func (o *office) rows(e books.Export) [][]string {
	o.Helper()
	text, _, err := o.export(e)
	if err != nil {
		o.Fatal(err)
	}
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1 // the last line is shorter
	rows, err := r.ReadAll()
	if err != nil {
		o.Fatal(err)
	}
	return rows
}

func TestExport(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("=1+1", "2026-09-05", 101)
		o.earn("b", "2026-10-05", -60)
		o.earn("c", "2026-10-05", 30)
		rows := o.rows(books.Export{Format: books.CSV})
		if len(rows) != 11 || strings.Join(rows[0][:7], ",") != "date,account,debit_gbp,credit_gbp,cause,key,site_id" {
			t.Fatalf("%d lines, the first %q", len(rows), rows[0])
		}

		if got := strings.Join(rows[1][:8], ","); got != "2026-09-05,market_receivable,1.01,,by test,'=1+1,"+o.sites[0].String()+",2026-09-05" {
			t.Errorf("a line is %q", got)
		}
		if got := strings.Join(rows[10], ","); got != "total,9 postings,1.91,1.91" {
			t.Errorf("the last line is %q", got)
		}

		text, sum, err := o.export(books.Export{Format: books.JSON})
		var doc struct {
			Postings []map[string]any
			Total    map[string]int
		}
		if err := json.Unmarshal([]byte(text), &doc); err != nil || len(doc.Postings) != 9 || doc.Total["debit_pence"] != 191 || sum.Debits != 191 || sum.Credit != 191 {
			t.Errorf("%v: %+v", err, doc)
		}
		if err != nil || doc.Postings[0]["key"] != "=1+1" {
			t.Errorf("%v: %v", err, doc.Postings)
		}

		if _, _, err := o.export(books.Export{Format: "sage"}); flex.KindOf(err) != flex.Invalid {
			t.Errorf("an unknown format: %v", err)
		}
	})
}

// The files for other programs hold balanced journals, in their columns, and no more lines
// than they take.
func TestExport_Imports(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-09-05", 101)
		o.earn("b", "2026-10-05", -60)
		o.earn("c", "2026-10-06", 30)
		codes := map[ledger.Account]string{ledger.MarketReceivable: "610", ledger.RewardsPayable: "820", ledger.PlatformRevenue: "200"}
		rows := o.rows(books.Export{Format: books.Xero, Accounts: codes})
		want := []string{
			"*Narration,*Date,Description,*AccountCode,*TaxRate,*Amount,TrackingName1,TrackingOption1,TrackingName2,TrackingOption2",
			"flexd 2026-09,30/09/2026,market receivable,610,No VAT,1.01,,,,",
			"flexd 2026-09,30/09/2026,platform revenue,200,No VAT,-0.51,,,,",
			"flexd 2026-09,30/09/2026,rewards payable,820,No VAT,-0.50,,,,",
			"flexd 2026-10,31/10/2026,market receivable,610,No VAT,-0.30,,,,",
			"flexd 2026-10,31/10/2026,platform revenue,200,No VAT,0.15,,,,",
			"flexd 2026-10,31/10/2026,rewards payable,820,No VAT,0.15,,,,",
		}

		same(t, rows, want)
		same(t, o.rows(books.Export{Format: books.QuickBooks, Per: books.PerDay})[:4], []string{
			"*JournalNo,*JournalDate,*AccountName,*Debits,*Credits,Description,Name,Location,Class",
			"1,09/05/2026,Market receivable,1.01,,flexd 2026-09-05,,,",
			"1,09/05/2026,Platform revenue,,0.51,flexd 2026-09-05,,,",
			"1,09/05/2026,Rewards payable,,0.50,flexd 2026-09-05,,,",
		})
		if n := len(o.rows(books.Export{Format: books.QuickBooks, Per: books.PerTransaction})); n != 10 {
			t.Errorf("%d lines of a journal a transaction, want 10", n)
		}

		delete(codes, ledger.PlatformRevenue)
		if _, _, err := o.export(books.Export{Format: books.Xero, Accounts: codes}); flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), "--account platform_revenue=") {
			t.Errorf("an account without a code: %v", err)
		}

		codes[ledger.PlatformRevenue] = "200"
		for i := range 98 { // with those above 99 journals of three lines, and then one more
			o.earn("more"+string(rune('A'+i)), "2026-10-07", 20)
			if i == 96 {
				if n := len(o.rows(books.Export{Format: books.Xero, Per: books.PerTransaction, Accounts: codes})); n != books.XeroLinesMax+1 {
					t.Errorf("%d lines", n)
				}
			}
		}
		if _, _, err := o.export(books.Export{Format: books.Xero, Per: books.PerTransaction, Accounts: codes}); flex.KindOf(err) != flex.TooLarge {
			t.Errorf("more lines than Xero takes: %v", err)
		}
	})
}

func same(t *testing.T, rows [][]string, want []string) {
	t.Helper()
	for i, row := range rows {
		if got := strings.Join(row, ","); i >= len(want) || got != want[i] {
			t.Errorf("line %d is %q", i+1, got)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d lines, want %d", len(rows), len(want))
	}
}
