package market

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
)

// inventMax is how many EFA days of invented prices one run publishes at most.
const inventMax = 40

// invent publishes invented prices in a sandbox: of the day before the first run, and from then on
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

// InventTo publishes invented prices as far as an organisation needs them whose clock is advanced to the
// instant. Each day's prices count as known from its own hour on, so it does no harm to publish them early.
func (s *Service) InventTo(ctx context.Context, to time.Time) error {
	if !s.Invent || s.DB.Environment != flex.Sandbox {
		return nil
	}

	lacked, err := s.inventThrough(ctx, flex.EFADayAt(to).Add(1))
	if err != nil || !lacked || s.SharedPrices == nil {
		return err
	}

	_, err = s.copyHome(ctx)

	return err
}

// inventAhead publishes invented prices at home for the clocks of this cell, which may be further ahead than
// those at home.
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

// inventThrough publishes invented prices to the end of the last day, and reports whether any were missing. For
// another cell they are published at home, from where every cell copies them.
func (s *Service) inventThrough(
	ctx context.Context,
	last flex.EFADay,
) (bool, error) {
	next, _, err := s.toInvent(ctx)
	if err != nil || next.Span().From.After(last.Span().From) {
		return false, err
	}

	if s.SharedPrices != nil {
		home := &Service{DB: s.SharedPrices, Log: s.Log, PublishAt: s.PublishAt}
		_, err := home.inventThrough(ctx, last)

		return true, err
	}

	for made := inventMax; made == inventMax && err == nil; next = next.Add(made) {
		made, err = s.inventDays(ctx, next, last)
	}

	return true, err
}

// inventDays publishes the invented prices of the days from next to last, at most inventMax, and returns how
// many days that were.
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

// toInvent returns the first day without invented prices, and the last day that is to have them.
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

// inventedDay returns the invented prices of an EFA day.
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
