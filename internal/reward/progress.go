package reward

import (
	"context"
	"time"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// Progress is how far a visitor's money is: what came lately, and what is on its way.
type Progress struct {
	ThisMonth flex.Pence // earned in the London month that runs, goodwill too
	ThisYear  flex.Pence // earned in the London year that runs
	ToGo      flex.Pence // until the least withdrawal is reached; zero if it is
	Open      []OpenWithdrawal
}

// OpenWithdrawal is a withdrawal that is on its way to the bank.
type OpenWithdrawal struct {
	AskedAt time.Time
	Amount  flex.Pence
	Status  ledger.PaymentStatus
	// at the user's bank: by the file that it is in, else if it is approved in time
	ExpectedOn flex.Day
}

// progress reads how far a site's money is.
func progress(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	info Info,
	settings flex.PayoutSettings,
) (Progress, error) {
	today := flex.DayAt(tx.Now())
	year := flex.Day{
		Year:  today.Year,
		Month: time.January,
		Dom:   1,
	}

	// What was earned in the years before is not read.
	all, err := tx.SiteTransactionsWithin(
		ctx,
		site,
		flex.Span{From: year.Start(), To: today.Add(1).Start()},
	)
	var p Progress
	if err != nil {
		return p, err
	}

	p.ThisMonth = earnedSince(all, ledger.MonthOf(today).First())
	p.ThisYear = earnedSince(all, year)
	p.ToGo = max(0, info.Terms.Minimum-info.Balance)

	open, err := tx.WithdrawalsUnderWay(ctx, site)
	if err != nil {
		return p, err
	}

	for _, w := range open {
		on, err := expectedOn(ctx, tx, w, settings)
		if err != nil {
			return p, err
		}

		p.Open = append(p.Open, OpenWithdrawal{
			AskedAt:    w.AskedAt,
			Amount:     w.Amount,
			Status:     w.Status,
			ExpectedOn: on,
		})
	}

	return p, nil
}

// earnedSince adds up what a statement from a day on says was earned.
func earnedSince(all []ledger.Booked, day flex.Day) flex.Pence {
	var sum Totals
	for _, t := range all {
		if !t.At.Before(day.Start()) {
			sum.add(t)
		}
	}

	return sum.Earned + sum.Other
}

// expectedOn is the day on which a withdrawal is at the user's bank: by the payment file that
// it is in, else by the first that can be made, today or as soon as its account may be paid.
func expectedOn(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	settings flex.PayoutSettings,
) (flex.Day, error) {
	fixedAccount, err := tx.PinnedPayee(ctx, w)
	if err != nil {
		return flex.Day{}, err
	}

	from := tx.Now()
	if fixedAccount != nil && fixedAccount.Message != "" && w.Status == ledger.Processing {
		file, err := tx.PaymentFileOf(ctx, fixedAccount.Message)
		if err != nil {
			return flex.Day{}, err
		}
		if file != nil {
			return arrives(bankfile.Format(file.Format), file.Day), nil
		}
	}

	if fixedAccount != nil {
		free := payoutTerms(settings).PaidFrom(fixedAccount.LinkedAt)
		if free.After(from) {
			from = free
		}
	}

	format := bankfile.Format(settings.FileFormat)
	day, err := paymentDay(format, flex.Day{}, flex.DayAt(from))

	return arrives(format, day), err
}

// arrives is the day on which what a file of some day pays is at the users' banks: Bacs
// processes it on that day, and the money is there on the next working day.
func arrives(format bankfile.Format, day flex.Day) flex.Day {
	if format != bankfile.Bacs18 {
		return day
	}

	return workingDay(day.Add(1))
}
