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

// TestAlerts_Panics has sending panic: that is what went wrong with the message, and after its tries it is given up.
func TestAlerts_Panics(t *testing.T) {
	eachWatch(t, func(w *watch) {
		w.givesUp(func() error { panic("planted") }, "planted")
	})
}

// A relay refuses the e-mail of an alert in a text that is no UTF-8: that is what went wrong with it, and after its tries it is given up.
func TestAlerts_RefusedInAnotherEncoding(t *testing.T) {
	eachWatch(t, func(w *watch) {
		w.givesUp(func() error { return errors.New("550 Empf\xe4nger unbekannt\x00") }, "unbekannt")
	})
}

// givesUp checks that an alert's e-mail, which fails each time, is given up after its tries, with why.
func (w *watch) givesUp(fails func() error, why string) {
	w.Helper()
	for _, s := range w.services {
		s.Mail = func(context.Context, flex.Personal, string, string) error { return fails() }
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
	if m := p.Sent[0]; m.Tries != 12 || !strings.Contains(m.Error, why) {
		w.Errorf("%+v", m)
	}
}
