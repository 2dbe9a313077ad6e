package control

import (
	"context"
	"maps"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// metered returns what a home drew and its roof gave in the days before one: the boundary
// meter's import, less what batteries took, and with what the roof gave. Of the boundary, only
// what was read in a span of the user's consent is looked at.
func metered(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	before flex.Day,
) (load, roof forecast.Series, err error) {
	load, roof, _, err = meteredBy(ctx, tx, site, before)
	return load, roof, err
}

// meteredBy is metered, and says what of the boundary it looked at.
func meteredBy(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	before flex.Day,
) (load, roof forecast.Series, read store.PlanRead, err error) {
	assets, err := steadyAt(ctx, tx, site)
	if err != nil || len(assets) == 0 {
		return nil, nil, read, err
	}

	q := store.ReadingQuery{
		Assets: assets,
		Labels: append(
			settle.Labels(settle.Boundary),
			flex.BatteryInverterPower,
			flex.SolarPower,
		),
	}

	for k := 1; k <= forecast.Days; k++ {
		q.Days = append(q.Days, before.Add(-k))
	}

	rs, err := tx.Readings(ctx, q)
	if err != nil {
		return nil, nil, read, err
	}

	consent, err := tx.ConsentSpans(ctx, []flex.SiteID{site}, time.Time{})
	if err != nil {
		return nil, nil, read, err
	}

	load, roof, read = accountOf(rs, assets, consent[site])

	return load, roof, read, nil
}

// steadyAt returns the assets of a site of which steady readings came, in the order of the site's.
func steadyAt(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) ([]flex.AssetID, error) {
	steady, err := tx.Steady(ctx, site)
	if err != nil || len(steady) == 0 {
		return nil, err
	}

	assets, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return nil, err
	}

	var ids []flex.AssetID
	for _, a := range assets {
		if steady[a.ID] {
			ids = append(ids, a.ID)
		}
	}

	return ids, nil
}

// accountOf works a home's load and roof out from its assets' readings.
func accountOf(
	rs []flex.Reading,
	assets []flex.AssetID,
	consent []flex.Span,
) (load, roof forecast.Series, read store.PlanRead) {
	by := map[flex.AssetID][]flex.Reading{}
	for _, r := range rs {
		by[r.AssetID] = append(by[r.AssetID], r)
	}

	net, read := boundaryOf(by, assets, consent)
	taken := forecast.Series{}
	roof = forecast.Series{}

	for _, id := range assets {
		addTo(taken, energies(by[id], flex.BatteryInverterPower))
		addTo(roof, energies(by[id], flex.SolarPower))
	}

	return drawnBy(net, taken, roof), roof, read
}

// boundaryOf returns what the meter at the boundary counted. It is one, whichever asset reports
// it: the fullest account.
func boundaryOf(
	by map[flex.AssetID][]flex.Reading,
	assets []flex.AssetID,
	consent []flex.Span,
) (forecast.Series, store.PlanRead) {
	var (
		net  forecast.Series
		read store.PlanRead
	)

	for _, id := range assets {
		s := seriesOf(settle.ConsentedHalfHours(by[id], consent))
		if len(s) > len(net) {
			net = s
			read = store.PlanRead{
				Device: id,
				Labels: boundaryLabels(by[id]),
				Spans:  spansOf(s),
			}
		}
	}

	return net, read
}

// drawnBy is what the home itself drew: the boundary's import less what batteries took, and with
// what the roof gave. Where there are batteries, a half-hour for which they report nothing is left out.
func drawnBy(
	net, taken, roof forecast.Series,
) forecast.Series {
	load := forecast.Series{}
	for p, e := range net {
		if t, known := taken[p]; known || len(taken) == 0 {
			load[p] = max(0, e-t+roof[p])
		}
	}

	return load
}

// boundaryLabels lists the labels of the boundary that are among the readings.
func boundaryLabels(rs []flex.Reading) []flex.Label {
	var labels []flex.Label
	for _, l := range settle.Labels(settle.Boundary) {
		if slices.ContainsFunc(rs, func(r flex.Reading) bool {
			return r.Label == l
		}) {
			labels = append(labels, l)
		}
	}

	return labels
}

// spansOf joins the half-hours of a series.
func spansOf(s forecast.Series) []flex.Span {
	var spans []flex.Span
	for _, p := range slices.SortedFunc(maps.Keys(s), func(a, b flex.Period) int {
		return a.Start().Compare(b.Start())
	}) {
		if n := len(spans); n > 0 && spans[n-1].To.Equal(p.Start()) {
			spans[n-1].To = p.End()
		} else {
			spans = append(spans, p.Span())
		}
	}

	return spans
}

// energies are the half-hours that a device's readings of a power give in full.
func energies(rs []flex.Reading, power flex.Label) forecast.Series {
	var own []flex.Reading
	for _, r := range rs {
		if r.Label == power {
			// powers make energies alike, whatever they are of
			r.Label = flex.BoundaryImportPower
			own = append(own, r)
		}
	}

	return seriesOf(settle.HalfHours(settle.Boundary, own))
}

// seriesOf are the half-hours that are known of some days.
func seriesOf(days []settle.MeteredDay) forecast.Series {
	s := forecast.Series{}
	for _, day := range days {
		for n := 1; n <= day.Day.Periods(); n++ {
			if e, known := day.At(n); known {
				s[day.Day.Period(n)] = e
			}
		}
	}

	return s
}

func addTo(sum, s forecast.Series) {
	for p, e := range s {
		sum[p] += e
	}
}
