package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/control"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// collectWithin bounds how long a scrape waits for the store.
const collectWithin = 5 * time.Second

// workerMetrics are the metrics of this process's background jobs. The label is not called
// job, because Prometheus uses that name for the scraped target.
type workerMetrics struct{ jobs func() []*worker.Worker }

var (
	workerRuns = workerDesc(
		"runs_total",
		"Runs of background jobs, since the process began.",
	)
	workerFailures = workerDesc(
		"failures_total",
		"Runs of background jobs that failed, since the process began.",
	)
	workerSeconds = workerDesc(
		"seconds_total",
		"Time that runs of background jobs took, since the process began.",
	)
	workerSuccess = workerDesc(
		"last_success_timestamp_seconds",
		"When a background job last ended without failing, in Unix time; 0 if it has not since the process began.",
	)
	workerPeriod = workerDesc(
		"period_seconds",
		"The longest time between the starts of two runs of a background job.",
	)
)

func workerDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("flexd_background_job_"+name, help, []string{"name"}, nil)
}

// Describe names the metrics.
func (m workerMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- workerRuns
	ch <- workerFailures
	ch <- workerSeconds
	ch <- workerSuccess
	ch <- workerPeriod
}

// Collect reads the metrics. There is a series for every job from the beginning, so that no
// rule misses one.
func (m workerMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, w := range m.jobs() {
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
			ch <- prometheus.MustNewConstMetric(d, kind, v, w.Name)
		}

		last, success := w.Last(), 0.0
		if !last.SucceededAt.IsZero() {
			success = float64(last.SucceededAt.UnixMicro()) / 1e6
		}

		send(workerRuns, prometheus.CounterValue, float64(last.Runs))
		send(workerFailures, prometheus.CounterValue, float64(last.Failures))
		send(workerSeconds, prometheus.CounterValue, last.TookAll.Seconds())
		send(workerSuccess, prometheus.GaugeValue, success)
		send(workerPeriod, prometheus.GaugeValue, w.Every.Seconds())
	}
}

// jobMetrics are the numbers of queued jobs.
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

// planMetrics is the number of plans that the check before sending refused.
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

// clockMetric is the difference between this process's clock and the database's.
func clockMetric(db *store.DB) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "flexd_clock_ahead_seconds",
		Help: "How far this machine's clock is ahead of the database's. Beyond one second the database's is gone by.",
	}, func() float64 { return db.ClockOff().Seconds() })
}
