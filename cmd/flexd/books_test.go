package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
)

// bookkeeping is a store with some money in it, and the program that is run on it.
type bookkeeping struct {
	*testing.T
	url  string
	site flex.SiteID
	last flex.Day // of the month before
}

func newBookkeeping(t *testing.T) *bookkeeping {
	b := &bookkeeping{T: t, url: freshDatabase(t)}
	at := store{Database: b.url, Environment: "sandbox"}
	h, err := at.openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	seed := storetest.NewSeed(t, h.DB, b.url)
	b.site = seed.Site()
	today := flex.DayAt(time.Now())

	b.last = flex.Day{Year: today.Year, Month: today.Month, Dom: 1}.Add(-1)
	tr := ledger.Booked{}
	tr.Key, tr.Kind, tr.SiteID, tr.Settled, tr.Cause = "k", ledger.FlexEvent, b.site, b.last, ledger.Cause{By: "test"}
	tr.Postings = ledger.EarnedInPart(100, 60, 0, 40)
	err = h.DB.Write(t.Context(), seed.Org, func(tx *records.Tx) error {
		_, err := tx.Post(t.Context(), &tr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs flexd and returns what it printed.
func (b *bookkeeping) run(code int, args ...string) string {
	b.Helper()
	var out, problems bytes.Buffer
	args = append(args, "--database", b.url, "--environment", "sandbox")
	if got := run(b.Context(), args, console{strings.NewReader(""), &out, &problems}); got != code {
		b.Fatalf("%v ends with %d, want %d: %s %s", args, got, code, out.String(), problems.String())
	}
	return out.String() + problems.String()
}

func TestBooks(t *testing.T) {
	b := newBookkeeping(t)
	month := ledger.MonthOf(b.last)
	if out := b.run(exitFailed, "books", "close", "seeded", ledger.MonthOf(flex.DayAt(time.Now())).String()); !strings.Contains(out, "is not over") {
		t.Error(out)
	}
	b.run(exitUsage, "books", "close", "seeded", "October")
	var months []monthRow
	if err := json.Unmarshal([]byte(b.run(exitDone, "books", "close", "seeded", month.String(), "--json")), &months); err != nil || len(months) != 1 || len(months[0].Hash) != 64 {
		t.Fatalf("%v: %v", months, err)
	}

	if out := b.run(exitDone, "books", "months"); !strings.Contains(out, months[0].Hash) {
		t.Error(out)
	}
	var report balanceReport
	if err := json.Unmarshal([]byte(b.run(exitDone, "books", "balance", "seeded", "--as-of", b.last.String(), "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if !report.Closed || len(report.Accounts) != 3 || report.Total.Debits != 100 || report.Total.Credits != 100 || report.Total.Closing != 0 {
		t.Errorf("%+v", report)
	}

	if out := b.run(exitDone, "books", "balance"); !strings.Contains(out, "the month is open") || !strings.Contains(out, "rewards_payable    -0.60") {
		t.Error(out)
	}
	span := []string{"--from", month.First().String(), "--to", month.Last().String()}
	if out := b.run(exitDone, append([]string{"books", "export", "seeded"}, span...)...); !strings.Contains(out, "total,3 postings,1.00,1.00") {
		t.Error(out)
	}

	file := filepath.Join(t.TempDir(), "journal.csv")
	quickbooks := append([]string{"books", "export", "seeded", "--format", "quickbooks"}, span...)
	b.run(exitUsage, quickbooks...)
	b.run(exitDone, append(quickbooks, "--out", file, "--account", "rewards_payable=Owed to users")...)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), ",Owed to users,,0.60,flexd "+month.String()) {
		t.Errorf("%s %v", text, err)
	}
	b.run(exitUsage, append(quickbooks, "--out", file, "--account", "cash=1")...)
	if out := b.run(exitDone, "verify"); !strings.Contains(out, "laws hold") {
		t.Error(out)
	}
}

// TestBooks_Money takes the commands that move money.
func TestBooks_Money(t *testing.T) {
	b := newBookkeeping(t)
	month := ledger.MonthOf(b.last).String()
	receive := []string{"books", "receive", "seeded", "--counterparty", "market", "--month", month, "--reference", "R1", "--amount"}
	b.wants(b.run(exitDone, append(receive, "0.80")...), "£0.80  booked\n")
	b.wants(b.run(exitDone, append(receive, "0.80")...), "booked before")
	b.wants(b.run(exitFailed, append(receive, "0.81")...), "says something else")
	for _, wrong := range []string{"1,50", "-1", "1.5", "£1", "1.505", "."} {
		b.run(exitUsage, append(receive[:len(receive)-1], "--amount="+wrong)...)
	}
	b.wants(b.run(exitDone, "books", "market"), "market        "+month+"  £1.00     £0.80     £0.00        £0.20")
	b.wants(b.run(exitDone, "books", "market", "--json"), `"difference_pence": 20`)

	b.wants(b.run(exitDone, "books", "owed"), "£0.60  to users of 1 sites")
	b.wants(b.run(exitDone, "books", "owed", "--json"), `"owed_pence": 60`)
	b.wants(b.run(exitDone, "books", "goodwill", "seeded", b.site.String(), "--amount", "5.00", "--reason", "a late reply"), "£5.00  goodwill credit")
	b.wants(b.run(exitUsage, "books", "goodwill", "seeded", b.site.String(), "--amount", "50.01", "--reason", "too much"), "at most £50.00")
	b.wants(b.run(exitDone, "books", "bonus", "seeded", b.site.String(), "--kind", "signup", "--amount", "10", "--reason", "welcome"), "£10.00  signup bonus")
	b.wants(b.run(exitFailed, "books", "write-off", "seeded", "--site", b.site.String(), "--amount", "1.00", "--reason", "no debt"), "at most £0.00")
	b.wants(b.run(exitDone, "books", "write-off", "seeded", "--counterparty", "market", "--month", month, "--reference", "R2", "--amount", "0.20", "--reason", "dispute lost"), "booked")
	b.wants(b.run(exitDone, "books", "unclaimed", "--json"), "[]")
	b.run(exitUsage, "books", "unclaimed", "--move")
	b.wants(b.run(exitDone, "verify"), "laws hold")
}

func (b *bookkeeping) wants(out, want string) {
	b.Helper()
	if !strings.Contains(out, want) {
		b.Errorf("%q is not in %s", want, out)
	}
}

// A file that could not be written to its end is not there, and what was there stays.
func TestWriteWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.csv")
	broken := errors.New("the disk is full")
	write := func(text string, err error) error {
		return writeAtomically(path, func(w io.Writer) error {
			io.WriteString(w, text)
			return err
		})
	}
	if err := write("half", broken); !errors.Is(err, broken) {
		t.Error(err)
	}

	if err := write("whole", nil); err != nil {
		t.Error(err)
	}
	if err := write("half", context.Canceled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	text, err := os.ReadFile(path)
	names, _ := filepath.Glob(path + "*")
	if err != nil || string(text) != "whole" || len(names) != 1 {
		t.Errorf("%s %v %v", text, names, err)
	}
}

func TestStatement(t *testing.T) {
	b := newBookkeeping(t)
	year := b.last.Year
	if from, _ := reward.TaxYear(year); b.last.Start().Before(from.Start()) {
		year--
	}
	site := b.site.String()
	if out := b.run(0, "statement", site, "--tax-year", fmt.Sprint(year)); !strings.Contains(out, "statement "+site) || !strings.Contains(out, "£0.60") {
		t.Errorf("as text: %s", out)
	}
	if out := b.run(0, "statement", site, "--format", "csv"); !strings.HasPrefix(out, "row,line,") || !strings.Contains(out, "\nline,1,") || !strings.Contains(out, ",60,60,") {
		t.Errorf("as CSV: %s", out)
	}

	file := filepath.Join(t.TempDir(), "statement.json")
	b.run(0, "statement", site, "--json", "--out", file)
	text, err := os.ReadFile(file)
	var v struct {
		Closing int `json:"closing_balance_pence"`
	}
	if err != nil || json.Unmarshal(text, &v) != nil || v.Closing != 60 {
		t.Errorf("as JSON: %s %v", text, err)
	}
	b.run(exitUsage, "statement", site, "--month", "2026-13")
	b.run(exitUsage, "statement", site, "--month", "2026-10", "--from", "2026-10-01")
	b.run(2, "statement", site, "--month", "2026-10", "--tax-year", "2026")
}
