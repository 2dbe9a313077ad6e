package reward_test

import (
	"slices"
	"strings"
	"testing"

	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store/storetest"
)

// Who approves a withdrawal reads that a correction took back a part of what it pays since it
// was asked for: of 2500 p 1500 p are asked for, and 700 p are owed in the end.
func TestPayouts_WarnOfAnOverdrawnBalance(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := &home{fixture: open(t, url), t: t}
		h.account(1)
		h.earnOn(14, 1250)
		h.link(t, h.visit(t, reward.LinkOptions{}))
		w, err := h.service.Withdraw(t.Context(), h.visit(t, reward.LinkOptions{}), 1500, h.form(t))
		if err != nil {
			t.Fatal(err)
		}

		warned := func(status ledger.PaymentStatus) bool {
			t.Helper()
			ps, err := h.service.Payouts(t.Context(), h.org, status)
			if err != nil || len(ps) != 1 {
				t.Fatalf("%+v, %v", ps, err)
			}

			return slices.ContainsFunc(ps[0].Warnings, func(warning string) bool {
				return strings.HasPrefix(warning, "the balance is -£8.00 after it: ")
			})
		}

		if warned(ledger.PendingApproval) {
			t.Error("warned before anything was corrected")
		}

		h.read(t, "2026-01-14 22:00", 350)
		h.jobs()
		if !warned(ledger.PendingApproval) {
			t.Error("not warned before it is approved")
		}

		if _, err := h.decide(t, w, ledger.Approved, "ann"); err != nil {
			t.Fatal(err)
		}
		if !warned(ledger.Approved) {
			t.Error("not warned before it is exported")
		}
	})
}
