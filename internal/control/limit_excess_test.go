package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestLimits_Excess has a car charge now with 7.4 kW under a limit of 4 kW that an OpenADR event asked for: the order says so, until nothing
// exceeds the limit. A plan that changes nothing of it writes nothing.
func TestLimits_Excess(t *testing.T) {
	each(t, "2026-01-10T22:00:00Z", func(h *fixture) {
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{
			Name:  "feeder",
			Sites: []flex.SiteID{h.site},
		}}})
		h.publish("2026-01-10T22:00:00Z", night()[:18]...)
		h.replan()
		h.event(control.Event{
			Kind:   control.PlugIn,
			Tariff: nightTariff("Europe/London"),
			Intent: need(7.4, flex.Minimise),
		})
		h.limitTo(flex.CapLimit{
			Group: "feeder",
			Span: flex.Span{
				From: at("2026-01-11T00:15:00Z"),
				To:   at("2026-01-11T01:15:00Z"),
			},
			Power: 4000,
		})
		h.Exec(`INSERT INTO adr_order (id, org_id, program_id, event_id, interval_id, from_at, to_at, change_w, limit_w, state, problem, made_at)
			SELECT id, org_id, id, id, 0, from_at, to_at, 0, limit_w, 'limited', '', made_at FROM cap_limit`)
		h.Exec(`UPDATE cap_limit SET order_id = id`)

		says := func(step, problem, reported string) {
			h.Helper()
			h.wait(31 * time.Minute) // the fleet is planned in each half-hour
			h.planned()
			if n := h.Count(`SELECT count(*) FROM adr_order WHERE problem = $1 AND report_at IS `+reported, problem); n != 1 {
				h.Errorf("%s: the order does not say %q", step, problem)
			}
		}

		says("planned", "", "NULL")
		h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-11T01:30:00Z")})
		exceeded := "the limit of 4 kW is exceeded: by plan up to 7.4 kW are drawn between 2026-01-11T00:15:00Z and 2026-01-11T01:15:00Z"
		says("charge-now", exceeded, "NOT NULL")
		h.Exec(`UPDATE adr_order SET report_at = NULL`)
		says("planned again", exceeded, "NULL") // nothing is written

		h.event(control.Event{Kind: control.ChargeNowDeleted})
		says("deleted", "", "NOT NULL")
	})
}

// TestLimits_ExcessImported has a limit be imported again, and then another, while a car that charges now exceeds it: that it was exceeded
// until then stays, and is one group's.
func TestLimits_ExcessImported(t *testing.T) {
	each(t, "2026-01-10T22:00:00Z", func(h *fixture) {
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{
			Name:  "feeder",
			Sites: []flex.SiteID{h.site},
		}}})
		h.publish("2026-01-10T22:00:00Z", night()[:18]...)
		h.replan()
		h.event(control.Event{
			Kind:   control.PlugIn,
			Tariff: nightTariff("Europe/London"),
			Intent: need(7.4, flex.Minimise),
		})

		limit := flex.CapLimit{
			Group: "feeder",
			Span: flex.Span{
				From: at("2026-01-11T00:15:00Z"),
				To:   at("2026-01-11T01:15:00Z"),
			},
			Power: 4000,
		}

		h.limitTo(limit)
		h.wait(31 * time.Minute)
		h.planned()
		h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-11T01:30:00Z")})
		h.wait(31 * time.Minute)
		h.planned()

		exceeded := func(step, to string) {
			h.Helper()

			err := h.service.DB.ReadAll(h.Context(), func(all *store.All) error {
				n, most, err := all.ExceededCapLimits(h.Context(), h.Org)

				want := flex.Span{From: limit.From, To: at(to)}
				same := most.Over.From.Equal(want.From) && most.Over.To.Equal(want.To)
				if n != 1 || !same {
					h.Errorf("%s: %d limits, one of them in %v, not %v", step, n, most.Over, want)
				}
				return err
			})
			if err != nil {
				h.Fatal(err)
			}
		}

		exceeded("by plan", "2026-01-11T01:15:00Z")

		h.goTo("2026-01-11T00:30:00Z")
		h.limitTo(limit)
		h.planned()
		exceeded("the same again", "2026-01-11T00:30:00Z")

		h.goTo("2026-01-11T00:45:00Z")
		limit.Power = 12_000
		h.limitTo(limit)
		h.planned()
		exceeded("another", "2026-01-11T00:30:00Z")
	})
}
