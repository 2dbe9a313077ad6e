package app_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// pricedThrough is the end of the made-up prices of a database.
func pricedThrough(t *testing.T, db *store.DB) time.Time {
	t.Helper()
	var through time.Time
	err := db.ReadAll(t.Context(), func(all *store.All) error {
		var err error
		through, err = all.PricedThrough(t.Context(), pricing.SandboxSource)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return through
}

// TestCells_InventedPrices: an organisation of another cell than home has made-up prices too
// when its sandbox clock is advanced, and from then on as its clock goes on, though no clock
// of home is as far.
func TestCells_InventedPrices(t *testing.T) {
	for name, fresh := range engines2 {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			cell := func(name string) app.CellSettings {
				return app.CellSettings{Name: name, Settings: app.Settings{
					Database: fresh(t), Keys: storetest.Keys(t), Environment: flex.Sandbox, InventPrices: true,
					Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
				}}
			}

			c, err := app.OpenCells(ctx, []app.CellSettings{cell("home"), cell("north")})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })

			if err := c.Look(ctx); err != nil {
				t.Fatal(err)
			}

			north := app.AppOf(c, "north")
			org, err := north.DB.AddOrg(ctx, "boreas")
			if err != nil {
				t.Fatal(err)
			}

			const far = 45 * 24 * time.Hour
			to := north.DB.Now().Add(far)

			if err := north.Advance(ctx, org.ID, to); err != nil {
				t.Fatal(err)
			}
			if through := pricedThrough(t, north.DB); !through.After(to) {
				t.Errorf("the clock is advanced to %s, with prices through %s", to, through)
			}

			// Its clock is moved as if it had gone on.
			further := func(tx *store.Tx) error { return tx.SetClock(ctx, 2*far) }
			if err := north.DB.Write(ctx, org.ID, further); err != nil {
				t.Fatal(err)
			}

			if _, err := north.Market.FetchPrices(ctx); err != nil {
				t.Fatal(err)
			}
			there, home := pricedThrough(t, north.DB), pricedThrough(t, c.Home().DB)
			if !there.After(to.Add(far)) || !there.Equal(home) {
				t.Errorf("prices through %s, those of home through %s", there, home)
			}
		})
	}
}
