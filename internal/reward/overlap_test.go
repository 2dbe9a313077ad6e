package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestSite_Overlap has a half-hour of a site be settled for one charger, and then found to
// have been another's too, which an instruction called: what the site left out is paid once,
// each part at its own price. In the other order it is the same.
func TestSite_Overlap(t *testing.T) {
	const price, called = 100, 300 // £/MWh
	for _, tt := range []struct {
		name        string
		first       bool // what was called is settled first
		want, after string
	}{
		{"called later", false, "-3700 Wh: 37p", "-1850 Wh -1850 Wh: 37p 55p correction -18p"},
		{"called first", true, "-3700 Wh: 111p", "-1850 Wh -1850 Wh: 111p 18p correction -55p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				h := newHome(t, url, 1, price)
				other := h.device(2, flex.Charger, 7400)

				for back := range homeDays {
					h.energy(h.asset, flex.ProvisionalConsumption, back+1, 7.8)
				}
				h.energy(h.asset, flex.ProvisionalConsumption, 0, 4.1) // 3.7 kWh less, as much as one charger can

				own := h.asset
				h.asset = other
				h.call(t, h.monday.Period(homeSlot).Span(), called, -7400)
				h.asset = own

				one, two := own, other
				if tt.first {
					one, two = other, own
				}

				found := func(step, later, want string) {
					t.Helper()
					h.exec(t, `UPDATE pause SET detected = `+later+` WHERE asset_id = $1`, two.Bytes())
					h.now = h.monday.Period(homeSlot).End().Add(time.Minute)
					h.events(t)
					if got := h.said(); got != want {
						t.Errorf("%s: %s, want %s", step, got, want)
					}
				}

				h.flush()
				h.write(t, func(ctx context.Context, tx *store.Tx) error {
					for _, id := range []flex.AssetID{one, two} {
						a, err := tx.Asset(ctx, id)
						if err == nil {
							err = tx.SetPause(ctx, a, h.monday.Period(homeSlot).Span(), 0)
						}
						if err != nil {
							return err
						}
					}
					return nil
				})

				found("settled alone", "TRUE", tt.want)
				found("with the other", "FALSE", tt.after)
				found("looked for again", "FALSE", tt.after)
			})
		})
	}
}
