package registry_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A battery that gets another power or another phase leaves the cars of its site another part
// of the connection, so they are planned again, whether the battery was changed or registered
// again; one that gets another firmware does not.
func TestAssetProperties_PlanTheSite(t *testing.T) {
	type way func(*registry.Service, flex.OrgID, flex.AssetID, registry.AssetProperties) error
	home := registry.SiteInput{MPAN: "1200000000000", Postcode: "SW1A 1AA", Address: "1 High Street", ConsentAt: time.UnixMicro(1)}
	ways := map[string]way{
		"changed": func(s *registry.Service, org flex.OrgID, id flex.AssetID, p registry.AssetProperties) error {
			_, err := s.ChangeAsset(t.Context(), org, id, registry.AssetChange{AssetProperties: p})
			return err
		},
		"registered again": func(s *registry.Service, org flex.OrgID, _ flex.AssetID, p registry.AssetProperties) error {
			battery := registry.AssetInput{AssetProperties: p, ExternalID: "battery", Type: flex.Battery}
			_, err := s.Initialise(t.Context(), org, home, []registry.AssetInput{battery})
			return err
		},
	}

	three, one, phase, version := 3, 1, "L2", "1.2"
	for name, change := range ways {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				db := storetest.Open(t, url, store.Options{})
				seed := storetest.NewSeed(t, db, url)
				service := &registry.Service{DB: db}
				made, err := service.Initialise(t.Context(), seed.Org, home, []registry.AssetInput{
					{ExternalID: "car", Type: flex.ElectricVehicle, AssetProperties: registry.AssetProperties{Power: new(flex.Watts(7400))}},
					{ExternalID: "battery", Type: flex.Battery, AssetProperties: registry.AssetProperties{Power: new(flex.Watts(5000))}},
				})
				if err != nil {
					t.Fatal(err)
				}

				car, battery := made.Assets[0].ID, made.Assets[1].ID
				stranger := seed.Asset(seed.Site(), flex.ElectricVehicle, 7400)
				for i, id := range []flex.AssetID{car, stranger} {
					seed.Exec(`INSERT INTO session (id, org_id, asset_id, site_id, number, plugged_in_at, generation, event_id)
						SELECT $1, org_id, id, site_id, 1, $2, 0, $1 FROM asset WHERE id = $1`, id.Bytes(), 1000+i)
				}

				for _, c := range []struct {
					name string
					sent registry.AssetProperties
					want int
				}{
					{"firmware", registry.AssetProperties{Firmware: &version}, 0},
					{"power", registry.AssetProperties{Power: new(flex.Watts(3600))}, 1},
					{"phases", registry.AssetProperties{Phases: &three}, 1},
					{"one phase", registry.AssetProperties{Phases: &one, Phase: &phase}, 1},
					{"nothing else", registry.AssetProperties{Phase: &phase}, 0},
				} {
					seed.Exec(`UPDATE session SET due_at = NULL, due_for = NULL`)
					if err := change(service, seed.Org, battery, c.sent); err != nil {
						t.Fatal(c.name, err)
					}

					if got := seed.Count(`SELECT count(*) FROM session WHERE due_at IS NOT NULL`); got != c.want {
						t.Errorf("%s: %d sessions are due, want %d", c.name, got, c.want)
					}
				}

				seed.Exec(`DELETE FROM session`)
			})
		})
	}
}

// A site that is registered again with another supply has the cars that are plugged in there
// planned again, as they share what its connection carries; with the same supply, or another
// email, it has not.
func TestInitialise_SupplyPlansTheSite(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		service := &registry.Service{DB: db}
		home := registry.SiteInput{MPAN: "1200000000000", Postcode: "SW1A 1AA", Address: "1 High Street", ConsentAt: time.UnixMicro(1)}
		car := registry.AssetInput{ExternalID: "car", Type: flex.ElectricVehicle}
		made, err := service.Initialise(t.Context(), seed.Org, home, []registry.AssetInput{car})
		if err != nil {
			t.Fatal(err)
		}

		stranger := seed.Asset(seed.Site(), flex.ElectricVehicle, 7400)
		for i, id := range []flex.AssetID{made.Assets[0].ID, stranger} {
			seed.Exec(`INSERT INTO session (id, org_id, asset_id, site_id, number, plugged_in_at, generation, event_id)
				SELECT $1, org_id, id, site_id, 1, $2, 0, $1 FROM asset WHERE id = $1`, id.Bytes(), 1000+i)
		}

		fuse := flex.SupplyChange{Fuse: &flex.Fuse{Amperes: 40, Phases: 1}}
		for _, c := range []struct {
			name   string
			email  string
			supply flex.SupplyChange
			want   int
		}{
			{"an email", "resident@example.com", flex.SupplyChange{}, 0},
			{"a fuse", "", fuse, 1},
			{"the same fuse", "", fuse, 0},
			{"a capacity", "", flex.SupplyChange{Import: new(flex.Watts(5000))}, 1},
		} {
			seed.Exec(`UPDATE session SET due_at = NULL, due_for = NULL`)
			again := home
			again.Email, again.Supply = c.email, c.supply
			if _, err := service.Initialise(t.Context(), seed.Org, again, []registry.AssetInput{car}); err != nil {
				t.Fatal(c.name, err)
			}

			if got := seed.Count(`SELECT count(*) FROM session WHERE due_at IS NOT NULL`); got != c.want {
				t.Errorf("%s: %d sessions are due, want %d", c.name, got, c.want)
			}
		}

		seed.Exec(`DELETE FROM session`)
	})
}
