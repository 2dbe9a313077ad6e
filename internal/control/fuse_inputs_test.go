package control_test

import (
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Two cars of one site of which something changed without an event are planned together: each by what is known of it
// now, and each is sent one schedule.
func TestFuse_InputsTogether(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars := h.fuse(10, 7400)
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
		h.replan()
		cs := chargers{}
		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})
		}

		cs.settle(h, cars)

		before := map[flex.AssetID]int64{}
		for _, car := range cars {
			before[car] = h.at(car).look().Session.Generation
			h.Exec(`UPDATE asset SET power_w = 5000 WHERE id = $1`, car.Bytes())
		}

		h.write(func(tx *store.Tx) error { return tx.MarkDue(h.Context(), cars[1], cars[0]) })
		h.replan()

		for i, car := range cars {
			c := h.at(car).look()
			if c.Current.From.Power != 5000 {
				t.Errorf("car %d is planned with %d W, of 5000", i, c.Current.From.Power)
			}
			if n := c.Session.Generation - before[car]; n != 1 {
				t.Errorf("car %d is sent %d schedules", i, n)
			}
		}

		h.clean()
	})
}
