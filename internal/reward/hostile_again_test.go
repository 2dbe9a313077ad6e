package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A device that is deleted and added again within the half-hour from 22:00, which used 2 kWh
// in it, earns 4 p of it, however often it is sent; 3 kWh of the next half-hour are 6 p more.
// What was not read by then is the next one's.
func TestHostile_DeletedAndAddedAgain(t *testing.T) {
	from := clock("2026-01-14 22:00")
	at := func(minute int) time.Time { return from.Add(time.Duration(minute) * time.Minute) }
	const once, both = "rewards_expense 4, rewards_payable -4", "rewards_expense 8, rewards_payable -8"
	energy := func(h *home) {
		h.given(reading.Input{Label: flex.ChargerEnergy, Span: flex.Span{From: at(0), To: at(30)}, Value: 2})
	}
	register := func(h *home) {
		h.given(reading.Input{Label: flex.ChargerRegister, Span: flex.Span{From: at(0), To: at(0)}, Value: 100},
			reading.Input{Label: flex.ChargerRegister, Span: flex.Span{From: at(30), To: at(30)}, Value: 102})
	}

	cases := []struct {
		name string
		do   func(h *home)
		want string
	}{
		{"read for both", func(h *home) {
			h.pluggedFor(at(-60), at(20))
			h.now = at(26)
			energy(h)

			h.addedAgain()
			h.pluggedFor(at(27), at(29))
			energy(h)
		}, once},
		{"plugged in all the while, by registers", func(h *home) {
			h.plugIn(at(0))
			h.now = at(26)
			register(h)
			h.addedAgain()
			h.pluggedFor(at(26), at(30))

			register(h)
		}, once},
		{"three times, by either label", func(h *home) {
			h.pluggedFor(at(1), at(26))
			energy(h)
			h.addedAgain()
			h.pluggedFor(at(26), at(27))
			register(h)

			h.addedAgain()
			h.pluggedFor(at(28), at(29))
			energy(h)
		}, once},
		{"and stays into the next half-hour", func(h *home) {
			h.pluggedFor(at(0), at(26))
			energy(h)
			h.addedAgain()

			h.pluggedFor(at(27), at(60))
			energy(h)
			h.given(reading.Input{Label: flex.ChargerEnergy, Span: flex.Span{From: at(30), To: at(60)}, Value: 3})
		}, "rewards_expense 10, rewards_payable -10"},
		{"added before it is deleted", func(h *home) {
			h.plugIn(at(0))
			first := h.asset
			h.asset = h.device(202, flex.Charger, 7400)

			h.plugIn(at(24))
			second := h.asset
			h.now = at(26)
			energy(h)
			h.asset = first
			energy(h)
			h.deleted()
			h.asset = second

			h.now = at(29)
			h.unplugged()
		}, once},
		{"not read before it was deleted", func(h *home) {
			h.pluggedFor(at(0), at(10))
			h.addedAgain()
			h.pluggedFor(at(11), at(30))

			energy(h)
		}, once},
		{"not plugged in before it was deleted", func(h *home) {
			h.pluggedFor(at(-60), at(-1))
			h.now = at(26)
			energy(h)
			h.addedAgain()
			h.pluggedFor(at(27), at(29))

			energy(h)
		}, once},
		{"another one that was there before", func(h *home) {
			first := h.asset
			h.asset = h.device(200, flex.ElectricVehicle, 7400)
			h.pluggedFor(at(-90), at(-60))
			second := h.asset
			h.asset = first

			h.pluggedFor(at(0), at(26))
			energy(h)
			h.deleted()
			h.asset = second
			h.pluggedFor(at(27), at(29))
			energy(h)
		}, both},
		{"a car beside its charger, corrected to nothing", func(h *home) {
			h.plugIn(at(0))

			car := h.asset
			h.asset = h.device(201, flex.Charger, 7400)
			h.pluggedFor(at(0), at(30))
			energy(h)
			h.asset = car
			h.unplugged()
			energy(h)
			h.jobs()
			if got := h.owes(); got != once {
				h.t.Errorf("before the correction %q, want %q", got, once)
			}
			h.given(reading.Input{Label: flex.ChargerEnergy, Span: flex.Span{From: at(0), To: at(30)}})
		}, once},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for _, tt := range cases {
			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(tt.name)
				h.set(t, "credit_pence_per_kwh=2")
				tt.do(h)

				h.jobs()
				h.now = from.Add(48 * time.Hour)
				h.jobs()
				if got := h.owes(); got != tt.want {
					t.Errorf("in the books %q, want %q", got, tt.want)
				}
			})
		}

		h.sound(t)
	})
}

// given sends readings of the home's device, which must all be taken.
func (h *home) given(readings ...reading.Input) {
	h.t.Helper()
	for i := range readings {
		readings[i].AssetID = h.asset
	}
	verdicts, err := (&reading.Service{DB: h.db}).Store(h.t.Context(), h.org, readings)
	if err != nil {
		h.t.Fatal(err)
	}

	for _, v := range verdicts {
		if !v.Accepted() {
			h.t.Fatal(v)
		}
	}
}

// deleted has the device deleted.
func (h *home) deleted() {
	h.t.Helper()
	if err := h.registrar().DeleteAsset(h.t.Context(), h.org, h.asset); err != nil {
		h.t.Fatal(err)
	}
}

// addedAgain has the device deleted, and added again at once under its name.
func (h *home) addedAgain() {
	h.t.Helper()
	h.deleted()
	power := flex.Watts(7400)
	a, err := h.registrar().CreateAsset(h.t.Context(), h.org, h.site, registry.AssetInput{
		ExternalID: "a", Type: flex.ElectricVehicle, AssetProperties: registry.AssetProperties{Power: &power}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.asset = a.ID
}

// A charger that is asked to wait, deleted and added again within the half-hour, and asked
// again, is not credited more than the 2 kWh that its home left out at its boundary: 20 p at
// 100 £/MWh. What it was to move until it was deleted is credited to nobody: of 26 minutes and
// 4, at 7.4 kW, 493 Wh of 493 + 3,207 × 26/30 are left, which are 3.01 p.
func TestHostile_PausedAndAddedAgain(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		slot := h.monday.Period(homeSlot)
		at := func(minute int) time.Time { return slot.Start().Add(time.Duration(minute) * time.Minute) }

		for _, tt := range []struct {
			name           string
			until, deleted int // minutes from the beginning of the half-hour
			want           string
		}{
			{"asked to wait until it is deleted", 26, 26, "market_receivable 3, rewards_payable -3"},
			{"asked to wait for a part before", 20, 26, "market_receivable 4, rewards_payable -4"},
			{"asked to wait all the half-hour", 30, 26, "market_receivable 3, rewards_payable -3"},
			{"deleted at its end", 30, 30, "market_receivable 20, rewards_payable -20"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(tt.name)
				gateway := h.asset
				gateway[15] ^= 1
				h.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, created_at) VALUES ($1, $2, $3, 'gateway', 'charger', 0)`,
					gateway.Bytes(), h.org.Bytes(), h.site.Bytes())

				for back := range homeDays + 1 {
					h.energy(gateway, flex.ProvisionalConsumption, back, []float64{2, 4}[min(back, 1)])
				}

				h.flush()
				h.asksToWait(at(0), at(tt.until))
				h.now = at(tt.deleted)
				h.addedAgain()
				h.asksToWait(at(tt.deleted), at(30+tt.deleted/30*30))
				h.now = at(61)

				h.jobs()
				h.now = clock("2025-04-01 00:00")
				h.jobs()
				if got := h.owes(); got != tt.want {
					t.Errorf("in the books %q, want %q", got, tt.want)
				}
			})
		}

		h.sound(t)
	})
}

// asksToWait has the home's device asked to wait.
func (h *home) asksToWait(from, to time.Time) {
	h.t.Helper()
	h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Asset(ctx, h.asset)
		if err != nil {
			return err
		}
		return tx.SetPause(ctx, a, flex.Span{From: from, To: to}, 0)
	})
}
