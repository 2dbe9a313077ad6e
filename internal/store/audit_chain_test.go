package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// acts writes three acts down: one that is done, one whose end says more than was known, one
// that was cut short.
func acts(t *testing.T, db *store.DB) {
	t.Helper()
	for i, end := range []struct{ outcome, detail string }{{flex.ActDone, ""}, {"refused", "3 payments"}, {"", ""}} {
		a := flex.AuditEntry{Who: "ada", Source: "192.0.2.1", Act: fmt.Sprintf("act %d", i), Subject: "a <site> & more", Detail: "planned"}
		if i == 1 {
			a.Org = flex.OrgID{7}
		}

		if err := db.WriteAll(t.Context(), func(all *store.All) error { return all.BeginAct(t.Context(), &a) }); err != nil {
			t.Fatal(err)
		}

		if end.outcome == "" {
			continue
		}

		if err := db.WriteAll(t.Context(), func(all *store.All) error { return all.EndAct(t.Context(), a.ID, end.outcome, end.detail) }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAuditChain_AnyText: what is written down of texts that no database keeps as they are
// breaks no link, and is kept.
func TestAuditChain_AnyText(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		for _, text := range []string{"\xff", "a\x00b", "\xed\xa0\x80", "caf\xc3"} {
			a := flex.AuditEntry{Who: text, Source: text, Act: "act", Subject: text, Detail: text}
			err := db.WriteAll(t.Context(), func(all *store.All) error { return all.BeginAct(t.Context(), &a) })
			if err == nil {
				err = db.WriteAll(t.Context(), func(all *store.All) error { return all.EndAct(t.Context(), a.ID, text, text) })
			}
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}

		if broken, err := db.VerifyAudit(t.Context()); err != nil || len(broken) > 0 {
			t.Errorf("%q %v", broken, err)
		}
	})
}

// TestAuditChain_ClockSetBack: an act during which the clock was set back ends when it began,
// and its link says so.
func TestAuditChain_ClockSetBack(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 3, 4, 12, 0, 5, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }}) // verified when it is closed
		a := flex.AuditEntry{Who: "ada", Act: "act"}
		err := db.WriteAll(t.Context(), func(all *store.All) error { return all.BeginAct(t.Context(), &a) })
		if err != nil {
			t.Fatal(err)
		}

		now = now.Add(-5 * time.Second)
		err = db.WriteAll(t.Context(), func(all *store.All) error { return all.EndAct(t.Context(), a.ID, flex.ActDone, "") })
		if err != nil {
			t.Fatal(err)
		}

		if broken, err := db.VerifyAudit(t.Context()); err != nil || len(broken) > 0 {
			t.Errorf("%q %v", broken, err)
		}
	})
}

// The chain holds as it was written, and every way to change the log behind its back is found.
func TestAuditChain(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(
			t,
			url,
			store.Options{Environment: flex.Sandbox, Now: func() time.Time { return time.Date(2026, 3, 29, 0, 59, 59, 123456789, time.UTC) }},
		)
		seed := storetest.NewSeed(t, db, url)
		acts(t, db)

		verify := func(want string) {
			t.Helper()
			broken, err := db.VerifyAudit(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			if got := strings.Join(broken, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		}

		verify("")

		for _, forged := range []struct{ name, change, undo, want string }{
			{"another did it", `UPDATE audit SET who = 'bea' WHERE act = 'act 0'`, `UPDATE audit SET who = 'ada' WHERE act = 'act 0'`, "no longer what link 1 says"},
			{"it was not refused", `UPDATE audit SET outcome = 'done' WHERE act = 'act 1'`, `UPDATE audit SET outcome = 'refused' WHERE act = 'act 1'`, "no longer what link 4 says"},
			{"it was one payment", `UPDATE audit SET detail = '1 payment' WHERE act = 'act 1'`, `UPDATE audit SET detail = '3 payments' WHERE act = 'act 1'`, "no longer what link 4 says"},
			{"it was earlier", `UPDATE audit SET at = at - 1 WHERE act = 'act 2'`, `UPDATE audit SET at = at + 1 WHERE act = 'act 2'`, "no longer what link 5 says"},
			{"it was for something else", `UPDATE audit SET detail = 'nothing' WHERE act = 'act 2'`, `UPDATE audit SET detail = 'planned' WHERE act = 'act 2'`, "no longer what link 5 says"},
			{"another link", `UPDATE audit_link SET text = REPLACE(text, 'ada', 'bea') WHERE sequence = 1`, `UPDATE audit_link SET text = REPLACE(text, 'bea', 'ada') WHERE sequence = 1`, "link 1 does not follow"},
			{"another end", `UPDATE audit_head SET hash = 'abc'`, `UPDATE audit_head SET hash = (SELECT hash FROM audit_link WHERE sequence = 5)`, "the newest link is not the one"},
		} {
			t.Run(forged.name, func(t *testing.T) {
				seed.Exec(forged.change)
				verify(forged.want)
				seed.Exec(forged.undo)
				verify("")
			})
		}

		seed.Exec(`DELETE FROM audit WHERE act = 'act 2'`)
		verify("link 5 is of an act that is gone")
		seed.Exec(`DELETE FROM audit_link WHERE sequence = 5`)
		verify("the newest link is not the one that was written last, 5")

		findings, err := db.Verify(t.Context())
		if err != nil || !strings.Contains(strings.Join(findings, "; "), "links of the audit log are counted without a hole") {
			t.Errorf("flexd verify finds %q, %v", findings, err)
		}

		seed.Exec(`UPDATE audit_head SET sequence = 4, hash = (SELECT hash FROM audit_link WHERE sequence = 4)`)
		verify("")
	})
}

// Acts that end at once, from several writers, make one chain.
func TestAuditChain_Together(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		other := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})

		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				if i%2 == 0 {
					acts(t, db)
				} else {
					acts(t, other)
				}
			})
		}

		wait.Wait()

		err := db.ReadAll(t.Context(), func(all *store.All) error {
			head, err := all.AuditHead(t.Context())
			if head.Sequence != 8*5 {
				t.Errorf("%d links, want 40", head.Sequence)
			}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		if broken, err := db.VerifyAudit(t.Context()); err != nil || len(broken) > 0 {
			t.Errorf("%q %v", broken, err)
		}
	})
}
