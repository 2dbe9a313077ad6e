package control

import (
	"maps"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// boundaryAccount is what an asset reported of the boundary.
type boundaryAccount struct {
	id  flex.AssetID
	net forecast.Series
}

// boundaryOf returns what the meter at the boundary counted. It is one, whichever asset
// reports it: the fullest account, and in half-hours that this lacks the next fullest, as
// where a meter was replaced.
func boundaryOf(
	by map[flex.AssetID][]flex.Reading,
	assets []flex.AssetID,
	consent []flex.Span,
) (forecast.Series, store.PlanRead) {
	var accounts []boundaryAccount
	for _, id := range assets {
		accounts = append(accounts, boundaryAccount{
			id:  id,
			net: seriesOf(settle.ConsentedHalfHours(by[id], consent)),
		})
	}

	slices.SortStableFunc(accounts, func(a, b boundaryAccount) int {
		return len(b.net) - len(a.net)
	})

	net := forecast.Series{}
	var read store.PlanRead
	for _, a := range accounts {
		more := lacking(net, a.net)
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

// lacking are the half-hours of a series that another one has not.
func lacking(has, of forecast.Series) forecast.Series {
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
