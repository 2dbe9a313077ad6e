package operations_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"flexd/internal/operations"
)

// Exceptions of one kind cannot be looked for: an alert of another kind is sent all the same, once, and does not end. The run fails, and
// no heartbeats are sent.
func TestAlerts_OneKindUnread(t *testing.T) {
	eachWatch(t, func(w *watch) {
		w.addRoutes()
		s := w.services[0]
		s.StalePrices = func(context.Context) ([]operations.StalePrice, error) { return nil, errors.New("planted") }

		look := func() []received {
			w.Helper()
			if _, err := s.WatchAlerts(w.Context()); err == nil || !strings.Contains(err.Error(), "planted") {
				w.Errorf("the job says %v", err)
			}

			_, err := s.SendAlerts(w.Context())
			w.check(err)

			return w.take()
		}

		w.halt()
		w.shapes(look(), "firing", "trigger")

		w.resume()
		w.wait(10 * time.Minute)
		if got := look(); len(got) != 0 {
			w.Errorf("while not all is looked for: %v", got)
		}

		s.StalePrices = nil
		w.wait(10 * time.Minute)
		w.shapes(w.run(), "resolved", "resolve")
	})
}
