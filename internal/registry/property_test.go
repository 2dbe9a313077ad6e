package registry_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestUPRN keeps a home from being registered twice under two MPANs, and two homes that are
// written alike apart. Sites are found by the number, with its zeros or without.
func TestUPRN(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		org, err := db.AddOrg(ctx, "acme")
		if err != nil {
			t.Fatal(err)
		}
		meter := func(mpan, uprn string) flex.Meter {
			return flex.Meter{MPAN: mpan, UPRN: uprn, Import: true, Energised: true, HalfHourly: true, Domestic: true, Postcode: "YO1 7HH", Address: "5 MILL LANE"}
		}

		err = db.WriteAll(ctx, func(all *store.All) error {
			return all.PutMeters(ctx, []flex.Meter{meter("1012345678900", "000000100012"), meter("1012345678913", "100012"), meter("1012345678926", "100013"), meter("1012345678939", "")})
		})
		if err != nil {
			t.Fatal(err)
		}

		d := &registry.Service{DB: db}
		create := func(mpan, address string) error {
			_, err := d.CreateSite(ctx, org.ID, registry.SiteInput{MPAN: mpan, Postcode: "YO1 7HH", Address: address})
			return err
		}
		if err := create("1012345678900", "5 Mill Lane"); err != nil {
			t.Fatal(err)
		}

		for _, c := range []struct {
			name, mpan, address string
			want                flex.Kind
		}{
			{"the same property, written otherwise", "1012345678913", "Rose Cottage, Mill Lane", flex.Conflict},
			{"the same address, no number known", "1012345678939", "5 Mill Ln.", flex.Conflict},
			{"another property of the same address", "1012345678926", "5 Mill Lane", flex.Internal},
		} {
			t.Run(c.name, func(t *testing.T) {
				err := create(c.mpan, c.address)
				if err == nil && c.want == flex.Internal {
					return
				}

				if flex.KindOf(err) != c.want {
					t.Errorf("%v", err)
				}
			})
		}

		for _, again := range []bool{false, true} { // the way in that is older, too
			site := registry.SiteInput{MPAN: "1012345678913", Postcode: "YO1 7HH", Address: "Rose Cottage, Mill Lane", ConsentAt: time.UnixMicro(1)}
			charger := registry.AssetInput{ExternalID: "charger", Type: flex.Charger}
			_, err := d.Initialise(ctx, org.ID, site, []registry.AssetInput{charger})
			if again {
				_, err = d.OnboardNew(ctx, org.ID, site, charger, nil)
			}
			if flex.KindOf(err) != flex.Conflict {
				t.Errorf("the same property is onboarded: %v", err)
			}
		}

		ownProperty(t, d, org.ID)

		for text, want := range map[string]int{"100012": 1, "000000100012": 1, "0100013": 1, "100014": 0, "0": 0} {
			err := db.ReadAll(ctx, func(all *store.All) error {
				found, err := all.FindSites(ctx, store.Find{Text: text, Limit: 10})
				if len(found) != want {
					t.Errorf("%s finds %d sites, want %d", text, len(found), want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// ownProperty has a site without a number refused the MPAN of another site's property, by a
// change and by an onboarding that finds it by its address.
func ownProperty(t *testing.T, d *registry.Service, org flex.OrgID) {
	t.Helper()
	home := registry.SiteInput{MPAN: "1012345678941", Postcode: "YO1 7HH", Address: "9 Mill Lane", ConsentAt: time.UnixMicro(1)}
	site, err := d.CreateSite(t.Context(), org, home)
	if err != nil {
		t.Fatal(err)
	}

	mpan := "1012345678913" // of the property of 5 Mill Lane

	_, err = d.ChangeSite(t.Context(), org, site.ID, registry.SiteChange{MPAN: &mpan})
	if flex.KindOf(err) != flex.Invalid {
		t.Errorf("changed to an MPAN of another site's property: %v", err)
	}

	home.MPAN = mpan
	_, err = d.Initialise(t.Context(), org, home, []registry.AssetInput{{ExternalID: "charger", Type: flex.Charger}})
	if flex.KindOf(err) != flex.Conflict {
		t.Errorf("onboarded with an MPAN of another site's property: %v", err)
	}

	after, err := d.Site(t.Context(), org, site.ID)
	if err != nil || after.MPAN != site.MPAN {
		t.Errorf("the site is now %+v: %v", after, err)
	}
}

// TestAddressTaken: a site is not given the address of another, and a new MPAN is given to
// neither of two sites that are written alike.
func TestAddressTaken(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		org, err := db.AddOrg(ctx, "acme")
		if err != nil {
			t.Fatal(err)
		}

		d := &registry.Service{DB: db}
		home := func(mpan, address string) registry.SiteInput {
			return registry.SiteInput{MPAN: mpan, Postcode: "YO1 7HH", Address: address, ConsentAt: time.UnixMicro(1)}
		}

		initialise := func(site registry.SiteInput) error {
			charger := registry.AssetInput{ExternalID: "charger of " + site.MPAN, Type: flex.Charger}
			_, err := d.Initialise(ctx, org.ID, site, []registry.AssetInput{charger})
			return err
		}

		one, err := d.CreateSite(ctx, org.ID, home("1012345678900", "5 Mill Lane"))
		if err != nil {
			t.Fatal(err)
		}

		two, err := d.CreateSite(ctx, org.ID, home("1012345678926", "6 Mill Lane"))
		if err != nil {
			t.Fatal(err)
		}

		address := "5 Mill Lane"
		move := func(id flex.SiteID) error {
			_, err := d.ChangeSite(ctx, org.ID, id, registry.SiteChange{Address: &address})
			return err
		}

		if err := initialise(home("1012345678926", "5 mill ln.")); flex.KindOf(err) != flex.Conflict {
			t.Errorf("onboarded at the address of another: %v", err)
		}
		if err := move(two.ID); flex.KindOf(err) != flex.Invalid {
			t.Errorf("moved to the address of another: %v", err)
		}
		if err := move(one.ID); err != nil {
			t.Errorf("its own address: %v", err)
		}

		err = db.WriteAll(ctx, func(all *store.All) error {
			return all.PutMeters(ctx, []flex.Meter{{MPAN: "1012345678900", UPRN: "100012", Import: true}, {MPAN: "1012345678926", UPRN: "100013", Import: true}})
		})
		if err != nil {
			t.Fatal(err)
		}

		if err := move(two.ID); err != nil {
			t.Errorf("two properties that are written alike: %v", err)
		}
		if err := initialise(home("1012345678939", address)); flex.KindOf(err) != flex.Conflict {
			t.Errorf("a new MPAN at the address of two sites: %v", err)
		}

		after, err := d.Site(ctx, org.ID, one.ID)
		if err != nil || after.MPAN != one.MPAN {
			t.Errorf("the first site is now %+v: %v", after, err)
		}
	})
}
