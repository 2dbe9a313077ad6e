package registry_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// An asset that gets another model has that model's power and capacity, but for what was sent
// of it, then or now. The same model under another spelling, and no model, change neither.
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

// An asset that is registered again gets the power that its model has in the catalogue, also
// if the model itself is the same, and the answer names the properties among the fields that
// changed.
func TestInitialise_ModelPower(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		org, err := db.AddOrg(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}

		stock := func(models ...flex.Model) {
			t.Helper()
			if err := db.WriteAll(t.Context(), func(all *store.All) error { return all.PutModels(t.Context(), models) }); err != nil {
				t.Fatal(err)
			}
		}

		small, large := flex.Watts(7000), flex.Watts(11_000)
		stock(
			flex.Model{Name: "Small", Type: flex.Charger},
			flex.Model{Name: "Large", Type: flex.Charger, Power: &large},
			flex.Model{Name: "Plain", Type: flex.Charger},
		)

		service := &registry.Service{DB: db}
		home := registry.SiteInput{MPAN: "1200000000000", Postcode: "SW1A 1AA", Address: "1 High Street", ConsentAt: time.UnixMicro(1)}

		for _, c := range []struct {
			name, model string
			want        []string
			power       flex.Watts // 0 for none
		}{
			{"new", "", []string{}, 0},
			{"a model without a power", "Small", []string{"asset_model"}, 0},
			{"its power was imported since", "Small", []string{"properties"}, small},
			{"nothing else", "Small", []string{}, small},
			{"a model of another power", "Large", []string{"properties", "asset_model"}, large},
			{"a model without a power after it", "Plain", []string{"properties", "asset_model"}, 0},
		} {
			o, err := service.Initialise(t.Context(), org.ID, home, []registry.AssetInput{{ExternalID: "charger", Type: flex.Charger, Model: c.model}})
			if err != nil {
				t.Fatal(c.name, err)
			}
			if got := o.Assets[0].Updated; !slices.Equal(got, c.want) {
				t.Errorf("%s: changed %v, want %v", c.name, got, c.want)
			}

			a, err := service.Asset(t.Context(), org.ID, o.Assets[0].ID)
			var power flex.Watts
			if a.Power != nil {
				power = *a.Power
			}
			if err != nil || power != c.power {
				t.Errorf("%s: %d W, want %d, %v", c.name, power, c.power, err)
			}

			if c.model == "Small" {
				stock(flex.Model{Name: "Small", Type: flex.Charger, Power: &small})
			}
		}
	})
}

// An asset may settle by its own meter, while it is there and once it was taken away, also if
// its model's name has characters beyond ASCII, which not every database turns into lower
// case.
func TestDeleteAsset_ModelBeyondASCII(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		service := &registry.Service{DB: db}
		err := db.WriteAll(t.Context(), func(all *store.All) error {
			return all.PutModels(t.Context(), []flex.Model{{Name: "ŠKODA Box", Type: flex.Charger, CoP11: true}})
		})
		if err != nil {
			t.Fatal(err)
		}

		a, err := service.CreateAsset(t.Context(), seed.Org, seed.Site(), registry.AssetInput{
			ExternalID: "box", Type: flex.Charger, Model: "škoda box", InstalledOn: "2025-06-15",
		})
		if err != nil {
			t.Fatal(err)
		}

		day := flex.Day{Year: 2026, Month: 1, Dom: 15}
		e := store.FlexEvent{SiteID: a.SiteID, AssetID: a.ID, Day: day, First: 1, Last: 1, Span: day.Period(1).Span()}
		e.Meant, e.Nominated = []flex.WattHours{-100}, []flex.WattHours{100}
		err = db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			_, err := tx.AddFlexEvent(t.Context(), &e)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		if n := seed.Count(`SELECT count(*) FROM flex_event WHERE cop11`); n != 1 {
			t.Errorf("%d events are settled by the asset's own meter, want 1", n)
		}

		if err := service.DeleteAsset(t.Context(), seed.Org, a.ID); err != nil {
			t.Fatal(err)
		}
		if n := seed.Count(`SELECT count(*) FROM former_asset WHERE cop11`); n != 1 {
			t.Errorf("%d assets that were taken away had such a meter, want 1", n)
		}
	})
}
