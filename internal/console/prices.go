package console

import (
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/market"
	"flexd/internal/store"
)

// versionsMax is how many publications of a day are drawn, the newest of them.
const versionsMax = 12

// pricesPage is a day's prices, by publication.
type pricesPage struct {
	Orgs     []flex.Org
	Org      flex.OrgID
	Day      flex.Day
	Source   string
	Sources  []market.Freshness
	Roles    []market.RoleState
	Doubts   []string // where it is left open which source counts
	Lines    []priceLine
	Versions []version
	Outturn  *outturn // nil where no half-hour has both
	Missing  int
	Low      *priceLine
	High     *priceLine
	Before   string // addresses of the days beside
	After    string
	Numbers  string
	Export   Export
}

// priceLine is a half-hour's price as it is known.
type priceLine struct {
	Start   time.Time  `json:"start"`
	Price   *float64   `json:"price_gbp_per_mwh"` // nil if it is not known
	Source  string     `json:"source,omitempty"`
	Derived bool       `json:"derived"`              // from the price of a longer time
	Before  *float64   `json:"forecast_gbp_per_mwh"` // as first known before the half-hour; nil if it was not
	After   *float64   `json:"outturn_gbp_per_mwh"`  // as last published after it; nil if none was yet
	Carbon  *int       `json:"carbon_g_per_kwh"`
	Exact   flex.Price `json:"-"` // as Price
}

// version is a publication with what it says of the day.
type version struct {
	store.PublicationRecord `json:"-"`
	ID                      flex.PublicationID `json:"publication_id"`
	Source                  string             `json:"source"`
	PublishedAt             time.Time          `json:"published_at"`
	Prices                  []*float64         `json:"prices_gbp_per_mwh"` // by half-hour of the day, null where it says none
}

// outturn holds what was known ahead of the day's half-hours against what came of them.
type outturn struct {
	Count         int     // half-hours that have both
	Mean          float64 // of the differences without their sign, in £/MWh
	Bias          float64 // of the differences, outturn less forecast
	Worst         float64
	WorstAt       time.Time
	Forecast, Now string // the sources
}

// compare finds in each half-hour what was first said before it and last said after it.
// Versions are the newest first.
func (p *pricesPage) compare() {
	o := outturn{}
	for i := range p.Lines {
		l := &p.Lines[i]
		for _, v := range p.Versions {
			if i >= len(v.Prices) || v.Prices[i] == nil {
				continue
			}

			switch {
			case !v.PublishedAt.Before(l.Start.Add(flex.HalfHour)):
				if l.After == nil {
					l.After, o.Now = v.Prices[i], v.Source
				}
			case !v.PublishedAt.After(l.Start):
				l.Before, o.Forecast = v.Prices[i], v.Source
			}
		}

		if l.Before == nil || l.After == nil {
			continue
		}

		off := *l.After - *l.Before
		o.Count++
		o.Mean, o.Bias = o.Mean+math.Abs(off), o.Bias+off
		if o.Count == 1 || math.Abs(off) > math.Abs(o.Worst) {
			o.Worst, o.WorstAt = off, l.Start
		}
	}

	if o.Count > 0 {
		o.Mean, o.Bias = o.Mean/float64(o.Count), o.Bias/float64(o.Count)
		p.Outturn = &o
	}
}

func (s *Server) prices(r *request) (view, error) {
	p := &pricesPage{Source: r.URL.Query().Get("source"), Export: r.exports()}

	q := r.URL.Query()
	if text := q.Get("day"); text != "" {
		var err error
		p.Day, err = flex.ParseDay(text)
		if err != nil {
			return view{}, flex.Fail(flex.Malformed, "a day is written YYYY-MM-DD")
		}
	}

	if err := readFilter(&p.Org, q.Get("org"), "organisation"); err != nil {
		return view{}, err
	}
	if err := s.fillPrices(r, p); err != nil {
		return view{}, err
	}

	p.Before, p.After = r.with("day", p.Day.Add(-1).String()), r.with("day", p.Day.Add(1).String())
	p.Numbers = p.Export.JSON
	t := &table{Name: "prices-" + p.Day.String(), Columns: []string{"start", "price_gbp_per_mwh", "source", "derived", "carbon_g_per_kwh", "forecast_gbp_per_mwh", "outturn_gbp_per_mwh"}}

	for _, l := range p.Lines {
		var price, carbon, before, after any
		if l.Before != nil {
			before = *l.Before
		}

		if l.After != nil {
			after = *l.After
		}

		if l.Price != nil {
			price = *l.Price
		}

		if l.Carbon != nil {
			carbon = *l.Carbon
		}

		t.add(l.Start, price, l.Source, l.Derived, carbon, before, after)
	}

	v := view{page: "prices", title: "Prices", data: p, table: t}
	if r.URL.Path == Root+"/prices.json" {
		v.json = map[string]any{"day": p.Day.String(), "curve": p.Lines, "publications": p.Versions}
	}

	return v, nil
}

// fillPrices reads the day as an organisation knows it; without any, as all will.
func (s *Server) fillPrices(r *request, p *pricesPage) error {
	ctx := r.Context()
	err := s.DB.ReadAll(ctx, func(all *store.All) (err error) {
		p.Orgs, err = all.Orgs(ctx)
		return err
	})
	if err != nil {
		return err
	}

	p.Sources, err = s.Market.Freshness(ctx)
	if err != nil || len(p.Orgs) == 0 {
		return err
	}

	if p.Org.IsZero() {
		p.Org = p.Orgs[0].ID
	}

	p.Roles, p.Doubts, err = s.Market.Roles(ctx, p.Org)
	if err != nil {
		return err
	}

	c, err := s.Market.Day(ctx, p.Org, p.Day, p.Source)
	if err != nil {
		return err
	}

	p.Day = c.Day
	p.addLines(c)

	if len(c.Publications) > versionsMax {
		c.Publications = c.Publications[:versionsMax]
	}

	return s.DB.ReadAll(ctx, func(all *store.All) error {
		for _, record := range c.Publications {
			prices, err := all.PricesOf(ctx, record.ID, p.Day.Span())
			if err != nil {
				return err
			}

			v := version{PublicationRecord: record, ID: record.ID, Source: record.Source, PublishedAt: record.PublishedAt}
			for _, q := range prices {
				v.Prices = append(v.Prices, poundsOf(q))
			}

			p.Versions = append(p.Versions, v)
		}

		p.compare()
		return nil
	})
}

func poundsOf(p flex.PricedPeriod) *float64 {
	if !p.Known {
		return nil
	}
	return new(market.TwoDecimals(p.Price))
}

func (p *pricesPage) addLines(c market.DayCurve) {
	for _, q := range c.Quotes {
		l := priceLine{Start: q.Period.Start(), Price: poundsOf(q.PricedPeriod), Source: q.Source, Derived: q.Derived, Exact: q.Price}
		if g, ok := c.Carbon[q.Period]; ok {
			l.Carbon = &g.Grams
		}

		if !q.Known {
			p.Missing++
		}

		p.Lines = append(p.Lines, l)
	}

	known := slices.DeleteFunc(slices.Clone(p.Lines), func(l priceLine) bool { return l.Price == nil })
	if len(known) > 0 {
		byPrice := func(a, b priceLine) int { return int(min(1, max(-1, a.Exact-b.Exact))) }
		p.Low, p.High = new(slices.MinFunc(known, byPrice)), new(slices.MaxFunc(known, byPrice))
	}
}
