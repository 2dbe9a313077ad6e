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

// ratings is what a kWh costs and earns in each period, in pence, and what one is worth that
// is left at the end.
type ratings struct {
	buy      []float64
	sell     []float64
	residual float64
	market   bool // they are the market's prices
	// the rates of a fixed tariff, and where each is from
	fixed []Input
}

// periodRates prices the periods: by the market under a dynamic tariff, as far as its prices are
// known; else by the rates of the cheap and the dear hours, and the dear rate throughout
// if no cheap hours were given or the tariff has a single rate.
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

// marketRatesOf prices the periods by the market; false under a tariff that is not dynamic, and where no price is known.
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

// fixedRates prices the periods by the rates of the cheap and the dear hours, whatever the
// market does. What a battery would do at these is what it would do without the market.
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
	one := oneRate(t)

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

// oneRate reports whether a tariff costs the same at all hours. The whole day is off-peak by it, as no hour is dearer than another, but
// that says nothing of a cheap rate.
func oneRate(t flex.Tariff) bool {
	if t.Type != flex.SingleRate && t.Type != flex.DynamicTariff {
		return false
	}

	w, err := tariff.Parse(t.OffPeak, t.Zone, t.Type)

	return err == nil && w.String() == wholeDay
}

// wholeDay is how the hours of a whole day are written.
const wholeDay = "00:00-24:00"

// cheapPart is the part of a half-hour that lies in the cheap hours of a tariff.
func cheapPart(t flex.Tariff, p flex.Period) float64 {
	part := 0.0
	offPeak, _ := tariff.OffPeak(t, p.Span())
	for _, span := range offPeak {
		part += span.Len().Seconds() / flex.HalfHour.Seconds()
	}

	return part
}

// marketRates turns market prices into pence per kWh. A price that is missing between two
// that are known is taken to be their mean over all.
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

// rate is a rate of a fixed tariff: the site's, else the organisation's, else what is assumed. It is noted which.
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

// exportAt has what is exported earn the rate that was given for it, if one was.
func (r *ratings) exportAt(rate *float64) {
	if rate == nil {
		return
	}

	r.sell = make([]float64, len(r.buy))

	for i := range r.sell {
		r.sell[i] = *rate
	}
}

// forecast sees to it that the plan has a guess of load and roof that reaches the last period.
// It is made again each day, at its first plan, and when somebody says what the roof will give.
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
	// A forecast that reaches far enough holds until the roof's is given again. One that was given at the instant of the plan
	// may have come after it: a clock that does not go gives both the same.
	current := next.Forecast != "" && said.GivenAt.Before(b.Plan.PlannedAt)
	day := flex.DayAt(tx.Now())
	first := flex.PeriodAt(day.Start())

	reaches := next.ForecastFrom == first &&
		last.Sub(next.ForecastFrom) < strings.Count(next.Forecast, " ")+1
	if current && reaches {
		return nil
	}

	past, err := readAccount(ctx, tx, b.Asset.SiteID, day)
	if err != nil {
		return fmt.Errorf("read what was metered: %w", err)
	}

	next.Read = past.read
	periods := periodsTo(first, last.End())
	draws, _ := forecast.Load(past.load(), periods, settle.Working)
	generates, _ := solar(said, past.roofAhead(tx.Now()), periods)
	next.ForecastFrom, next.Forecast = first, forecastText(draws, generates)

	return nil
}

// forecastText writes a guess, as guessed reads it.
func forecastText(draws, generated []flex.WattHours) string {
	words := make([]string, len(draws))
	for i := range draws {
		words[i] = fmt.Sprintf("%d/%d", draws[i], generated[i])
	}

	return strings.Join(words, " ")
}

// guessed reads the guess for periods that follow each other; where there is none it is that of a home of
// which nothing is known. It goes through the text without a list of its words: a battery that asks for its
// schedule has it read once for each of its steps.
func guessed(
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
