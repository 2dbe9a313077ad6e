package console_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"flexd/internal/access"
)

// A stream sends nothing more once its operator is logged out, or is one of other
// organisations.
func TestLive_SessionEnds(t *testing.T) {
	each(t, "2026-01-15T12:00:00Z", func(d *service) {
		for what, end := range map[string]func() error{
			"is of other organisations": func() error { return d.access.SetOperatorOrgs(d.Context(), operator, access.OperatorOrgs{}) },
			"is logged out":             func() error { return d.access.EndOperatorSessions(d.Context(), operator) },
		} {
			d.login()
			ctx, stop := context.WithTimeout(d.Context(), time.Minute)
			r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost:8080/console/fleet/live", nil)
			r.AddCookie(d.cookie)

			w := &parts{ResponseRecorder: httptest.NewRecorder()}
			w.cut = func() { // as the second event is written
				if err := end(); err != nil {
					d.Error(err)
				}
			}
			d.handler.ServeHTTP(w, r)
			stop()

			if len(w.rows) != 2 || w.Code != 200 {
				d.Errorf("an operator %s as the second event is sent: %d, %d events", what, w.Code, len(w.rows))
			}
		}
	})
}

// The headers of a stream are sent at once. Otherwise the next request on the same connection
// would wait for the stream's end.
func TestLive_Head(t *testing.T) {
	each(t, "2026-01-15T12:00:00Z", func(d *service) {
		d.login()
		ctx, stop := context.WithTimeout(d.Context(), 5*time.Second)
		defer stop()

		r := httptest.NewRequestWithContext(ctx, "HEAD", "http://localhost:8080/console/fleet/live", nil)
		r.AddCookie(d.cookie)
		w := httptest.NewRecorder()
		d.handler.ServeHTTP(w, r)

		if ctx.Err() != nil {
			d.Error("the stream ran")
		}
		if kind := w.Header().Get("Content-Type"); w.Code != 200 || kind != "text/event-stream" || w.Body.Len() > 0 {
			d.Errorf("%d, %q: %s", w.Code, kind, w.Body)
		}
	})
}
