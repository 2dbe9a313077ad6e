package web

import (
	"net/http"

	"go.opentelemetry.io/otel/propagation"

	"flexd/internal/trace"
)

// Traced makes each request a span, of the trace that its traceparent field names if it has one.
// A handler that knows its route renames it.
func Traced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := trace.Start(
			trace.Continued(r.Context(), propagation.HeaderCarrier(r.Header)),
			r.Method,
		)
		if ctx == r.Context() {
			next.ServeHTTP(w, r)
			return
		}

		noted := &statusWriter{ResponseWriter: w}
		defer func() {
			span.Int("http.response.status_code", noted.status)
			span.End(nil)
		}()

		next.ServeHTTP(noted, r.WithContext(ctx))
	})
}

// statusWriter notes an answer's status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the first status.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write begins an answer without a status with 200.
func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController, which sets the deadlines.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
