package control_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/registry"
)

// TestEvent_TariffBeside changes a site's tariff while another process plugs in a car there
// and plans it by the old tariff. The car is planned again.
func TestEvent_TariffBeside(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		plugged, changed := make(chan error, 1), make(chan error, 1)
		plug := func() {
			ev := control.Event{Kind: control.PlugIn, Intent: need(3.7, flex.Minimise)}
			plugged <- h.service.Event(context.Background(), h.Org, h.asset, ev)
		}

		change := func() {
			start, end := flex.WallTime(2*time.Hour), flex.WallTime(5*time.Hour)
			tariff := &flex.SiteTariff{Type: flex.DualRate, CheapStart: &start, CheapEnd: &end}
			service := &registry.Service{DB: h.db}
			_, err := service.ChangeSite(
				context.Background(),
				h.Org,
				h.site,
				registry.SiteChange{Tariff: tariff},
			)
			changed <- err
		}

		if h.db.Engine() != "postgres" {
			plug()
			change()
		} else {
			gate := h.ShutGate("outbox")
			defer gate.Open()
			go plug()
			for len(plugged)+gate.Waiting() < 1 {
				runtime.Gosched()
			}

			go change()
			for len(plugged)+len(changed)+gate.Waiting() < 2 {
				runtime.Gosched()
			}
			gate.Open()
		}

		if err := errors.Join(<-plugged, <-changed); err != nil {
			t.Fatal(err)
		}
		if n := h.Count(`SELECT count(*) FROM session WHERE plugged_out_at IS NULL AND due_at IS NOT NULL`); n != 1 {
			t.Errorf("%d sessions are planned again by the new tariff", n)
		}
	})
}
