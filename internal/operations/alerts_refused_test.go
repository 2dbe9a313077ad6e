package operations_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store"
)

// A relay refuses the e-mail of an alert in a text that is no UTF-8: that is what went wrong with it, and after its tries it is given up.
func TestAlerts_RefusedInAnotherEncoding(t *testing.T) {
	eachWatch(t, func(w *watch) {
		for _, s := range w.services {
			s.Mail = func(context.Context, flex.Personal, string, string) error {
				return errors.New("550 Empf\xe4nger unbekannt\x00")
			}
		}

		r := &store.AlertRoute{Name: "m", Kind: operations.RouteEmail, Target: "night@flexd.example"}
		w.check(w.services[0].AddRoute(w.Context(), r))
		w.check(w.services[0].TestRoute(w.Context(), "m"))
		for range 60 {
			w.run()
			w.wait(5 * time.Minute)
		}

		p, err := w.services[0].AlertList(w.Context(), false)
		w.check(err)
		if m := p.Sent[0]; m.Tries != 12 || !strings.Contains(m.Error, "unbekannt") {
			w.Errorf("%+v", m)
		}
	})
}
