package reward

import (
	"cmp"
	"context"
	"math"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// Books is what the accounts of an organisation hold, and what the market owes it and paid.
type Books struct {
	Accounts []AccountSum
	Market   []MarketMoney // of every month, oldest first
	Closed   ledger.Month  // the last closed month
}

// Books reads an organisation's books, of the first organisation if it is zero.
func (s *Service) Books(ctx context.Context, org flex.OrgID) (Books, error) {
	var b Books
	err := s.choose(ctx, org, func(tx *store.Tx) error {
		b = Books{}
		sums, err := tx.AccountSums(ctx)
		if err != nil {
			return err
		}

		for _, a := range sums {
			b.Accounts = append(b.Accounts, AccountSum(a))
		}

		money, err := tx.MarketMoney(ctx)
		if err != nil {
			return err
		}

		for _, m := range money {
			b.Market = append(b.Market, MarketMoney(m))
		}

		b.Closed, err = tx.LastClosedMonth(ctx)

		return err
	})

	return b, err
}

// RunList returns a part of an organisation's settlement runs, newest first: those that come after
// one, or the first if it is zero. The organisation is the first if it is zero.
func (s *Service) RunList(
	ctx context.Context,
	org flex.OrgID,
	before flex.RunID,
	limit int,
) ([]Run, error) {
	var runs []Run
	err := s.choose(ctx, org, func(tx *store.Tx) error {
		found, err := tx.RunsBefore(ctx, before, limit)
		runs = make([]Run, len(found))
		for i := range found {
			runs[i] = runOf(&found[i])
		}

		return err
	})

	return runs, err
}

// PaymentFileList returns a part of an organisation's payment files, newest first: those with a
// number below the one given, or the first if it is 0. The organisation is the first if it is zero.
func (s *Service) PaymentFileList(
	ctx context.Context,
	org flex.OrgID,
	before int64,
	limit int,
) ([]PaymentFileRecord, error) {
	var files []PaymentFileRecord
	err := s.choose(ctx, org, func(tx *store.Tx) error {
		found, err := tx.PaymentFilesBefore(ctx, cmp.Or(before, math.MaxInt64), limit)
		files = fileRecords(found)

		return err
	})

	return files, err
}

// choose reads an organisation, the first if it is zero; nothing where there is none.
func (s *Service) choose(
	ctx context.Context,
	org flex.OrgID,
	read func(tx *store.Tx) error,
) error {
	return s.DB.ReadAll(ctx, func(all *store.All) error {
		_, tx, err := all.Choose(ctx, org)
		if tx == nil || err != nil {
			return err
		}

		return read(tx)
	})
}
