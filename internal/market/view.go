package market

import (
	"context"
	"math"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// versionsMax is how many publications of a day a view lists at most, the newest of them.
const versionsMax = 12

// DayQuery asks for a day's prices.
type DayQuery struct {
	// the organisation whose clock and choice of sources count; the first one if zero
	Org    flex.OrgID
	Day    flex.Day // today if zero
	Source string   // if empty, the sources that the organisation plans on
}

// DayView is a day's prices as an organisation knows them, by publication.
type DayView struct {
	Orgs     []flex.Org
	Org      flex.OrgID // zero if there is none
	Day      flex.Day
	Sources  []Freshness
	Roles    []RoleState
	Doubts   []string // where it is left open which source counts
	Lines    []PriceLine
	Versions []Version // the newest of those that touch the day
	Outturn  *Outturn  // nil where no half-hour has both
	Missing  int

	NumVersions int // of all that touch the day
}

// PriceLine is a half-hour's price as an organisation knows it.
type PriceLine struct {
	Start  time.Time `json:"start"`
	Price  *float64  `json:"price_gbp_per_mwh"` // nil if it is not known
	Source string    `json:"source,omitempty"`
	// taken from the price of a longer time
	Derived bool `json:"derived"`
	// the first price known before the half-hour; nil if there was none
	Before *float64 `json:"forecast_gbp_per_mwh"`
	// the last price published after it; nil if there is none yet
	After  *float64   `json:"outturn_gbp_per_mwh"`
	Carbon *int       `json:"carbon_g_per_kwh"`
	Exact  flex.Price `json:"-"` // as Price
}

// Version is a publication with its prices of a day.
type Version struct {
	ID          flex.PublicationID `json:"publication_id"`
	Source      string             `json:"source"`
	PublishedAt time.Time          `json:"published_at"`
	FetchedAt   time.Time          `json:"fetched_at"`
	Span        flex.Span          `json:"-"` // of its prices
	Preliminary bool               `json:"preliminary"`
	// half-hours of its span without a price
	Missing int `json:"missing"`
	// by half-hour of the day, null where it has no price
	Prices []*float64 `json:"prices_gbp_per_mwh"`
}

// Outturn compares the prices known before a day's half-hours with those published after them.
// Differences are outturn less forecast, in £/MWh.
type Outturn struct {
	Count         int     // half-hours that have both prices
	Mean          float64 // mean of the absolute differences
	Bias          float64 // mean of the differences
	Worst         float64 // the largest difference by size, with its sign
	WorstAt       time.Time
	Forecast, Now string // the sources of forecast and outturn
}

// DayView returns the day as an organisation knows it. Without any organisation it has the
// sources only.
func (s *Service) DayView(
	ctx context.Context,
	q DayQuery,
) (DayView, error) {
	var v DayView
	v.Day = q.Day

	var err error
	v.Sources, err = s.Freshness(ctx)
	if err != nil {
		return v, err
	}

	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, tx, err := all.Choose(ctx, q.Org)
		v = DayView{
			Orgs:    orgs,
			Day:     q.Day,
			Sources: v.Sources,
		}

		if tx == nil || err != nil {
			return err
		}

		v.Org = tx.Org()
		s.judgeAt(v.Sources, tx.Now())
		v.Roles, v.Doubts, err = rolesOf(ctx, tx)
		if err != nil {
			return err
		}

		c, err := curveOf(ctx, tx, q.Day, q.Source)
		if err != nil {
			return err
		}

		v.Day = c.Day
		v.addLines(c)
		return v.addVersions(ctx, tx, q.Source, c.Publications)
	})

	return v, err
}

// judgeAt sets what is missing of the sources' prices by an organisation's clock, which may be
// ahead of the true one in a sandbox.
func (s *Service) judgeAt(sources []Freshness, now time.Time) {
	for i, f := range sources {
		state := store.SourceState{Source: f.Source, Through: f.Through}
		sources[i].Stale = s.stale(state, now)
	}
}

// addVersions reads the prices of the day's publications. Forecast and outturn are found among
// all of them, but only the newest are listed: with a source that publishes every half-hour
// the first ones are not.
func (v *DayView) addVersions(
	ctx context.Context,
	tx *store.Tx,
	source string,
	published []Version,
) error {
	quotes, err := tx.Published(ctx, v.Day.Span(), source)
	if err != nil {
		return err
	}

	at := make(map[flex.PublicationID]int, len(published))
	for i := range published {
		at[published[i].ID] = i
		published[i].Prices = make([]*float64, v.Day.Periods())
	}

	first := flex.PeriodAt(v.Day.Start())
	for _, q := range quotes {
		if i, known := at[q.From]; known {
			published[i].Prices[q.Period.Sub(first)] = poundsOf(q.PricedPeriod)
		}
	}

	v.compare(published)
	v.NumVersions = len(published)
	v.Versions = published[:min(len(published), versionsMax)]

	return nil
}

// versionOf returns a publication without its prices.
func versionOf(p *store.PublicationRecord) Version {
	return Version{
		ID:          p.ID,
		Source:      p.Source,
		PublishedAt: p.PublishedAt,
		FetchedAt:   p.FetchedAt,
		Span:        p.Span,
		Preliminary: p.Preliminary,
		Missing:     p.Missing,
	}
}

func poundsOf(p flex.PricedPeriod) *float64 {
	if !p.Known {
		return nil
	}
	return new(TwoDecimals(p.Price))
}

func (v *DayView) addLines(c DayCurve) {
	for _, q := range c.Quotes {
		l := PriceLine{
			Start:   q.Period.Start(),
			Price:   poundsOf(q.PricedPeriod),
			Source:  q.Source,
			Derived: q.Derived,
			Exact:   q.Price,
		}

		if g, ok := c.Carbon[q.Period]; ok {
			l.Carbon = &g.Grams
		}

		if !q.Known {
			v.Missing++
		}

		v.Lines = append(v.Lines, l)
	}
}

// compare sets the forecast and the outturn of each half-hour, and sums up their differences. The
// publications are sorted with the newest first.
func (v *DayView) compare(published []Version) {
	o := Outturn{}
	for i := range v.Lines {
		l := &v.Lines[i]
		setOutturn(published, l, i, &o)

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
		v.Outturn = &o
	}
}

// setOutturn sets the forecast and the outturn of the i-th half-hour, and their sources.
func setOutturn(published []Version, l *PriceLine, i int, o *Outturn) {
	for _, version := range published {
		if i >= len(version.Prices) || version.Prices[i] == nil {
			continue
		}

		if !version.PublishedAt.Before(l.Start.Add(flex.HalfHour)) {
			if l.After == nil {
				l.After, o.Now = version.Prices[i], version.Source
			}
		} else if !version.PublishedAt.After(l.Start) {
			l.Before, o.Forecast = version.Prices[i], version.Source
		}
	}
}
