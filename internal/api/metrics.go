package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics counts requests and their times by route.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flexd_requests_total", Help: "Requests answered.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "flexd_request_seconds", Help: "Time from a request's arrival to its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method", "route"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) observe(r *request, status int, took time.Duration) {
	m.requests.WithLabelValues(methodLabel(r.Method), r.route.Pattern, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(methodLabel(r.Method), r.route.Pattern).Observe(took.Seconds())
}

// methodLabel keeps a client from making a series of each word that it can think of.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// Metrics returns the handler of /metrics, which belongs on a listener of its own.
func (s *Server) Metrics() http.Handler {
	s.once.Do(s.build)
	return promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
}

// Register adds a collector of another room to /metrics.
func (s *Server) Register(c prometheus.Collector) error {
	s.once.Do(s.build)
	return s.metrics.registry.Register(c)
}
