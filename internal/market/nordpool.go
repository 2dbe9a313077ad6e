package market

import (
	"context"
	"fmt"
	"net/url"
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
	MultiAreaEntries []nordPoolEntry
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
		q := url.Values{"date": {day.String()}, "market": {"N2EX_DayAhead"}, "deliveryArea": {nordPoolArea}, "currency": {"GBP"}}
		var d nordPoolDay
		found, err := n.Web.get(ctx, n.URL+"/DayAheadPrices?"+q.Encode(), &d)
		if err != nil {
			return Fetched{}, fmt.Errorf("fetch the day-ahead prices of %s: %w", day, err)
		}
		if !found || len(d.MultiAreaEntries) == 0 {
			continue
		}
		if d.Currency != "GBP" {
			return Fetched{}, fmt.Errorf("fetch the day-ahead prices of %s: they are in %q, not in GBP", day, d.Currency)
		}
		for _, e := range d.MultiAreaEntries {
			price := e.EntryPerArea[nordPoolArea]
			s := flex.Span{From: e.DeliveryStart, To: e.DeliveryEnd}
			switch {
			case price == nil:
			case s.Len() < flex.HalfHour || s.Len() > time.Hour:
				b.keptOut++
			default:
				b.addSpan(s, *price, s.Len() > flex.HalfHour)
			}
		}
	}
	return b.fetched(), nil
}
