package control

import (
	"maps"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// boundarySeries is the energy at the boundary as one asset reported it.
type boundarySeries struct {
	id  flex.AssetID
	net forecast.Series
}

// boundaryOf returns the energy at the boundary. There is one meter, but several assets may
// report it, for example where one was replaced: the series with the most half-hours is used,
// and the others fill its gaps.
func boundaryOf(
	by map[flex.AssetID][]flex.Reading,
	assets []flex.AssetID,
	consent []flex.Span,
) (forecast.Series, store.PlanRead) {
	var accounts []boundarySeries
	for _, id := range assets {
		accounts = append(accounts, boundarySeries{
			id:  id,
			net: seriesOf(settle.ConsentedHalfHours(by[id], consent)),
		})
	}

	slices.SortStableFunc(accounts, func(a, b boundarySeries) int {
		return len(b.net) - len(a.net)
	})

	net := forecast.Series{}
	var read store.PlanRead
	for _, a := range accounts {
		more := missingFrom(net, a.net)
		if len(more) == 0 {
			continue
		}

		maps.Copy(net, more)
		own := store.PlanRead{
			Device: a.id,
			Labels: boundaryLabels(by[a.id]),
			Spans:  spansOf(more),
		}

		if read.Device.IsZero() {
			read = own
		} else {
			read.Others = append(read.Others, own)
		}
	}

	return net, read
}

// missingFrom returns the half-hours of a series that another one does not have.
func missingFrom(has, of forecast.Series) forecast.Series {
	more := forecast.Series{}
	for p, e := range of {
		if _, known := has[p]; !known {
			more[p] = e
		}
	}

	return more
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
