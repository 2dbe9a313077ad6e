package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// TestFuse_DispatchedUnplanned has a car leave what an operator's dispatch has a battery draw that flexd does not plan, whether the car
// or the dispatch comes first, and also beside a battery that is planned.
func TestFuse_DispatchedUnplanned(t *testing.T) {
	for name, unplanned := range map[string]string{
		"excluded":    `UPDATE asset SET excluded_at = 1 WHERE id = $1`,
		"no capacity": `UPDATE asset SET capacity_wh = NULL, model = '' WHERE id = $1`,
		"no power":    `UPDATE asset SET power_w = NULL, model = '' WHERE id = $1`,
	} {
		for _, beside := range []bool{false, true} {
			for _, first := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
						id := h.Asset(h.site, flex.Battery, 3000)
						h.Exec(unplanned, id.Bytes())
						if beside {
							h.homeSite()
						}

						h.setFuse(9)
						h.listen()
						h.runBatteries()

						plugIn := func(now bool) {
							if now {
								h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(40, flex.Minimise)})
								h.accept()
							}
						}

						plugIn(first)
						h.order(3000, "2026-01-15T00:30:00Z", "2026-01-15T05:00:00Z", id)
						plugIn(!first)
						for range 3 {
							h.replan()
							h.acceptOnce()
							h.runBatteries()
						}

						whole := flex.Span{From: at("2026-01-15T00:30:00Z"), To: at("2026-01-15T05:00:00Z")}
						for now := whole.From; now.Before(whole.To); now = now.Add(10 * time.Minute) {
							for _, step := range h.look().Current.Steps {
								if step.Contains(now) && step.Limit > 6000 {
									h.Fatalf("%d W at %v beside 3000 W of the dispatch", step.Limit, now)
								}
							}
						}
					})
				})
			}
		}
	}
}
