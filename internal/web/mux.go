package web

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
)

// Mux is a http.ServeMux that says which patterns it has. The table of who may do what is made of them, so that
// no route is left out of it.
type Mux struct {
	serve    *http.ServeMux
	patterns []string
}

// NewMux returns a Mux without a pattern.
func NewMux() *Mux { return &Mux{serve: http.NewServeMux()} }

// Handle is http.ServeMux.Handle.
func (m *Mux) Handle(pattern string, h http.Handler) {
	m.serve.Handle(pattern, h)
	m.patterns = append(m.patterns, pattern)
}

// HandleFunc is http.ServeMux.HandleFunc.
func (m *Mux) HandleFunc(pattern string, h http.HandlerFunc) { m.Handle(pattern, h) }

// ServeHTTP answers by the pattern that fits the request best.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.serve.ServeHTTP(w, r) }

// Patterns are all that it has, sorted.
func (m *Mux) Patterns() []string { return slices.Sorted(slices.Values(m.patterns)) }

// PatternsOf are a router's methods and paths, sorted. HEAD, which is answered as GET is, is left out.
func PatternsOf(r chi.Routes) ([]string, error) {
	var patterns []string
	err := chi.Walk(r, func(
		method, path string,
		_ http.Handler,
		_ ...func(http.Handler) http.Handler,
	) error {
		if method != http.MethodHead {
			patterns = append(patterns, method+" "+path)
		}
		return nil
	})

	slices.Sort(patterns)

	return patterns, err
}
