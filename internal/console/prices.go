package console

import (
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/market"
)

// pricesPage is a day's prices, by publication.
type pricesPage struct {
	market.DayView
	Source  string
	Low     *market.PriceLine
	High    *market.PriceLine
	Before  string // addresses of the days beside
	After   string
	Numbers string
	Export  Export
}

// json is the page for programs.
func (p *pricesPage) json() any {
	return map[string]any{
		"day":          p.Day.String(),
		"curve":        p.Lines,
		"publications": p.Versions,

		"num_publications": p.NumVersions, // the newest are listed

		"sources": sourceRowsOf(p.Sources),
	}
}

// sourceRow is a source of prices for programs.
type sourceRow struct {
	Source   string    `json:"source"`
	Stale    string    `json:"stale,omitempty"` // what is missing
	Failure  string    `json:"failure,omitempty"`
	FailedAt time.Time `json:"failed_at,omitzero"`
	Through  time.Time `json:"prices_through,omitzero"`
	Fetched  time.Time `json:"fetched_at,omitzero"`
}

func sourceRowsOf(sources []market.Freshness) []sourceRow {
	rows := make([]sourceRow, len(sources))
	for i, f := range sources {
		rows[i] = sourceRow{
			Source:   f.Source,
			Stale:    f.Stale,
			Failure:  f.Failure,
			FailedAt: f.FailedAt,
			Through:  f.Through,
			Fetched:  f.FetchedAt,
		}
	}

	return rows
}

// readPriceDay reads the day, source and organisation of a request for prices.
func readPriceDay(r *request) (market.DayQuery, error) {
	q := r.URL.Query()
	query := market.DayQuery{Source: q.Get("source")}
	if err := r.onlyFilters("org", "day", "source"); err != nil {
		return query, err
	}

	if text := q.Get("day"); text != "" {
		day, err := flex.ParseDay(text)
		if err != nil {
			return query, flex.Fail(
				flex.Invalid,
				"a day is written YYYY-MM-DD",
			)
		}

		query.Day = day
	}

	err := readFilter(&query.Org, q.Get("org"), "organisation")

	return query, err
}

func (s *Server) prices(r *request) (view, error) {
	query, err := readPriceDay(r)
	if err != nil {
		return view{}, err
	}

	p := &pricesPage{
		Source: query.Source,
		Export: r.exports(),
	}

	p.DayView, err = s.Market.DayView(r.Context(), query)
	if err != nil {
		return view{}, err
	}

	p.bounds()
	p.Before, p.After = r.with("day", p.Day.Add(-1).String()), r.with("day", p.Day.Add(1).String())
	p.Numbers = p.Export.JSON
	v := view{
		page:  "prices",
		title: "Prices",
		data:  p,
		table: p.table(),
	}

	v.record = p.json()
	if r.URL.Path == Root+"/prices.json" {
		v.json = v.record
	}

	return v, nil
}

func (p *pricesPage) table() *table {
	t := &table{
		Name: "prices-" + p.Day.String(),
		Columns: []string{
			"start",
			"price_gbp_per_mwh",
			"source",
			"derived",
			"carbon_g_per_kwh",
			"forecast_gbp_per_mwh",
			"outturn_gbp_per_mwh",
		},
	}

	for _, l := range p.Lines {
		var carbon any
		if l.Carbon != nil {
			carbon = *l.Carbon
		}

		t.add(
			l.Start,
			orNull(l.Price),
			l.Source,
			l.Derived,
			carbon,
			orNull(l.Before),
			orNull(l.After),
		)
	}

	return t
}

// bounds finds the cheapest and the dearest half-hour.
func (p *pricesPage) bounds() {
	known := slices.DeleteFunc(slices.Clone(p.Lines), func(l market.PriceLine) bool {
		return l.Price == nil
	})
	if len(known) > 0 {
		byPrice := func(a, b market.PriceLine) int {
			return int(min(1, max(-1, a.Exact-b.Exact)))
		}
		p.Low, p.High = new(slices.MinFunc(known, byPrice)), new(slices.MaxFunc(known, byPrice))
	}
}
