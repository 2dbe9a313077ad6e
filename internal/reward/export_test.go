package reward_test

import (
	"context"
	"crypto/sha256"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// payer sets the account that pays.
func (y *fixture) payer(t *testing.T) {
	t.Helper()
	rules := atOnce()
	rules.Payer = flex.PayerSettings{SortCode: "200000", Number: "55779911", SUN: "123456"}
	y.pays(t, rules)
}

func (y *fixture) approved(t *testing.T, amount flex.Pence) store.Withdrawal {
	t.Helper()
	w, err := y.decide(t, y.ask(t, bank, amount), ledger.Approved, "ann")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A file is kept by its number, sum and hash; the same payments again are the same message,
// and those of two files are written again one by one.
func TestExport_Files(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.payer(t)
		y.earn(t, 70)
		export := func(o reward.ExportOptions) (reward.PaymentFile, error) {
			return y.service.Export(t.Context(), y.org, "ann", o)
		}

		if _, err := export(reward.ExportOptions{Format: bankfile.Bacs18}); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "nothing to pay") {
			t.Errorf("an empty Bacs file: %v", err)
		}
		first := y.approved(t, 1000)
		a, err := export(reward.ExportOptions{Format: bankfile.Bacs18})
		if err != nil || a.Number != 1 || a.Serial != 1 || a.Total != 1000 || a.PaymentFileRecord.Payments != 1 || string(a.SHA256) != hash(a.Content) {
			t.Fatalf("%+v %v", a.PaymentFileRecord, err)
		}

		y.approved(t, 1100)
		b, err := export(reward.ExportOptions{Format: bankfile.Pain001})
		if err != nil || b.Number != 2 || b.Message == a.Message || !strings.Contains(string(b.Content), "<MsgId>"+b.Message+"</MsgId>") {
			t.Fatalf("%+v %v", b.PaymentFileRecord, err)
		}
		if _, err := export(reward.ExportOptions{Format: bankfile.Bacs18, Repeat: true}); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), a.Message+", "+b.Message) {
			t.Errorf("both again as one message: %v", err)
		}

		c, err := export(reward.ExportOptions{Format: bankfile.CSV, Repeat: true})
		if err != nil || len(c.Payments) != 2 || c.Total != 2100 || c.Number != 3 {
			t.Errorf("both again as CSV: %+v %v", c.PaymentFileRecord, err)
		}
		d, err := export(reward.ExportOptions{Format: bankfile.Bacs18, Repeat: true, Message: a.Message})
		if err != nil || string(d.Content) != string(a.Content) || d.Message != a.Message || d.Serial != 1 || d.Number != 4 || d.Payments[0].ID != first.ID {
			t.Errorf("the first again: %+v %v\n%s", d.PaymentFileRecord, err, d.Content)
		}

		// The setting is a CSV by now.
		if _, err := export(reward.ExportOptions{Repeat: true, Message: a.Message}); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "were in a bacs18 file") {
			t.Errorf("the first again in another format that nobody asked for: %v", err)
		}

		files, err := y.service.PaymentFiles(t.Context(), y.org)
		if err != nil || len(files) != 4 || files[3].Message != a.Message || files[3].Total != 1000 || files[3].Day != a.Day || string(files[3].SHA256) != hash(a.Content) {
			t.Errorf("%+v %v", files, err)
		}
	})
}

// Payments of several files are written again as a CSV by the setting only if all of the files
// were CSVs: a bank that has one of the others does not know its payments again. Who names the
// format gets it.
func TestExport_AgainOfSeveralFormats(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.payer(t)
		y.earn(t, 70)
		export := func(o reward.ExportOptions) (reward.PaymentFile, error) {
			return y.service.Export(t.Context(), y.org, "ann", o)
		}

		for i, format := range []bankfile.Format{bankfile.CSV, bankfile.CSV, bankfile.Bacs18} {
			y.approved(t, flex.Pence(1000+100*i))
			if _, err := export(reward.ExportOptions{Format: format}); err != nil {
				t.Fatal(err)
			}

			f, err := export(reward.ExportOptions{Repeat: true})
			if format == bankfile.CSV && (err != nil || len(f.Payments) != i+1) {
				t.Errorf("%d payments of CSVs again: %+v %v", i+1, f.PaymentFileRecord, err)
			}
			if format != bankfile.CSV && (flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "were in a bacs18 file")) {
				t.Errorf("payments of a Bacs file again as CSV, which nobody asked for: %v", err)
			}
		}

		f, err := export(reward.ExportOptions{Format: bankfile.CSV, Repeat: true})
		if err != nil || len(f.Payments) != 3 || f.Total != 3300 {
			t.Errorf(
				"all again as CSV, as was asked for: %+v %v",
				f.PaymentFileRecord,
				err,
			)
		}
	})
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return string(sum[:])
}

// The setting chooses the format, and what it needs is said before anything is exported.
func TestExport_Format(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.earn(t, 25)
	rules := atOnce()
	rules.FileFormat = "pain.001"
	y.pays(t, rules)
	w := y.approved(t, 1000)
	_, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{})
	if flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "payer_sort_code and payer_account: flexd org set NAME payer_sort_code=…") || y.status(t, w) != ledger.Approved {
		t.Errorf("%v", err)
	}

	if _, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{Format: "xls"}); flex.KindOf(err) != flex.Invalid {
		t.Errorf("%v", err)
	}
	rules.Payer = flex.PayerSettings{IBAN: "GB29NWBK60161331926819"}
	y.pays(t, rules)
	f, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{})
	if err != nil || !strings.Contains(string(f.Content), "GB29NWBK60161331926819") || y.status(t, w) != ledger.Processing || !strings.HasSuffix(f.Name(), ".xml") {
		t.Errorf("%v %s", err, f.Content)
	}
}

// Files are for working days: Bacs processes on the one after that of sending, and nothing
// is made for more than 30 days ahead.
func TestExport_Day(t *testing.T) {
	day := func(text string) flex.Day {
		d, err := flex.ParseDay(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}

	for name, tt := range map[string]struct {
		today, asked string
		format       bankfile.Format
		want         string // a day, or what is wrong
	}{
		"Wednesday":               {"2026-01-14", "", bankfile.Bacs18, "2026-01-15"},
		"Wednesday, ISO":          {"2026-01-14", "", bankfile.Pain001, "2026-01-14"},
		"Friday":                  {"2026-01-16", "", bankfile.Bacs18, "2026-01-19"},
		"Saturday":                {"2026-01-17", "", bankfile.Bacs18, "2026-01-20"},
		"Saturday, ISO":           {"2026-01-17", "", bankfile.Pain001, "2026-01-19"},
		"before Easter":           {"2026-04-02", "", bankfile.Bacs18, "2026-04-07"},
		"before Christmas":        {"2026-12-24", "", bankfile.Bacs18, "2026-12-29"},
		"Boxing Day's substitute": {"2026-01-14", "2026-01-17", bankfile.Bacs18, "no working day; the next one is 2026-01-19"},
		"too soon for Bacs":       {"2026-01-14", "2026-01-14", bankfile.Bacs18, "for 2026-01-15 at the earliest and 2026-02-13 at the latest"},
		"today, ISO":              {"2026-01-14", "2026-01-14", bankfile.Pain001, "2026-01-14"},
		"the last day":            {"2026-01-14", "2026-02-13", bankfile.Bacs18, "2026-02-13"},
		"a day later":             {"2026-01-14", "2026-02-16", bankfile.Bacs18, "2026-02-13 at the latest"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked flex.Day
			if tt.asked != "" {
				asked = day(tt.asked)
			}

			got, err := reward.PaymentDay(tt.format, asked, day(tt.today))
			if err != nil && !strings.Contains(err.Error(), tt.want) || err == nil && got.String() != tt.want {
				t.Errorf("%s %v, want %s", got, err, tt.want)
			}
		})
	}
}

// A relink takes a withdrawal away while an export is under way: the export waits for it,
// leaves that one out, and pays the others. Exports at once pay each once.
func TestExport_MeetsRelink(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.payer(t)
		y.earn(t, 70)
		taken := y.approved(t, 1000)
		other := y.approved(t, 1100)

		if y.db.Engine() == "postgres" {
			// The relink has moved the withdrawal and has not committed yet.
			files, locks := make(chan reward.PaymentFile, 1), storetest.At(t, y.db, url)
			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				if _, err := tx.MoveWithdrawal(ctx, taken.ID, ledger.Cancelled, "user", "relinked"); err != nil {
					return err
				}

				go func() {
					f, err := y.service.Export(ctx, y.org, "ann", reward.ExportOptions{})
					if err != nil {
						t.Error(err)
					}
					files <- f
				}()

				for start := time.Now(); locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0; {
					if time.Since(start) > time.Minute {
						t.Fatal("the export does not wait")
					}
				}
				return nil
			})

			f := <-files
			if len(f.Payments) != 1 || f.Payments[0].ID != other.ID || len(f.LeftOut) != 1 || !strings.Contains(f.LeftOut[0], "it became cancelled meanwhile") {
				t.Errorf("%+v", f)
			}
		} else if _, err := y.decide(t, taken, ledger.Cancelled, "user"); err != nil {
			t.Fatal(err)
		}

		third := y.approved(t, 1200)
		files := make(chan reward.PaymentFile)
		for range 4 {
			go func() {
				f, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{})
				if err != nil {
					t.Error(err)
				}
				files <- f
			}()
		}

		paid := map[flex.TransactionID]int{}
		for range 4 {
			for _, p := range (<-files).Payments {
				paid[p.ID]++
			}
		}
		if paid[third.ID] != 1 || paid[taken.ID] != 0 || paid[other.ID] > 1 {
			t.Errorf("%v", paid)
		}
	})
}

// TestExport_OlderCopy restores a copy from before a payment file, as docs/operating.md says:
// its withdrawals would be paid again, in a file of the same name. Exported to a file that
// nobody sends, they take what the bank says of the first.
func TestExport_OlderCopy(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.payer(t)
	y.earn(t, 70)
	w := y.approved(t, 1000)
	file := filepath.Join(t.TempDir(), "copy.db")
	if err := y.db.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}

	sent := y.export(t, false)
	copied := storetest.Open(
		t,
		"sqlite:"+file,
		store.Options{Now: func() time.Time { return y.now }},
	)
	s := &reward.Service{DB: copied}
	if known, err := s.PaymentFiles(t.Context(), y.org); len(known) > 0 || err != nil {
		t.Errorf("the copy knows of %d files: %v", len(known), err)
	}

	paid := []reward.PaymentResult{{ID: w.ID, Status: ledger.Posted}}
	if _, err := s.Import(t.Context(), y.org, "ann", paid); err == nil {
		t.Error("it takes a result of what it does not know to be sent")
	}

	again, err := s.Export(t.Context(), y.org, "ann", reward.ExportOptions{})
	if err != nil || again.Message != sent.Message || string(again.Content) != string(sent.Content) {
		t.Fatalf(
			"it would pay again as %q, after %q: %v",
			again.Message,
			sent.Message,
			err,
		)
	}
	if got, err := s.Import(t.Context(), y.org, "ann", paid); err != nil {
		t.Errorf("%+v %v", got, err)
	}

	if after, err := s.Export(t.Context(), y.org, "ann", reward.ExportOptions{}); err != nil || after.PaymentFileRecord.Payments != 0 {
		t.Errorf("it pays once more: %+v %v", after.PaymentFileRecord, err)
	}
}
