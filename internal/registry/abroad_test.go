package registry_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A site without a metering point can be changed also when the organisation may register no
// more of them: what was accepted before, and is not sent, is not checked again. A postcode
// that is sent is.
func TestChangeSite_WithoutMPANBefore(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		org, err := db.AddOrg(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}

		allow := func(yes bool) {
			t.Helper()
			err := db.Write(t.Context(), org.ID, func(tx *store.Tx) error {
				return tx.SetSettings(t.Context(), flex.OrgSettings{WithoutMPAN: yes})
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		allow(true)
		service := &registry.Service{DB: db}
		site, err := service.CreateSite(t.Context(), org.ID, registry.SiteInput{Postcode: "D-10117", Address: "Unter den Linden 1"})
		if err != nil {
			t.Fatal(err)
		}

		allow(false)
		email, postcode := "resident@example.com", "10117"
		after, err := service.ChangeSite(t.Context(), org.ID, site.ID, registry.SiteChange{Email: &email})
		if err != nil || after.Postcode.Reveal() != "D-10117" {
			t.Errorf("another email: %q, %v", after.Postcode.Reveal(), err)
		}

		_, err = service.ChangeSite(t.Context(), org.ID, site.ID, registry.SiteChange{Postcode: &postcode})
		if flex.KindOf(err) != flex.Invalid {
			t.Errorf("another postcode: %v", err)
		}
	})
}
