package books

import (
	"context"
	"fmt"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// TextMax is the most characters of a counterparty's name, a reference or a reason.
const TextMax = 140

// Receipt is money that a counterparty paid for a month's flexibility.
type Receipt struct {
	Counterparty string
	Month        ledger.Month
	Amount       flex.Pence
	// the counterparty's own; with name and month it counts once
	Reference string
	On        flex.Day // when it came; zero is today
	By        string
}

func (r Receipt) check(today flex.Day) error {
	err := checkText("a counterparty's name", r.Counterparty)
	if err != nil {
		return err
	}

	if err := checkText("a reference", r.Reference); err != nil {
		return err
	}

	if r.Amount <= 0 || r.Amount > ledger.MaxAmount {
		return flex.Fail(
			flex.Invalid,
			"a receipt is more than nothing and at most %s, not %s",
			ledger.MaxAmount,
			r.Amount,
		)
	}

	if today.Start().Before(r.On.Start()) {
		return flex.Fail(flex.Invalid, "%s is not here yet", r.On)
	}

	if ledger.MonthOf(today).Before(r.Month) {
		return flex.Fail(flex.Invalid, "the month %s has not begun", r.Month)
	}

	return nil
}

func checkText(what, text string) error {
	n := len([]rune(text))
	if n == 0 || n > TextMax || strings.TrimSpace(text) != text {
		return flex.Fail(
			flex.Invalid,
			"%s has 1 to %d characters and no blanks around it, not %q",
			what,
			TextMax,
			text,
		)
	}

	return nil
}

// Receive books money of the market. The same receipt again changes nothing: posted is false.
// Another amount under its reference is a Conflict, and so is one that was reversed.
func (s *Service) Receive(
	ctx context.Context,
	org flex.OrgID,
	r Receipt,
) (posted bool, err error) {
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		today := flex.DayAt(tx.Now())
		if r.On == (flex.Day{}) {
			r.On = today
		}

		if err := r.check(today); err != nil {
			return err
		}

		t := ledger.Booked{ForMonth: r.Month}
		t.Key = fmt.Sprintf(
			"receipt:%s:%s:%s",
			r.Counterparty,
			r.Month,
			r.Reference,
		)

		t.Kind, t.Settled = ledger.InvoicePaid, r.On
		t.Cause, t.Postings = ledger.Cause{By: r.By}, ledger.Received(r.Amount)
		t.Counterparty, t.Reference = r.Counterparty, r.Reference
		posted, err = tx.Post(ctx, &t)
		if err != nil || posted {
			return err
		}

		return notReversed(ctx, tx, t.ID)
	})

	return posted, err
}

// Reconciliation returns the market's money by counterparty and month, the oldest month
// first: what was to come, what came, and the difference.
func (s *Service) Reconciliation(
	ctx context.Context,
	org flex.OrgID,
) ([]store.MarketMoney, error) {
	var money []store.MarketMoney
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		money, err = tx.MarketMoney(ctx)
		return err
	})

	return money, err
}
