package reward_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// dispatched has the home's battery asked to give 3 kW in two half-hours of the Monday, in
// which the home uses 2.5 kWh in place of 4. The gateway, which reads the boundary, and the
// battery are returned. At 100 £/MWh each is worth 15 p.
func (h *home) dispatched() (gateway, battery flex.AssetID) {
	h.t.Helper()
	copy(gateway[:], h.org[:])
	copy(battery[:], h.org[:])
	gateway[15], battery[15] = gateway[15]^1, battery[15]^2
	for id, typ := range map[flex.AssetID]string{gateway: "charger", battery: "battery"} {
		h.exec(h.t, `INSERT INTO asset (id, org_id, site_id, external_id, type, model, power_w, created_at) VALUES ($1, $2, $3, $4, $5, 'Box', 3000, 0)`,
			id.Bytes(), h.org.Bytes(), h.site.Bytes(), typ, typ)
	}

	for back := range homeDays + 1 {
		for n := range 2 {
			kwh := 4.0
			if back == 0 {
				kwh = 2.5
			}
			h.put = append(h.put, flex.Reading{AssetID: gateway, Span: h.monday.Add(-back).Period(homeSlot + n).Span(), Label: flex.ProvisionalConsumption, Value: flex.Micro(kwh * 1e6)})
		}
	}
	h.flush()

	h.now = h.monday.Period(homeSlot).Start().Add(-time.Hour)
	var d store.Dispatch
	h.write(h.t, func(ctx context.Context, tx *store.Tx) (err error) {
		span := flex.Span{From: h.monday.Period(homeSlot).Start(), To: h.monday.Period(homeSlot + 1).End()}
		d, err = tx.AddDispatch(ctx, store.Dispatch{Market: "wholesale", Span: span,
			Assets: []store.DispatchedAsset{{ID: battery, Power: -3000, Without: []flex.Watts{0, 0}}}})
		return err
	})
	h.accepted(h.t, d.ID, time.Second)
	h.now = h.monday.Period(homeSlot + 1).End().Add(2 * time.Minute)

	return gateway, battery
}

// An event during which its asset or its site left is not credited, whatever the asset is,
// whoever reads the meter, and whether or not the organisation asks for consent.
func TestLeaving_InTheMiddle(t *testing.T) {
	late := func(h *home) { h.now = h.monday.Period(homeSlot + 1).Start().Add(10 * time.Minute) }
	drop := func(h *home, id flex.AssetID) {
		h.write(h.t, func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, id) })
	}

	cases := []struct {
		name string
		home func(h *home)
		want string
	}{
		{"it stays", func(h *home) { h.dispatched() }, "market_receivable 30, rewards_payable -30"},
		{"the site, after it", func(h *home) { h.dispatched(); h.leaves() }, "market_receivable 30, rewards_payable -30"},
		{"the battery, after it", func(h *home) { _, b := h.dispatched(); drop(h, b) }, "market_receivable 30, rewards_payable -30"},
		{"the site", func(h *home) { h.dispatched(); late(h); h.leaves() }, ""},
		{"the battery, alone", func(h *home) { _, b := h.dispatched(); late(h); drop(h, b) }, ""},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for _, exempt := range []bool{false, true} {
			for _, tt := range cases {
				name := tt.name
				if exempt {
					name += ", without consent"
				}

				t.Run(name, func(t *testing.T) {
					h.t = t
					h.another(name)
					if exempt {
						h.exec(t, `UPDATE org SET consent_exempt = TRUE WHERE id = $1`, h.org.Bytes())
					}
					tt.home(h)
					if end := h.monday.Period(homeSlot + 1).End().Add(2 * time.Minute); h.now.Before(end) {
						h.now = end
					}

					h.jobs()
					h.now = clock("2025-04-01 00:00")
					h.jobs()
					if got := h.owes(); got != tt.want {
						t.Errorf("in the books %q, want %q", got, tt.want)
					}
				})
			}
		}

		h.sound(t)
	})
}

// A battery that was taken away before its event is found is asked for no more than it could move.
func TestLeaving_Power(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		for _, power := range []int{1000, 20_000} {
			h.another(fmt.Sprint(power, " W"))
			_, battery := h.dispatched()
			h.exec(t, `UPDATE asset SET power_w = $2 WHERE id = $1`, battery.Bytes(), power)
			h.exec(t, `UPDATE dispatch_asset SET power_w = -20000 WHERE asset_id = $1`, battery.Bytes())
			h.leaves()
			h.jobs()

			meant := storetest.At(t, h.db, url).Strings(`SELECT meant FROM flex_event WHERE org_id = $1`, h.org.Bytes())
			if want := fmt.Sprintf("-%d -%d", power/2, power/2); len(meant) != 1 || meant[0] != want {
				t.Errorf("a battery of %d W is meant to move %v Wh, want %s", power, meant, want)
			}
		}
	})
}

// Of a session that began so long ago that its first readings are forgotten, what was credited
// stays, though it ended late enough to be settled anew.
func TestSession_BeganLongAgo(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		h.another("plugged in for ten weeks")
		h.plugged(2)
		h.now = h.monday.Add(70).Start()
		h.put = append(h.put, flex.Reading{AssetID: h.asset, Span: flex.PeriodAt(h.now).Add(-1).Span(), Label: flex.ChargerEnergy, Value: 2_000_000})
		h.flush()
		h.unplugged()
		h.now = h.now.Add(25 * time.Hour)
		h.jobs()

		const earned = "rewards_expense 12, rewards_payable -12"
		if got := h.owes(); got != earned {
			t.Fatalf("at first %s", got)
		}

		h.now = h.monday.Add(70 + 395).Start()
		h.exec(t, `DELETE FROM reading WHERE at < $1`, h.now.Add(-reading.Retention).UnixMicro())
		if _, err := h.service.Repair(t.Context(), h.org, reward.Resettlement{From: h.monday.Add(60), To: h.monday.Add(80)}); err != nil {
			t.Fatal(err)
		}
		if got := h.owes(); got != earned {
			t.Errorf("repaired: %s", got)
		}
		h.sound(t)
	})
}

// What a device moved until it was taken away in mid-event is not credited to another one of
// the home: each has the part of what the home left out that it was to move in the time that
// it was there. 3 kWh at 100 £/MWh are 30 p.
func TestLeaving_BesideAnother(t *testing.T) {
	cases := []struct {
		name    string
		typ     flex.AssetType // of the one that leaves; the other is a charger of 7.4 kW that is paused
		minutes int            // after the event's beginning that it leaves
		want    int            // watt-hours that the charger is credited with
	}{
		{"a battery before it", flex.Battery, -1, 3000},
		{"a battery after a third", flex.Battery, 10, 3000 * 3700 / (3700 + 500)},
		{"a battery after it", flex.Battery, 30, 3000 * 3700 / (3700 + 1500)},
		{"a charger in the middle", flex.Charger, 15, 3000 * 3700 / (3700 + 1850)},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		for i, tt := range cases {
			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(tt.name)
				power := map[flex.AssetType]flex.Watts{flex.Battery: 3000, flex.Charger: 7400}[tt.typ]
				other := h.device(byte(i+2), tt.typ, power)
				h.asked()
				h.energy(h.asset, flex.ProvisionalConsumption, 0, 1)
				h.flush()

				slot := h.monday.Period(homeSlot)
				h.now = slot.Start().Add(-time.Hour)

				var d store.Dispatch
				h.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
					if tt.typ == flex.Charger {
						a, err := tx.Asset(ctx, other)
						if err == nil {
							err = tx.SetPause(ctx, a, slot.Span(), 0)
						}
						return err
					}
					d, err = tx.AddDispatch(ctx, store.Dispatch{Market: "wholesale", Span: slot.Span(),
						Assets: []store.DispatchedAsset{{ID: other, Power: -power, Without: []flex.Watts{0}}}})
					return err
				})

				if tt.typ == flex.Battery {
					h.accepted(t, d.ID, time.Second)
				}
				h.now = slot.Start().Add(time.Duration(tt.minutes) * time.Minute)
				h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, other) })
				h.now = slot.End().Add(2 * time.Minute)
				h.jobs()
				h.now = clock("2025-04-01 00:00")
				h.jobs()

				events, _, err := h.service.FlexEvents(t.Context(), h.org, h.site)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					if e.AssetID == h.asset && (e.Flex == nil || max(int(*e.Flex)+tt.want, -int(*e.Flex)-tt.want) > 1) {
						t.Errorf("credited %d Wh, want -%d", *e.Flex, tt.want)
					}
					if e.AssetID == other && tt.minutes < 30 && e.Flex != nil {
						t.Errorf("the one that left is credited %d Wh", *e.Flex)
					}
				}

				all := tt.want
				if tt.minutes == 30 {
					all = 3000
				}
				if got, want := h.earned(), fmt.Sprintf("%dp", (all+50)/100); got != want {
					t.Errorf("earned %s, want %s", got, want)
				}
				again, err := h.service.Resettle(t.Context(), h.org, reward.Resettlement{From: h.monday, To: h.monday})
				if err != nil || again.Events != 1+tt.minutes/30 && tt.minutes >= 0 {
					t.Errorf("settled again: %+v, %v", again, err)
				}
			})
		}

		h.sound(t)
	})
}
