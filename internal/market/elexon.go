package market

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"flexd/internal/flex"
)

// ElexonURL is where Elexon's Insights service answers. Its data are reused under the
// BMRS licence: "Contains BMRS data © Elexon Limited copyright and database right".
const ElexonURL = "https://data.elexon.co.uk/bmrs/api/v1"

// The longest spans that Elexon is asked for in one request. The stream has no limit of
// its own; ours keeps an answer within bounds.
const (
	indexSpan  = 7 * 24 * time.Hour
	streamSpan = 91 * 24 * time.Hour
)

// ElexonIndex is the market index price, the volume-weighted price of the short-term
// trades in each half-hour.
type ElexonIndex struct {
	Web    *Web
	URL    string // ElexonURL
	Stream bool   // ask the stream, for years of history
}

// Name returns the source's name.
func (e ElexonIndex) Name() string { return "elexon-mid" }

// Longest is seven days, or a quarter of a year of the stream.
func (e ElexonIndex) Longest() time.Duration {
	if e.Stream {
		return streamSpan
	}
	return indexSpan
}

// provider is the exchange whose index is used. The other one's rows are mostly zeros.
const provider = "APXMIDP"

type indexRow struct {
	StartTime        string
	DataProvider     string
	SettlementDate   string
	SettlementPeriod int
	Price            *float64
	Volume           *float64
}

// Fetch asks for the index over the span. The service takes both ends as the starts of
// half-hours that are included.
func (e ElexonIndex) Fetch(
	ctx context.Context,
	span flex.Span,
) (Fetched, error) {
	if span.Empty() {
		return Fetched{}, nil
	}

	q := url.Values{
		"from":          {flex.PeriodAt(span.From).Start().Format(minute)},
		"to":            {flex.PeriodAt(span.To.Add(-1)).Start().Format(minute)},
		"dataProviders": {provider},
	}

	var rows []indexRow
	var err error

	if e.Stream {
		_, err = e.Web.get(ctx, e.URL+"/datasets/MID/stream?"+q.Encode(), &rows)
	} else {
		q.Set("format", "json")
		var a struct{ Data []indexRow }
		_, err = e.Web.get(
			ctx,
			e.URL+"/balancing/pricing/market-index?"+q.Encode(),
			&a,
		)

		rows = a.Data
	}

	if err != nil {
		return Fetched{}, fmt.Errorf("fetch the market index: %w", err)
	}

	b := newBook(span)
	inQuarters := map[flex.Period]bool{}

	for _, r := range rows {
		if start, p, ok := r.at(); ok && start.After(p.Start()) {
			inQuarters[p] = true
		}
	}

	for _, r := range rows {
		b.addIndex(r, inQuarters)
	}

	return b.fetched(), nil
}

// at returns when a row begins and in what half-hour, and false if its start and its number
// contradict each other. It begins with the half-hour or a quarter of an hour later.
func (r indexRow) at() (time.Time, flex.Period, bool) {
	start, err := instant(r.StartTime)
	if err != nil {
		return start, flex.Period{}, false
	}

	p := flex.PeriodAt(start)
	day, n := p.SettlementPeriod()
	late := start.Sub(p.Start())

	return start, p, (late == 0 || late == flex.HalfHour/2) &&
		day.String() == r.SettlementDate && n == r.SettlementPeriod
}

// addIndex notes a row of the index: of a half-hour, or of a quarter of an hour, two of which
// bear the half-hour's number. A row without trades has the price 0 and means nothing.
func (b *book) addIndex(r indexRow, inQuarters map[flex.Period]bool) {
	if r.DataProvider != provider || r.Price == nil || r.Volume == nil {
		return
	}

	start, p, ok := r.at()
	switch {
	case ok && inQuarters[p]:
		b.addQuarter(start, *r.Price, *r.Volume)
	case *r.Volume == 0:
	case ok:
		b.add(p, *r.Price, false)
	default:
		b.keepOut(contradictory, start)
	}
}

// settlementPeriod reads a half-hour that is given twice over, by its start and by its
// number in a settlement day, and is false if the two do not agree.
func settlementPeriod(start, date string, number int) (flex.Period, bool) {
	at, err := instant(start)
	if err != nil {
		return flex.Period{}, false
	}
	p := flex.PeriodAt(at)
	day, n := p.SettlementPeriod()

	return p, p.Start().Equal(at) && day.String() == date && n == number
}

// ElexonSystemPrice is the price of imbalance, known soon after each half-hour and
// revised by later settlement runs.
type ElexonSystemPrice struct {
	Web *Web
	URL string // ElexonURL
}

// Name returns the source's name.
func (e ElexonSystemPrice) Name() string { return "elexon-system-price" }

// Longest is a week. The service answers one settlement day at a time, and trading days begin
// an hour before those: a day by itself would be two requests.
func (e ElexonSystemPrice) Longest() time.Duration { return 7 * 24 * time.Hour }

type systemPriceRow struct {
	SettlementDate   string
	SettlementPeriod int
	StartTime        string
	CreatedDateTime  string
	SystemSellPrice  *float64
}

// Fetch asks for every settlement day that the span touches. Of the runs for a half-hour
// the latest made counts.
func (e ElexonSystemPrice) Fetch(
	ctx context.Context,
	span flex.Span,
) (Fetched, error) {
	b := newBook(span)
	for day := flex.DayAt(span.From); day.Start().Before(span.To); day = day.Add(1) {
		var a struct{ Data []systemPriceRow }
		_, err := e.Web.get(
			ctx,
			e.URL+"/balancing/settlement/system-prices/"+day.String()+
				"?format=json",
			&a,
		)

		if err != nil {
			return Fetched{}, fmt.Errorf(
				"fetch the system prices of %s: %w",
				day,
				err,
			)
		}

		made := map[flex.Period]string{}
		for _, r := range a.Data {
			p, ok := settlementPeriod(
				r.StartTime,
				r.SettlementDate,
				r.SettlementPeriod,
			)

			if !ok {
				start, _ := instant(r.StartTime)
				b.keepOut(contradictory, start)
			} else if r.SystemSellPrice != nil && r.CreatedDateTime >= made[p] {
				made[p] = r.CreatedDateTime
				b.add(p, *r.SystemSellPrice, false)
			}
		}
	}

	return b.fetched(), nil
}
