package control_test

import (
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// A schedule that cannot be read has its own organisation's planning fail, and no other's: not one before it, nor
// one after it.
func TestReplan_BrokenElsewhere(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)

		type car struct {
			org   flex.OrgID
			asset flex.AssetID
		}
		var cars []car
		for _, name := range []string{"", "second", "third"} {
			if name != "" {
				org, err := h.db.AddOrg(h.Context(), name)
				if err != nil {
					t.Fatal(err)
				}

				h.Seed = h.As(org.ID)
				h.site = h.Site(flex.FullScheduleMethod)
				h.asset = h.Asset(h.site, flex.Charger, 7400)
			}

			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
			cars = append(cars, car{h.Org, h.asset})
		}

		const broken = 1
		h.Exec(`UPDATE schedule SET steps = 'broken' WHERE org_id = $1`, cars[broken].org.Bytes())
		h.publish("2026-01-10T18:00:00Z", night(16)...)
		if _, err := h.service.PlanDue(t.Context()); err == nil {
			t.Error("a schedule that cannot be read goes unsaid")
		}

		for i, c := range cars {
			if i == broken {
				continue
			}

			h.Seed, h.asset = h.As(c.org), c.asset
			h.chargesAt("by the new prices", "11T02:00 11T02:30")
		}
	})
}
