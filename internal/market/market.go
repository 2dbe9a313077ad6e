package market

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
)

// DefaultPublishAt is when in London the next day's prices come out: after the morning's
// hourly auctions.
const DefaultPublishAt = flex.WallTime(14 * time.Hour)

// Service imports, fetches and stores the market's prices, and answers for curves.
type Service struct {
	DB  *store.DB
	Log *slog.Logger // nil means the default logger

	// SharedPrices is the store of the home cell, whose publications FetchPrices copies; nil if there is none.
	SharedPrices *store.DB
	Sources      []Source // that FetchPrices asks
	Carbon       *Carbon  // that FetchPrices asks; nil for none
	// FetchPrices also publishes invented prices; in a sandbox only
	Invent    bool
	PublishAt flex.WallTime // when in London the next day's prices come out; DefaultPublishAt if zero

	mu      sync.Mutex
	askedAt map[string]time.Time // by source, when FetchPrices last asked it
	failed  map[string]failure   // by source, if it failed then
}

func (s *Service) log() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.Default()
}

// publishTime returns when the prices of an EFA day come out.
func (s *Service) publishTime(day flex.EFADay) time.Time {
	at := s.PublishAt
	if at == 0 {
		at = DefaultPublishAt
	}
	eve := flex.Day(day).Add(-1)

	return time.Date(
		eve.Year,
		eve.Month,
		eve.Dom,
		0,
		0,
		0,
		int(time.Duration(at)),
		flex.London,
	).UTC()
}

// Curve returns the price curve as the organisation knows it now: from the current half-hour to 23:00 in
// London, today or, once the next day's prices are out, tomorrow. Prices that are not known are marked. If
// no price of the next day is known, the curve ends today.
func (s *Service) Curve(
	ctx context.Context,
	tx *store.Tx,
) ([]flex.PricedPeriod, error) {
	today := flex.EFADay(flex.DayAt(tx.Now()))
	horizon := flex.CurveHorizon(tx.Now(), today)

	if next := today.Add(1); !tx.Now().Before(s.publishTime(next)) {
		horizon = flex.CurveHorizon(tx.Now(), next)
	}

	prices, err := tx.Prices(ctx, horizon)
	if err != nil {
		return nil, err
	}

	end := today.Span().To
	for _, p := range prices {
		if p.Known && !p.Period.Start().Before(end) {
			return prices, nil
		}
	}

	for len(prices) > 0 && prices[len(prices)-1].Period.End().After(end) {
		prices = prices[:len(prices)-1]
	}

	return prices, nil
}

// SiteCurve returns the curve of a site, or flex.NotFound.
func (s *Service) SiteCurve(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) ([]flex.PricedPeriod, error) {
	var prices []flex.PricedPeriod
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		var err error
		prices, err = s.Curve(ctx, tx)
		return err
	})

	return prices, err
}

// AssetCurve returns the curve of an asset, or flex.NotFound.
func (s *Service) AssetCurve(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) ([]flex.PricedPeriod, error) {
	var prices []flex.PricedPeriod
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Asset(ctx, asset); err != nil {
			return err
		}

		var err error
		prices, err = s.Curve(ctx, tx)
		return err
	})

	return prices, err
}

// DayCurve is a London day's curve with the publications that it was made from.
type DayCurve struct {
	Day          flex.Day
	Quotes       []flex.Quote
	Carbon       map[flex.Period]flex.Carbon
	Publications []Version // without their prices
}

// Day returns a day's curve as the organisation knows it now, today's if the day is zero: the prices of one
// source or, if that is empty, those that the organisation plans on. Publications are those of the source,
// or of all sources.
func (s *Service) Day(
	ctx context.Context,
	org flex.OrgID,
	day flex.Day,
	source string,
) (DayCurve, error) {
	var c DayCurve
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		c, err = curveOf(ctx, tx, day, source)
		return err
	})

	return c, err
}

// curveOf is Day within a transaction.
func curveOf(
	ctx context.Context,
	tx *store.Tx,
	day flex.Day,
	source string,
) (DayCurve, error) {
	if day == (flex.Day{}) {
		day = flex.DayAt(tx.Now())
	}

	var c DayCurve
	c.Day = day

	var err error
	if source == "" {
		c.Quotes, err = tx.Quotes(ctx, pricing.Planning, day.Span())
	} else {
		c.Quotes, err = tx.QuotesFrom(ctx, source, day.Span())
	}

	if err != nil {
		return c, err
	}

	c.Carbon, err = tx.Carbon(ctx, day.Span())
	if err != nil {
		return c, err
	}

	published, err := tx.Publications(ctx, day.Span(), source)
	for i := range published {
		c.Publications = append(c.Publications, versionOf(&published[i]))
	}

	return c, err
}

// TwoDecimals returns a price in pounds per megawatt-hour as the interface shows it,
// rounded half away from zero.
func TwoDecimals(p flex.Price) float64 {
	const hundredth = 10_000
	half := flex.Price(hundredth / 2)
	if p < 0 {
		half = -half
	}

	return float64((p+half)/hundredth) / 100
}
