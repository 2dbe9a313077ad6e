package operations

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/flex"
)

// collectWithin bounds how long a scrape waits for the store.
const collectWithin = 5 * time.Second

// Metrics shows a scraper what the console shows.
type Metrics struct{ Service *Service }

var (
	exceptionsGauge = prometheus.NewDesc(
		"flexd_exceptions",
		"What needs looking at, by kind: assets, pushes, readings, withdrawals, endpoints, jobs or sources.",
		[]string{"kind"},
		nil,
	)
	missingGauge = prometheus.NewDesc(
		"flexd_short_watt_hours",
		"Energy that will be missing by ready-by, by kind of shortfall.",
		[]string{"kind"},
		nil,
	)
	pluggedGauge = prometheus.NewDesc(
		"flexd_plugged_in",
		"Assets that are plugged in.",
		nil,
		nil,
	)
	drawingGauge = prometheus.NewDesc(
		"flexd_drawing_watts",
		"Power that is drawn by plan at this moment.",
		nil,
		nil,
	)
)

// Describe names the metrics.
func (m Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- exceptionsGauge
	ch <- missingGauge
	ch <- pluggedGauge
	ch <- drawingGauge
}

// Collect reads the metrics. Every kind is there, 0 where nothing is wrong, so that a rule
// never waits for a series that is not there. Where the list is not whole, as the database cannot be read, only what
// is known to be wrong is there: a 0 would say that the rest is well.
func (m Metrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()

	found, whole, err := m.Service.exceptions(ctx, flex.OrgID{})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(exceptionsGauge, err)
		return
	}

	counts := map[Kind]int{}
	missing := map[Kind]flex.WattHours{}
	for _, e := range found {
		counts[e.Kind] += e.Count
		missing[e.Kind] += e.Energy
	}

	for _, k := range Kinds {
		unknown := !whole && counts[k] == 0
		if unknown {
			continue
		}

		ch <- prometheus.MustNewConstMetric(
			exceptionsGauge,
			prometheus.GaugeValue,
			float64(counts[k]),
			string(k),
		)
	}

	if !whole {
		return
	}

	for _, s := range shortages {
		ch <- prometheus.MustNewConstMetric(
			missingGauge,
			prometheus.GaugeValue,
			float64(missing[s.kind]),
			string(s.kind),
		)
	}

	m.collectFleet(ctx, ch)
}

// collectFleet reads what the fleet does now.
func (m Metrics) collectFleet(ctx context.Context, ch chan<- prometheus.Metric) {
	fleet, err := m.Service.Look(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(pluggedGauge, err)
		return
	}

	sum := fleet.Outlook(flex.OrgID{})
	ch <- prometheus.MustNewConstMetric(
		pluggedGauge,
		prometheus.GaugeValue,
		float64(sum.plugged),
	)
	ch <- prometheus.MustNewConstMetric(
		drawingGauge,
		prometheus.GaugeValue,
		float64(sum.drawing),
	)
}
