package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"

	"github.com/go-chi/chi/v5"

	"flexd/internal/access"
	"flexd/internal/adr"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/market"
	"flexd/internal/operations"
	"flexd/internal/product"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/selection"
	"flexd/internal/web"
)

// Server answers the interface. Set its fields before Handler is called.
type Server struct {
	Access   *access.Service
	Registry *registry.Service
	Control  *control.Service
	Push     *delivery.Service
	Reading  *reading.Service
	Reward   *reward.Service

	Operations *operations.Service
	Selection  *selection.Service
	Products   *product.Service
	Grid       *grid.Service
	ADR        *adr.Service

	Clock Clock

	Directory *directory.Directory
	Market    *market.Service

	Environment flex.Environment
	Log         *slog.Logger // nil means the default logger

	// PublicURL is where clients reach flexd, without a final slash; empty means where each
	// request came to.
	PublicURL string
	// Done ends the streams when the server is to stop; nil for never.
	Done <-chan struct{}
	// Ready, if set, is asked by /readyz beside the database.
	Ready func(context.Context) error
	// TrustedProxies are the addresses whose X-Forwarded-For field is used.
	TrustedProxies web.Proxies
	// MetricsFrom is who may read /metrics; nil means the loopback alone.
	MetricsFrom []netip.Prefix
	// RequestsPerSecond bounds what one organisation may ask, DefaultRate if 0.
	RequestsPerSecond int

	metrics   *metrics
	limits    limiter
	spools    spools
	documents documents
	once      sync.Once
	routes    []Route
	router    chi.Router
}

// Handler returns the whole surface.
func (s *Server) Handler() http.Handler {
	s.once.Do(s.build)
	return s.router
}

// Patterns are the methods and paths that it answers.
func (s *Server) Patterns() ([]string, error) {
	s.once.Do(s.build)
	return web.PatternsOf(s.router)
}

// Refuse answers every request with a failure, in the interface's form.
func (s *Server) Refuse(failed error) http.Handler {
	s.once.Do(s.build)
	return s.handle(Route{
		Role:   Public,
		handle: func(*Server, *request) (answer, error) { return answer{}, failed },
	})
}

func (s *Server) build() {
	if s.Log == nil {
		s.Log = slog.Default()
	}

	s.metrics = newMetrics()
	if s.Push != nil {
		s.metrics.registry.MustRegister(s.Push.Collectors()...)
	}

	s.limits.rate = s.RequestsPerSecond
	s.router = chi.NewRouter()
	s.routes = Routes()
	for _, rt := range s.routes {
		h := s.handle(rt)
		s.router.Method(rt.Method, rt.Pattern, h)
		if rt.Method == http.MethodGet {
			s.router.Method(http.MethodHead, rt.Pattern, h)
		}
	}

	s.router.NotFound(s.handle(Route{
		Role:   Public,
		handle: (*Server).notFound,
	}).ServeHTTP)

	s.router.MethodNotAllowed(s.handle(Route{
		Role:   Public,
		handle: (*Server).methodNotAllowed,
	}).ServeHTTP)
}
