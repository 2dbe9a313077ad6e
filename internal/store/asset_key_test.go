package store_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestAssetKeys finds assets by a model and a firmware that are written in another case, and a
// battery's power in the catalogue, also where the names go beyond ASCII, and also if the
// assets are older than the columns of the keys.
func TestAssetKeys(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site(flex.FullScheduleMethod)
		ids := addBoxes(t, db, seed.Org, site)

		checkBoxes(t, db, seed.Org, site, ids)

		seed.Exec(`UPDATE asset SET model_key = NULL, firmware_key = NULL`)
		if err := store.StoreAssetKeys(t.Context(), db); err != nil {
			t.Fatal(err)
		}

		checkBoxes(t, db, seed.Org, site, ids)
		if n := seed.Count(`SELECT count(*) FROM asset WHERE model_key IS NOT NULL OR firmware_key IS NOT NULL`); n != 1 {
			t.Errorf("%d assets have a key stored, want the one that needs it", n)
		}
	})
}

// addBoxes adds two batteries whose power and capacity the catalogue has, one of them with a
// name beyond ASCII.
func addBoxes(t *testing.T, db *store.DB, org flex.OrgID, site flex.SiteID) []flex.AssetID {
	t.Helper()

	power, capacity := flex.Watts(5000), flex.WattHours(10_000)
	boxes := []flex.Asset{
		{SiteID: site, ExternalID: "beyond", Type: flex.Battery, Model: "ŠKODA Box", Firmware: "ВЕРСИЯ 2"},
		{SiteID: site, ExternalID: "within", Type: flex.Battery, Model: "Other Box", Firmware: "V2"},
	}

	err := db.WriteAll(t.Context(), func(all *store.All) error {
		return all.PutModels(t.Context(), []flex.Model{
			{Name: "Škoda Box", Type: flex.Battery, Power: &power, Capacity: &capacity},
			{Name: "other box", Type: flex.Battery, Power: &power, Capacity: &capacity},
		})
	})
	if err != nil {
		t.Fatal(err)
	}

	err = db.Write(t.Context(), org, func(tx *store.Tx) error {
		for i := range boxes {
			if err := tx.AddAsset(t.Context(), &boxes[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return []flex.AssetID{boxes[0].ID, boxes[1].ID}
}

func checkBoxes(t *testing.T, db *store.DB, org flex.OrgID, site flex.SiteID, ids []flex.AssetID) {
	t.Helper()

	err := db.Read(t.Context(), org, func(tx *store.Tx) error {
		steered, err := tx.Steered(t.Context(), site)
		if err == nil && len(steered) != len(ids) {
			t.Errorf("%d batteries are planned, want %d", len(steered), len(ids))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	err = db.ReadAll(t.Context(), func(all *store.All) error {
		for i, names := range [][2]string{{"šKODA box", "версия 2"}, {"OTHER BOX", "v2"}} {
			for _, f := range []store.Find{{Model: names[0], Limit: 9}, {Firmware: names[1], Limit: 9}} {
				found, err := all.FindAssets(t.Context(), f)
				if err != nil {
					return err
				}
				if len(found) != 1 || found[0].ID != ids[i] {
					t.Errorf("%+v finds %d assets, want one", f, len(found))
				}
			}

			for _, text := range []string{"model/" + names[0], "firmware/" + names[1]} {
				scope, err := store.ParseHaltScope(text)
				if err != nil {
					return err
				}

				reach, err := all.ReachOfHalt(t.Context(), scope)
				if err != nil {
					return err
				}
				if reach.Assets != 1 {
					t.Errorf("a halt of %s stops %d assets, want 1", text, reach.Assets)
				}
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
