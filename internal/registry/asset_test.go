package registry_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A battery that has another power or another phase leaves the cars of its site something else of the
// connection, so they are planned anew; one that has another firmware does not.
func TestChangeAsset_PlansTheSite(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site()
		car, battery := seed.Asset(site, flex.ElectricVehicle, 7400), seed.Asset(site, flex.Battery, 5000)
		stranger := seed.Asset(seed.Site(), flex.ElectricVehicle, 7400)
		for i, id := range []flex.AssetID{car, stranger} {
			seed.Exec(`INSERT INTO session (id, org_id, asset_id, site_id, number, plugged_in_at, generation, event_id)
				SELECT $1, org_id, id, site_id, 1, $2, 0, $1 FROM asset WHERE id = $1`, id.Bytes(), 1000+i)
		}
		due := func() int { return seed.Count(`SELECT count(*) FROM session WHERE due_at IS NOT NULL`) }
		three, one, phase, version := 3, 1, "L2", "1.2"
		for _, c := range []struct {
			name   string
			change registry.AssetChange
			want   int
		}{
			{"firmware", registry.AssetChange{Firmware: &version}, 0},
			{"power", registry.AssetChange{Power: new(flex.Watts(3600))}, 1},
			{"phases", registry.AssetChange{Phases: &three}, 1},
			{"one phase", registry.AssetChange{Phases: &one, Phase: &phase}, 1},
			{"nothing else", registry.AssetChange{Phase: &phase}, 0},
		} {
			seed.Exec(`UPDATE session SET due_at = NULL, due_for = NULL`)
			if _, err := (&registry.Service{DB: db}).ChangeAsset(t.Context(), seed.Org, battery, c.change); err != nil {
				t.Fatal(c.name, err)
			}
			if got := due(); got != c.want {
				t.Errorf("%s: %d sessions are due, want %d", c.name, got, c.want)
			}
		}
		seed.Exec(`DELETE FROM session`)
	})
}
