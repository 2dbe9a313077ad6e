package delivery

import (
	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/store"
)

// metrics are the metrics of the delivery service. Their labels have the endpoint's name and
// not its organisation, so that their number is bounded.
type metrics struct {
	attempts *prometheus.CounterVec
	took     *prometheus.HistogramVec
	delay    *prometheus.HistogramVec
	underway prometheus.Gauge
	resting  prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{}
	m.attempts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flexd_push_attempts_total",
		Help: "Attempts to push that ended, by what came of them.",
	}, []string{"endpoint", "verdict"})

	m.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "flexd_push_attempt_seconds",
		Help:    "Time of an attempt to push, from its leaving to its answer.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15},
	}, []string{"endpoint"})

	m.delay = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "flexd_push_seconds",
		Help:    "Time from a push's being queued to its being taken.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 300, 3600},
	}, []string{"endpoint"})

	m.underway = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "flexd_pushes_under_way",
		Help: "Attempts to push that are under way.",
	})

	m.resting = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "flexd_push_endpoints_resting",
		Help: "Endpoints left alone for a while because they failed over and over.",
	})

	return m
}

// Collectors returns the delivery service's metrics.
func (s *Service) Collectors() []prometheus.Collector {
	s.begin()
	m := s.metrics
	return []prometheus.Collector{
		m.attempts,
		m.took,
		m.delay,
		m.underway,
		m.resting,
	}
}

func (m *metrics) observe(o *store.Outcome) {
	name := string(o.Push.To)
	m.attempts.WithLabelValues(name, string(o.State)).Inc()

	if o.Attempt.At.IsZero() {
		return
	}

	m.took.WithLabelValues(name).Observe(o.Took.Seconds())

	if o.State == store.PushAccepted {
		m.delay.WithLabelValues(name).Observe(max(
			0,
			o.Attempt.At.Sub(o.Push.QueuedAt)+o.Took,
		).Seconds())
	}
}
