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
	unreadGauge = prometheus.NewDesc(
		"flexd_exceptions_unread",
		"Kinds of exceptions that could not be looked for. Their series are absent, or count a part.",
		nil,
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
	ch <- unreadGauge
	ch <- missingGauge
	ch <- pluggedGauge
	ch <- drawingGauge
}

// Collect reads the metrics. Every kind is there, 0 where nothing is wrong, so that a rule
// never waits for a series that is not there. A kind that could not be looked for is there only where some of it is known to be
// wrong: a 0 would say that it is well.
func (m Metrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()

	found, unread, err := m.Service.Exceptions(ctx, flex.OrgID{})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(exceptionsGauge, err)
		return
	}

	ch <- prometheus.MustNewConstMetric(
		unreadGauge,
		prometheus.GaugeValue,
		float64(len(unread)),
	)

	counts := map[Kind]int{}
	missing := map[Kind]flex.WattHours{}
	for _, e := range found {
		counts[e.Kind] += e.Count
		missing[e.Kind] += e.Energy
	}

	unknown := map[Kind]bool{}
	for _, u := range unread {
		unknown[u.Kind] = counts[u.Kind] == 0
	}

	for _, k := range Kinds {
		if unknown[k] {
			continue
		}

		ch <- prometheus.MustNewConstMetric(
			exceptionsGauge,
			prometheus.GaugeValue,
			float64(counts[k]),
			string(k),
		)
	}

	for _, s := range shortages {
		if unknown[s.kind] {
			continue
		}

		ch <- prometheus.MustNewConstMetric(
			missingGauge,
			prometheus.GaugeValue,
			float64(missing[s.kind]),
			string(s.kind),
		)
	}

	m.collectFleet(ctx, ch)
}

// collectFleet reads what the fleet does now. A fleet that cannot be read is left out: kinds of exceptions are unread then.
func (m Metrics) collectFleet(ctx context.Context, ch chan<- prometheus.Metric) {
	fleet, err := m.Service.Look(ctx)
	if err != nil {
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
