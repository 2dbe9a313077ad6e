package registry_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestTakeDispatchConsent_CancelsPauses withdraws the consent to limited pauses while one pause
// has begun and another has not: the second is none any more, the first stays.
func TestTakeDispatchConsent_CancelsPauses(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		now := time.Date(2026, 1, 14, 17, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		org, err := db.AddOrg(ctx, "Acme")
		if err != nil {
			t.Fatal(err)
		}

		site := flex.Site{MPAN: "1", ConsentAt: now}
		begun, later := flex.Asset{ExternalID: "begun", Type: flex.Charger}, flex.Asset{ExternalID: "later", Type: flex.Charger}
		write := func(do func(tx *store.Tx) error) {
			t.Helper()
			if err := db.Write(ctx, org.ID, do); err != nil {
				t.Fatal(err)
			}
		}

		write(func(tx *store.Tx) error {
			if err := tx.AddSite(ctx, &site, ""); err != nil {
				return err
			}
			begun.SiteID, later.SiteID = site.ID, site.ID
			if err := tx.AddAsset(ctx, &begun); err != nil {
				return err
			}
			return tx.AddAsset(ctx, &later)
		})

		half := func(at time.Time) flex.Span { return flex.Span{From: at, To: at.Add(flex.HalfHour)} }
		write(func(tx *store.Tx) error { return tx.AddMethod(ctx, site.ID, flex.LimitedPauseMethod) })
		write(func(tx *store.Tx) error { return tx.SetPause(ctx, begun, half(now.Add(time.Minute)), 20_000) })
		write(func(tx *store.Tx) error { return tx.SetPause(ctx, later, half(now.Add(time.Hour)), 20_000) })
		now = now.Add(time.Minute)

		service := registry.Service{DB: db}
		if _, err := service.TakeDispatchConsent(ctx, org.ID, site.ID, []flex.DispatchMethod{flex.LimitedPauseMethod}); err != nil {
			t.Fatal(err)
		}

		err = db.Read(ctx, org.ID, func(tx *store.Tx) error {
			left, err := tx.Pauses(ctx, site.ID, flex.Span{From: now.Add(-time.Hour), To: now.Add(24 * time.Hour)})
			if len(left) != 1 || left[0].AssetID != begun.ID {
				t.Errorf("left: %v", left)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
