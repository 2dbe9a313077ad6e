package control

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/tariff"
)

// ratings is what a kWh costs and earns in each period, in pence, and the value of one that is
// left at the end.
type ratings struct {
	buy      []float64
	sell     []float64
	residual float64
	market   bool // they are the market's prices
	// the rates of a fixed tariff, and where each is from
	fixed []Input
}

// periodRates returns the prices of the periods: those of the market under a dynamic tariff,
// as far as they are known; else the rates of the off-peak and peak hours, and the peak rate
// throughout if there are no off-peak hours or the tariff has a single rate.
func periodRates(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	s flex.OrgSettings,
	periods []flex.Period,
) (ratings, error) {
	r, known, err := marketRatesOf(ctx, tx, b, periods)
	if known || err != nil {
		return r, err
	}

	return fixedRates(b, s, periods), nil
}

// dynamic reports whether a battery's tariff is the market's price.
func dynamic(b *store.Battery) bool {
	t, _ := tariffOf(&store.PlanningState{
		SiteTariff: b.SiteTariff,
		Inputs:     store.Inputs{Tariff: b.Tariff},
	})

	own := b.Tariff == nil && b.SiteTariff.Type == flex.DynamicTariff

	return own || t.Type == flex.DynamicTariff
}

// marketRatesOf returns the market prices of the periods; false if the tariff is not dynamic,
// or no price is known.
func marketRatesOf(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	periods []flex.Period,
) (ratings, bool, error) {
	const day = 48

	if !dynamic(b) {
		return ratings{}, false, nil
	}

	ps, err := tx.Prices(ctx, flex.Span{
		From: periods[0].Add(-day).Start(),
		To:   periods[len(periods)-1].End(),
	})
	if err != nil {
		return ratings{}, false, fmt.Errorf("read prices: %w", err)
	}

	for len(ps) > 0 && !ps[len(ps)-1].Known {
		ps = ps[:len(ps)-1]
	}

	all := marketRates(ps)
	if len(all) <= day {
		return ratings{}, false, nil
	}

	var r ratings
	r.buy = all[day:min(len(all), day+len(periods))]
	r.sell = r.buy
	r.residual = home.SalvageValue(all)
	r.market = true
	r.exportAt(b.SiteTariff.Rates.Export)

	return r, true, nil
}

// fixedRates returns the off-peak and peak rates of the periods, regardless of the market.
// What a battery does at these rates is what it would do without the market.
func fixedRates(
	b *store.Battery,
	s flex.OrgSettings,
	periods []flex.Period,
) ratings {
	t, _ := tariffOf(&store.PlanningState{
		SiteTariff: b.SiteTariff,
		Inputs:     store.Inputs{Tariff: b.Tariff},
	})

	given := b.SiteTariff.Rates

	var r ratings
	dear := r.rate("import_p_per_kwh", given.Import, s.Rates.Peak, DefaultPeakRate)
	cheap := r.rate("off_peak_p_per_kwh", given.OffPeak, s.Rates.OffPeak, DefaultOffPeakRate)
	export := r.rate("export_p_per_kwh", given.Export, s.Rates.Export, DefaultExportRate)
	r.buy, r.sell = make([]float64, len(periods)), make([]float64, len(periods))
	one := hasOneRate(t)

	for i, p := range periods {
		part := 0.0
		if !one {
			part = cheapPart(t, p)
		}

		r.buy[i], r.sell[i] = part*cheap+(1-part)*dear, export
	}

	// the periods reach to the end of tomorrow
	r.residual = home.SalvageValue(r.buy)

	return r
}

// hasOneRate reports whether a tariff has the same rate at all hours. All of the day is
// off-peak then, as no hour costs more than another, but that does not make the off-peak rate
// apply.
func hasOneRate(t flex.Tariff) bool {
	if t.Type != flex.SingleRate && t.Type != flex.DynamicTariff {
		return false
	}

	w, err := tariff.Parse(t.OffPeak, t.Zone, t.Type)

	return err == nil && w.String() == wholeDay
}

// wholeDay is the notation for the hours of a whole day.
const wholeDay = "00:00-24:00"

// cheapPart returns the fraction of a half-hour that is in the off-peak hours of a tariff.
func cheapPart(t flex.Tariff, p flex.Period) float64 {
	part := 0.0
	offPeak, _ := tariff.OffPeak(t, p.Span())
	for _, span := range offPeak {
		part += span.Len().Seconds() / flex.HalfHour.Seconds()
	}

	return part
}

// marketRates converts market prices to pence per kWh. A missing price between known ones is
// replaced by the mean of all.
func marketRates(ps []flex.PricedPeriod) []float64 {
	sum, known := 0.0, 0.0
	for _, p := range ps {
		if p.Known {
			sum, known = sum+p.Price.GBPPerMWh()/10, known+1
		}
	}

	var rates []float64
	for _, p := range ps {
		rate := sum / max(1, known)
		if p.Known {
			rate = p.Price.GBPPerMWh() / 10
		}
		rates = append(rates, rate)
	}

	return rates
}

// rate returns a rate of a fixed tariff, and records its origin: the site's, or else the
// organisation's, or else the assumed one.
func (r *ratings) rate(
	name string,
	site *float64,
	org flex.Optional[float64],
	assumed float64,
) float64 {
	rate, origin := assumed, fromDefault

	if org.Given {
		rate, origin = org.Value, fromOrganisation
	}

	if site != nil {
		rate, origin = *site, fromSite
	}

	r.fixed = append(r.fixed, Input{
		Name:   name,
		Value:  strconv.FormatFloat(rate, 'f', -1, 64),
		Origin: origin,
	})

	return rate
}

// exportAt sets the export rate, if one was given.
func (r *ratings) exportAt(rate *float64) {
	if rate == nil {
		return
	}

	r.sell = make([]float64, len(r.buy))

	for i := range r.sell {
		r.sell[i] = *rate
	}
}

// forecast ensures that the plan has a forecast of load and solar generation that reaches the
// last period. It is made again at the first plan of each day, and when a client sets a solar
// forecast.
func (s *Service) forecast(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	last flex.Period,
) error {
	said, err := tx.Solar(ctx, b.Asset.SiteID)
	if err != nil {
		return err
	}
	// A forecast that reaches far enough is valid until another solar forecast is set. One
	// that was set at the instant of the plan may be later than it: both instants are the same
	// under a clock that does not run.
	current := next.Forecast != "" && said.GivenAt.Before(b.Plan.PlannedAt)
	day := flex.DayAt(tx.Now())
	first := flex.PeriodAt(day.Start())

	reaches := next.ForecastFrom == first &&
		last.Sub(next.ForecastFrom) < strings.Count(next.Forecast, " ")+1
	if current && reaches {
		return nil
	}

	past, err := readSiteAccount(ctx, tx, b.Asset.SiteID, day)
	if err != nil {
		return fmt.Errorf("read what was metered: %w", err)
	}

	next.Read = past.boundaryReadings
	periods := periodsTo(first, last.End())
	draws, _ := forecast.Load(past.load(), periods, settle.Working)
	generates, _ := expectedSolar(said, past.roofAhead(tx.Now()), periods)
	next.ForecastFrom, next.Forecast = first, formatForecast(draws, generates)

	return nil
}

// formatForecast formats a forecast in the form that guessed parses.
func formatForecast(draws, generated []flex.WattHours) string {
	words := make([]string, len(draws))
	for i := range draws {
		words[i] = fmt.Sprintf("%d/%d", draws[i], generated[i])
	}

	return strings.Join(words, " ")
}

// parseForecast parses the forecast of consecutive periods; without one it is that of an
// average home. It reads the text without splitting it into a list, because a request for a
// battery's schedule parses it once for each step.
func parseForecast(
	p *store.BatteryPlan,
	periods []flex.Period,
) (load, roof []flex.WattHours) {
	load, roof = make([]flex.WattHours, len(periods)), make([]flex.WattHours, len(periods))
	if len(periods) == 0 {
		return load, roof
	}

	for i := range load {
		load[i] = forecast.Unknown
	}

	i := p.ForecastFrom.Sub(periods[0])
	for word := range strings.FieldsSeq(p.Forecast) {
		if i >= len(periods) {
			break
		}

		if i >= 0 {
			a, b, _ := strings.Cut(word, "/")
			draws, _ := strconv.ParseInt(a, 10, 64)
			generated, _ := strconv.ParseInt(b, 10, 64)
			load[i], roof[i] = flex.WattHours(draws), flex.WattHours(generated)
		}

		i++
	}

	return load, roof
}
