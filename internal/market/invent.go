package market

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
)

// inventMax is how many trading days of made-up prices one run publishes.
const inventMax = 40

// invent publishes made-up prices in a sandbox: of the day before the first run, and from then on
// to the end of the day after the clock of whichever organisation is furthest ahead. Each day is
// a publication of its own, known from its hour on, as a market's are.
func (s *Service) invent(ctx context.Context) (int, error) {
	if s.DB.Environment != flex.Sandbox {
		return 0, nil
	}

	next, last, err := s.toInvent(ctx)
	if err != nil {
		return 0, err
	}

	return s.inventDays(ctx, next, last)
}

// InventTo publishes made-up prices as far as an organisation needs them whose clock is advanced to
// the instant. Each day's are known from its own hour on, so that they may lie ready long before.
func (s *Service) InventTo(ctx context.Context, to time.Time) error {
	if !s.Invent || s.DB.Environment != flex.Sandbox {
		return nil
	}

	lacked, err := s.inventThrough(ctx, flex.EFADayAt(to).Add(1))
	if err != nil || !lacked || s.Home == nil {
		return err
	}

	_, err = s.copyHome(ctx)

	return err
}

// inventAhead has home make up the prices for the clocks of this cell, which may be further ahead than
// those of home.
func (s *Service) inventAhead(ctx context.Context) error {
	if !s.Invent || s.DB.Environment != flex.Sandbox {
		return nil
	}

	_, last, err := s.toInvent(ctx)
	if err != nil {
		return err
	}

	_, err = s.inventThrough(ctx, last)

	return err
}

// inventThrough publishes made-up prices to the end of the last day, and reports whether the store lacked any. Those of a cell are
// published at home, where each other cell copies them from.
func (s *Service) inventThrough(
	ctx context.Context,
	last flex.EFADay,
) (bool, error) {
	next, _, err := s.toInvent(ctx)
	if err != nil || next.Span().From.After(last.Span().From) {
		return false, err
	}

	if s.Home != nil {
		home := &Service{DB: s.Home, Log: s.Log, PublishAt: s.PublishAt}
		_, err := home.inventThrough(ctx, last)

		return true, err
	}

	for made := inventMax; made == inventMax && err == nil; next = next.Add(made) {
		made, err = s.inventDays(ctx, next, last)
	}

	return true, err
}

// inventDays publishes the made-up prices of some days, the last included, as many as one run may.
func (s *Service) inventDays(
	ctx context.Context,
	next, last flex.EFADay,
) (int, error) {
	var made int
	for ; made < inventMax && !next.Span().From.After(last.Span().From); next = next.Add(1) {
		if _, err := s.publish(
			ctx,
			store.Publication{Source: pricing.SandboxSource},
			next,
			inventedDay(next),
			s.DB.Now(),
		); err != nil {
			return made, fmt.Errorf(
				"publish the made-up prices of %s: %w",
				next,
				err,
			)
		}

		made++
	}

	return made, nil
}

// toInvent returns the first day without made-up prices and the last that is to have them.
func (s *Service) toInvent(ctx context.Context) (next, last flex.EFADay, err error) {
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		furthest, err := all.FurthestClock(ctx)
		if err != nil {
			return err
		}

		through, err := all.PricedThrough(ctx, pricing.SandboxSource)
		if err != nil {
			return err
		}

		last = flex.EFADayAt(furthest).Add(1)
		next = flex.EFADayAt(all.Now()).Add(-1)

		if !through.IsZero() {
			next = flex.EFADayAt(through)
		}

		return nil
	})

	return next, last, err
}

// inventedDay returns the made-up prices of a trading day.
func inventedDay(day flex.EFADay) []flex.PricedPeriod {
	var prices []flex.PricedPeriod
	for p := flex.PeriodAt(day.Span().From); p.Start().Before(day.Span().To); p = p.Add(1) {
		prices = append(prices, flex.PricedPeriod{
			Period: p,
			Price:  pricing.InventedPrice(p),
			Known:  true,
		})
	}

	return prices
}
