package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
)

// TestPlainPaths: a path in which characters are percent-encoded without need is found; a slash that is encoded is still no separator, and
// nothing is decoded twice.
func TestPlainPaths(t *testing.T) {
	router := chi.NewRouter()
	router.Get("/assets", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("all")) })
	router.Get("/assets/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(chi.URLParam(r, "id") + " " + r.URL.Path))
	})

	for _, c := range []struct {
		path   string
		status int
		body   string
	}{
		{"/assets", 200, "all"},
		{"/%61ssets", 200, "all"},
		{"/%61%73%73%65%74%73/%7e1%2D%5f", 200, "~1-_ /assets/~1-_"},
		{"/assets%2F1", 404, ""},
		{"/%61ssets/a%2Fb%2e", 200, "a%2Fb. /assets/a/b."},
		{"/assets/%2561", 200, "%61 /assets/%61"},
	} {
		w := httptest.NewRecorder()
		plainPaths(router).ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		if w.Code != c.status || c.status == 200 && w.Body.String() != c.body {
			t.Errorf("%s: %d %q, want %d %q", c.path, w.Code, w.Body, c.status, c.body)
		}
	}
}
