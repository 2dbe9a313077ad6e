package app

import (
	"context"
	"errors"
	"io"
	"time"

	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/market"
	"flexd/internal/pricing"
	"flexd/internal/registry"
	"flexd/internal/store"
)

// importBatch is the number of rows that one statement writes.
const importBatch = 1000

// errReread ends an import whose transaction would have to run again, because its file has
// been read already.
var errReread = errors.New("the store was busy; nothing was imported: import the file again")

// ImportMeters stores a file of metering points, each in place of the earlier one of its MPAN,
// all or nothing. It returns their number, and calls progress after each batch if that is not
// nil.
func (a *App) ImportMeters(
	ctx context.Context,
	r io.Reader,
	progress func(n int),
) (int, error) {
	var n int
	err := a.DB.WriteAll(ctx, func(all *store.All) error {
		if err := all.MayPause(ctx, 0); err != nil {
			return err
		}

		if n > 0 {
			return errReread
		}

		batch := make([]flex.Meter, 0, importBatch)
		flush := func() error {
			n += len(batch)
			err := all.PutMeters(ctx, batch)
			batch = batch[:0]

			if progress != nil {
				progress(n)
			}

			return err
		}

		err := directory.ReadMeters(r, func(m flex.Meter) error {
			batch = append(batch, m)
			if len(batch) == importBatch {
				return flush()
			}
			return nil
		})
		if err != nil {
			return err
		}

		return flush()
	})

	return n, err
}

// ImportModels stores a file of asset models, each in place of the earlier one of its name,
// all or nothing. It returns their number.
func (a *App) ImportModels(ctx context.Context, r io.Reader) (int, error) {
	models, err := registry.ReadModels(r)
	if err != nil {
		return 0, err
	}

	return len(models), a.DB.WriteAll(ctx, func(all *store.All) error {
		return all.PutModels(ctx, models)
	})
}

// ImportPrices stores a file of prices as one publication of the source, known from the
// instant publishAt, or at once if that is zero. It returns the number of half-hours.
func (a *App) ImportPrices(
	ctx context.Context,
	source string,
	publishAt time.Time,
	r io.Reader,
) (int, error) {
	prices, err := market.ReadPrices(r)
	if err != nil {
		return 0, err
	}

	return len(prices), a.Publish(ctx, source, publishAt, prices)
}

// Publish stores prices as one publication.
func (a *App) Publish(
	ctx context.Context,
	source string,
	publishAt time.Time,
	prices []flex.PricedPeriod,
) error {
	if len(prices) == 0 {
		return flex.Fail(flex.Malformed, "there is no price to publish")
	}
	err := pricing.Allowed(pricing.Planning, source, a.DB.Environment)
	if err != nil && pricing.KindOf(source) == pricing.Invented {
		return err
	}

	return a.DB.WriteAll(ctx, func(all *store.All) error {
		p := store.Publication{
			Source: source, PublishedAt: publishAt,
			Span: flex.Span{
				From: prices[0].Period.Start(),
				To:   prices[len(prices)-1].Period.End(),
			},
		}
		if p.PublishedAt.IsZero() {
			p.PublishedAt = all.Now()
		}

		_, err := all.AddPublication(ctx, p, prices)
		return err
	})
}
