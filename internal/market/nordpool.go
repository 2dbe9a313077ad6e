package market

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// NordPoolURL is where Nord Pool's data portal answers. Its terms allow one's own use and
// forbid passing the prices on, so an operator has to choose this source.
const NordPoolURL = "https://dataportal-api.nordpoolgroup.com/api"

// NordPool is the hourly day-ahead auction of the exchange N2EX, out by 10:00 in London
// for the day from the next 23:00 on.
type NordPool struct {
	Web *Web
	URL string // NordPoolURL
}

// Name returns the source's name.
func (n NordPool) Name() string { return "nordpool-n2ex" }

// Longest is a day: the service answers one delivery day at a time.
func (n NordPool) Longest() time.Duration { return 24 * time.Hour }

const nordPoolArea = "UK"

type nordPoolDay struct {
	Currency         string
	State            string
	AreaStates       []nordPoolState
	MultiAreaEntries []nordPoolEntry
}

// nordPoolState says of some areas whether their prices are final.
type nordPoolState struct {
	State string
	Areas []string
}

// preliminary reports whether the exchange may still change the day's prices.
func (d *nordPoolDay) preliminary() bool {
	state := d.State
	for _, s := range d.AreaStates {
		if slices.Contains(s.Areas, nordPoolArea) {
			state = s.State
		}
	}

	return strings.EqualFold(state, "Preliminary")
}

type nordPoolEntry struct {
	DeliveryStart time.Time
	DeliveryEnd   time.Time
	EntryPerArea  map[string]*float64
}

// Fetch asks for every delivery day that the span touches. An hour's price holds for its
// two half-hours, which are marked as derived. A day that is not out yet gives nothing.
func (n NordPool) Fetch(ctx context.Context, span flex.Span) (Fetched, error) {
	b := newBook(span)
	for day := flex.EFADayAt(span.From); day.Span().From.Before(span.To); day = day.Add(1) {
		q := url.Values{
			"date":         {day.String()},
			"market":       {"N2EX_DayAhead"},
			"deliveryArea": {nordPoolArea},
			"currency":     {"GBP"},
		}

		var d nordPoolDay
		found, err := n.Web.get(ctx, n.URL+"/DayAheadPrices?"+q.Encode(), &d)
		if err != nil {
			return Fetched{}, fmt.Errorf(
				"fetch the day-ahead prices of %s: %w",
				day,
				err,
			)
		}

		if !found || len(d.MultiAreaEntries) == 0 {
			continue
		}
		if d.Currency != "GBP" {
			return Fetched{}, fmt.Errorf(
				"fetch the day-ahead prices of %s: they are in %q, not in GBP",
				day,
				d.Currency,
			)
		}

		b.addNordPool(&d)
	}

	return b.fetched(), nil
}

// addNordPool notes a delivery day's prices, by the hour, the half-hour or the quarter of an hour.
// The two quarters of a half-hour count alike: the auction tells no volumes with its prices.
func (b *book) addNordPool(d *nordPoolDay) {
	for _, e := range d.MultiAreaEntries {
		price := e.EntryPerArea[nordPoolArea]
		if price == nil {
			continue
		}

		s := flex.Span{From: e.DeliveryStart, To: e.DeliveryEnd}
		switch s.Len() {
		case flex.HalfHour / 2:
			b.addQuarter(s.From, *price, 1)
		case flex.HalfHour:
			b.addSpan(s, *price, false)
		case time.Hour:
			b.addSpan(s, *price, true)
		default:
			b.keepOut(oddLength, s.From)
			continue
		}

		if d.preliminary() {
			b.preliminary[flex.PeriodAt(s.From)], b.preliminary[flex.PeriodAt(s.To.Add(-1))] = true, true
		}
	}
}
