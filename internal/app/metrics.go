package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/control"
	"flexd/internal/store"
)

// collectWithin bounds how long a scrape waits for the store.
const collectWithin = 5 * time.Second

// jobMetrics tells a scraper how the work queue stands.
type jobMetrics struct{ db *store.DB }

var jobsNow = prometheus.NewDesc(
	"flexd_jobs",
	"Jobs in the work queue.",
	[]string{"kind", "state"},
	nil,
)

// Describe names the metric.
func (m jobMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- jobsNow }

// Collect reads the metric.
func (m jobMetrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()

	err := m.db.ReadAll(ctx, func(all *store.All) error {
		states, err := all.JobStates(ctx)
		for _, s := range states {
			for state, n := range map[string]int{
				"due":      s.Due,
				"later":    s.Later,
				"retrying": s.Retrying,
				"failed":   s.Failed,
			} {
				ch <- prometheus.MustNewConstMetric(
					jobsNow,
					prometheus.GaugeValue,
					float64(n),
					string(s.Kind),
					state,
				)
			}
		}

		return err
	})

	if err != nil {
		ch <- prometheus.NewInvalidMetric(jobsNow, err)
	}
}

// planMetrics tells a scraper how often the check before sending refused a plan.
type planMetrics struct{ control *control.Service }

var plansRefused = prometheus.NewDesc(
	"flexd_site_plans_refused_total",
	"Plans of sites and batteries that the check before sending refused, since the process began.",
	nil,
	nil,
)

// Describe names the metric.
func (m planMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- plansRefused }

// Collect reads the metric.
func (m planMetrics) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(
		plansRefused,
		prometheus.CounterValue,
		float64(m.control.Refused()),
	)
}

// clockMetric tells a scraper how far this process's clock is off the database's.
func clockMetric(db *store.DB) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "flexd_clock_ahead_seconds",
		Help: "How far this machine's clock is ahead of the database's. Beyond one second the database's is gone by.",
	}, func() float64 { return db.ClockOff().Seconds() })
}
