package reward_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A correction lowers what was earned from 2500 p to 700 p, or raises it to 3200 p, while 1500
// p are on their way to a bank, wherever they are on it. What a bank has or may have is paid
// once; what was paid too much is a negative balance and is subtracted from what is earned next.
func TestWithdraw_Corrected(t *testing.T) {
	steps := []ledger.PaymentStatus{ledger.PendingApproval, ledger.Approved, ledger.Processing, ledger.Posted}
	ends := []ledger.PaymentStatus{ledger.Posted, ledger.Failed, ledger.Returned, ledger.Cancelled}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := &home{fixture: open(t, url), t: t}
		n := 0

		for _, corrected := range []float64{350, 1600} { // kWh, at 2 p
			for _, at := range steps {
				for _, end := range ends {
					if end == ledger.Cancelled && (at == ledger.Processing || at == ledger.Posted) || end == ledger.Failed && at == ledger.Posted {
						continue
					}

					n++
					t.Run(fmt.Sprintf("to %g kWh when %s, then %s", corrected, at, end), func(t *testing.T) {
						h.t = t
						h.account(byte(n))
						paid := h.correctedOnTheWay(at, end, corrected)
						earned := int(corrected * 2)
						want := fmt.Sprintf("rewards_expense %d, rewards_payable %d", earned, paid-earned)
						if paid > 0 {
							want = fmt.Sprintf("bank %d, ", -paid) + want
						}

						if got, balance := h.owes(), h.balance(t); got != want || int(balance) != earned-paid {
							t.Errorf("%s, balance %s; want %s", got, balance, want)
						}

						// What is below nothing is made up for first.
						h.earnOn(17, 1000)
						if got := h.balance(t); int(got) != earned-paid+2000 {
							t.Errorf("after 2000 p more: %s", got)
						}
					})
				}
			}
		}
		h.sound(t)
	})
}

// account goes on with another household, of an organisation of its own, with a bank account.
func (h *home) account(n byte) {
	h.t.Helper()
	h.monday = flex.Day{Year: 2026, Month: 1, Dom: 12}
	h.another(fmt.Sprint("org ", n))
	h.supply(h.t, 10_000_000)
	h.set(h.t, "credit_pence_per_kwh=2", "user_share=0")
	h.exec(h.t, `UPDATE asset SET power_w = NULL`)
	h.pays(h.t, atOnce())
}

// earnOn has the car charge so many kWh from 22:00 on a day of January, and settles.
func (h *home) earnOn(day int, kwh float64) {
	h.t.Helper()
	from := fmt.Sprintf("2026-01-%d 22:00", day)
	h.charge(h.t, from, fmt.Sprintf("2026-01-%d 22:30", day))
	h.read(h.t, from, kwh)
	h.jobs()
}

// correctedOnTheWay asks for 1500 of 2500 p, corrects what was earned when the payment is at a
// step, and takes it to an end. It returns what the bank has paid.
func (h *home) correctedOnTheWay(at, end ledger.PaymentStatus, kwh float64) (paid int) {
	h.t.Helper()
	h.earnOn(14, 1250)
	h.link(h.t, h.visit(h.t, reward.LinkOptions{}))
	w, err := h.service.Withdraw(h.t.Context(), h.visit(h.t, reward.LinkOptions{}), 1500, h.form(h.t))
	if err != nil {
		h.t.Fatal(err)
	}

	result := func(s ledger.PaymentStatus) error {
		_, err := h.service.Import(h.t.Context(), h.org, "ann", []reward.PaymentResult{{ID: w.ID, Status: s}})
		return err
	}
	steps := []struct {
		to ledger.PaymentStatus
		do func() error
	}{
		{ledger.PendingApproval, func() error { return nil }},
		{ledger.Approved, func() error { _, err := h.decide(h.t, w, ledger.Approved, "ann"); return err }},
		{ledger.Processing, func() error { h.fixture.export(h.t, false); return nil }},
		{ledger.Posted, func() error { return result(ledger.Posted) }},
	}

	corrected := false
	for _, s := range steps {
		if end == ledger.Failed && s.to == ledger.Posted || end == ledger.Cancelled && corrected {
			break
		}
		if err := s.do(); err != nil {
			h.t.Fatal(err)
		}

		if s.to == at {
			h.read(h.t, "2026-01-14 22:00", kwh)
			h.jobs()
			corrected = true
		}
	}

	switch end {
	case ledger.Posted:
		return 1500
	case ledger.Cancelled:
		other := bank
		other.Number = "76543210"
		err = h.service.LinkAccount(h.t.Context(), h.visit(h.t, reward.LinkOptions{}), other)
	default:
		err = result(end)
	}

	if err != nil {
		h.t.Fatal(err)
	}

	return 0
}

// Corrections and withdrawals at the same time: whatever comes first, what is withdrawn is no more
// than the balance was, and what is left is what was earned less that.
func TestWithdraw_CorrectedAtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := &home{fixture: open(t, url), t: t}
		h.account(1)
		h.earnOn(14, 1250)
		h.link(t, h.visit(t, reward.LinkOptions{}))
		visit, done := h.visit(t, reward.LinkOptions{}), make(chan flex.Pence, 4)

		for range cap(done) {
			form := h.form(t)
			go func() {
				w, _ := h.service.Withdraw(context.Background(), visit, 1000, form)
				done <- w.Amount
			}()
		}
		h.write(t, func(ctx context.Context, tx *store.Tx) error {
			at := clock("2026-01-14 22:00")
			return tx.PutReadings(ctx, []flex.Reading{{AssetID: h.asset, Span: flex.Span{From: at, To: at.Add(30 * time.Minute)}, Label: flex.ChargerEnergy, Value: 600e6}})
		})
		h.jobs()

		var asked flex.Pence
		for range cap(done) {
			asked += <-done
		}
		if asked != 1000 && asked != 2000 {
			t.Errorf("%s were withdrawn of £25.00, corrected to £12.00", asked)
		}
		if got := h.balance(t); got != 1200-asked {
			t.Errorf("the balance is %s after %s were withdrawn of £12.00", got, asked)
		}
		h.sound(t)
	})
}
