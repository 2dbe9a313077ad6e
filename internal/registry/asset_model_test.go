package registry_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// An asset that gets another model has that model's power and capacity, but for what was sent of it, then or now. The same model under another
// spelling, and no model, change neither.
func TestChangeAsset_OtherModel(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		service := &registry.Service{DB: db}
		watts, hours := func(w flex.Watts) *flex.Watts { return &w }, func(e flex.WattHours) *flex.WattHours { return &e }
		err := db.WriteAll(t.Context(), func(all *store.All) error {
			return all.PutModels(t.Context(), []flex.Model{
				{Name: "Small", Type: flex.Battery, Power: watts(3000), Capacity: hours(5000)},
				{Name: "Large", Type: flex.Battery, Power: watts(5000), Capacity: hours(13_500)},
				{Name: "Unknown", Type: flex.Battery},
			})
		})
		if err != nil {
			t.Fatal(err)
		}

		site := seed.Site()
		for _, c := range []struct {
			name     string
			at, sent registry.AssetProperties // when it was created, and with the change
			model    string
			power    flex.Watts // 0 for none
			capacity flex.WattHours
		}{
			{name: "of the model", model: "large", power: 5000, capacity: 13_500},
			{name: "the same", model: "SMALL", power: 3000, capacity: 5000},
			{name: "none", power: 3000, capacity: 5000},
			{name: "of a model that names none", model: "Unknown"},
			{name: "sent before", at: registry.AssetProperties{Power: watts(2500)}, model: "Large", power: 2500, capacity: 13_500},
			{name: "sent with it", sent: registry.AssetProperties{Power: watts(3000)}, model: "Large", power: 3000, capacity: 13_500},
		} {
			a, err := service.CreateAsset(t.Context(), seed.Org, site, registry.AssetInput{
				AssetProperties: c.at, ExternalID: c.name, Type: flex.Battery, Model: "small",
			})
			if err != nil {
				t.Fatal(c.name, err)
			}

			a, err = service.ChangeAsset(t.Context(), seed.Org, a.ID, registry.AssetChange{AssetProperties: c.sent, Model: &c.model})
			power, capacity := flex.Watts(0), flex.WattHours(0)
			if a.Power != nil {
				power = *a.Power
			}
			if a.Capacity != nil {
				capacity = *a.Capacity
			}
			if err != nil || power != c.power || capacity != c.capacity {
				t.Errorf("%s: %d W and %d Wh, want %d and %d, %v", c.name, power, capacity, c.power, c.capacity, err)
			}
		}
	})
}
