package api

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"flexd/internal/flex"
	"flexd/internal/web"
)

// metrics counts requests and their times by route.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	streams  *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flexd_requests_total", Help: "Requests answered.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "flexd_request_seconds",
			Help:    "Time from a request's arrival to its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method", "route"}),
		streams: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "flexd_stream_seconds",
			Help:    "How long streams of server-sent events were open. They are not in flexd_request_seconds.",
			Buckets: []float64{1, 10, 60, 300, 600, 900, 1200},
		}, []string{"route"}),
	}

	m.registry.MustRegister(
		m.requests,
		m.seconds,
		m.streams,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)

	return m
}

func (m *metrics) observe(r *request, status int, took time.Duration) {
	m.requests.WithLabelValues(
		methodLabel(r.Method),
		r.route.Pattern,
		strconv.Itoa(status),
	).Inc()

	if r.streamed {
		m.streams.WithLabelValues(r.route.Pattern).Observe(took.Seconds())
		return
	}

	m.seconds.WithLabelValues(
		methodLabel(r.Method),
		r.route.Pattern,
	).Observe(took.Seconds())
}

// methodLabel joins unknown methods into one label, so that a client cannot create any number
// of series.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}

	return "other"
}

// showMetrics answers GET /metrics in Prometheus' text form, for those who may read it. For
// others the path is none.
func (s *Server) showMetrics(r *request) (answer, error) {
	if !s.mayReadMetrics(r.Request) {
		return answer{}, flex.Fail(flex.NotFound, "Not Found")
	}

	families, gathered := s.metrics.registry.Gather()
	form := expfmt.NewFormat(expfmt.TypeTextPlain)
	var b bytes.Buffer
	e := expfmt.NewEncoder(&b, form)

	for _, f := range families {
		if err := e.Encode(f); err != nil {
			return answer{}, fmt.Errorf("write metrics: %w", err)
		}
	}

	if gathered != nil && !databaseFails(b.Bytes()) {
		return answer{}, fmt.Errorf("gather metrics: %w", gathered)
	}

	a := answer{body: text(b.Bytes())}
	a.set("Content-Type", string(form))

	return a, nil
}

// loopback has the addresses that may read the metrics if the operator sets none.
var loopback = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("::1/128"),
}

// mayReadMetrics looks at the connection's other end. A trusted proxy at the loopback passes
// on what strangers ask, so it reads them only if it is named.
func (s *Server) mayReadMetrics(r *http.Request) bool {
	readers, forwarded := s.MetricsFrom, web.SaysForwarded(r)
	if readers == nil {
		readers, forwarded = loopback, s.TrustedProxies.Forwarded(r)
	}

	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || forwarded {
		return false
	}

	return slices.ContainsFunc(readers, func(p netip.Prefix) bool {
		return p.Contains(from.Addr().Unmap())
	})
}

// Collect adds a collector of another package to /metrics.
func (s *Server) Collect(c prometheus.Collector) error {
	s.once.Do(s.build)
	return s.metrics.registry.Register(c)
}

// databaseFails reports whether metrics, in text, say that the database does not do its work.
// What else could be measured is answered then, so that the alert on it is raised.
func databaseFails(text []byte) bool {
	const gauge = `flexd_exceptions{kind="database_failing"} `
	_, value, found := bytes.Cut(text, []byte(gauge))

	return found && !bytes.HasPrefix(value, []byte("0\n"))
}
