package reward_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Two devices of a home are steered against each other in one half-hour: the charger to draw
// less, the other to draw more. What is credited is what the home moved in sum, to the one
// that was to move it that way.
func TestPlayed_AgainstEachOther(t *testing.T) {
	cases := []struct {
		name        string
		other       flex.AssetType
		power       flex.Watts // that the other is sent; more is drawing
		used        float64    // by the home, of 4 kWh, at 1 p for 100 Wh
		first, then int        // watt-hours credited to the charger and to the other
	}{
		{"a car that draws as much as the charger leaves", flex.ElectricVehicle, 7400, 4, 0, 0},
		{"a car that draws more than the charger leaves", flex.ElectricVehicle, 7400, 5.2, 0, 1200},
		{"a battery that draws less", flex.Battery, 3000, 1.8, -2200, 0},
		{"a battery that draws more", flex.Battery, 3000, 5.2, 0, 1200},
		{"a battery that gives beside the charger", flex.Battery, -3000, 1, -2135, -865},
		{"more than both can move", flex.Battery, -3000, -2, -3700, -1731},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		h.set(t, "claw_back=true")

		for i, tt := range cases {
			if storetest.LeftOut(url, i) {
				continue
			}

			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(tt.name)
				h.set(t, "claw_back=true")
				other := h.device(byte(i+2), tt.other, max(tt.power, -tt.power))
				for back := range homeDays {
					h.energy(h.asset, flex.ProvisionalConsumption, back+1, 4)
				}

				h.energy(h.asset, flex.ProvisionalConsumption, 0, tt.used)
				h.flush()
				h.now = h.monday.Period(homeSlot).Start().Add(-time.Hour)
				var d store.Dispatch
				h.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
					d, err = tx.AddDispatch(ctx, store.Dispatch{Market: "wholesale", Span: h.monday.Period(homeSlot).Span(),
						Assets: []store.DispatchedAsset{{ID: other, Power: tt.power, Without: []flex.Watts{0}}}})
					return err
				})
				h.accepted(t, d.ID, time.Second)
				h.pause(h.asset)
				h.now = h.now.Add(time.Minute)
				h.jobs()

				events, _, err := h.service.FlexEvents(t.Context(), h.org, h.site)
				if err != nil || len(events) != 2 {
					t.Fatalf("events %+v, %v", events, err)
				}

				got := map[flex.AssetID]int{}
				for _, e := range events {
					if e.Flex != nil {
						got[e.AssetID] = int(*e.Flex)
					}
				}
				if got[h.asset] != tt.first || got[other] != tt.then {
					t.Errorf("credited %d and %d Wh, want %d and %d", got[h.asset], got[other], tt.first, tt.then)
				}

				if sum, want := h.earned(), fmt.Sprintf("%dp", -(tt.first+tt.then)/100); sum != want {
					t.Errorf("earned %s, want %s", sum, want)
				}
			})
		}

		h.sound(t)
	})
}
