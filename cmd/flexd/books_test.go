package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
)

// bookkeeping is a store with some money in it, and the program that is run on it.
type bookkeeping struct {
	*testing.T
	url  string
	last flex.Day // of the month before
}

func newBookkeeping(t *testing.T) *bookkeeping {
	b := &bookkeeping{T: t, url: "sqlite:" + filepath.Join(t.TempDir(), "flexd.db")}
	at := store{Database: b.url, Environment: "sandbox"}
	h, err := at.openAnew(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	seed := storetest.NewSeed(t, h.DB, b.url)
	today := flex.DayAt(time.Now())
	b.last = flex.Day{Year: today.Year, Month: today.Month, Dom: 1}.Add(-1)
	tr := records.Transaction{}
	tr.Key, tr.Kind, tr.SiteID, tr.Settled, tr.Cause = "k", ledger.FlexEvent, seed.Site(), b.last, ledger.Cause{By: "test"}
	tr.Postings = ledger.Earned(100, 60, 40)
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

// A file that could not be written to its end is not there, and what was there stays.
func TestWriteWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.csv")
	broken := errors.New("the disk is full")
	write := func(text string, err error) error {
		return writeWhole(path, func(w io.Writer) error {
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
