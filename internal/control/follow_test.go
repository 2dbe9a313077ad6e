package control

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestFollow_SiteGone: whoever follows a site that is not there any more, as its organisation has moved to another cell, is sent away. They
// are not shown a site without assets, as whoever follows a site that has none is.
func TestFollow_SiteGone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := &Service{DB: db}
		org, err := db.AddOrg(ctx, "Acme")
		if err != nil {
			t.Fatal(err)
		}

		site := flex.Site{Address: "1", Email: "a@example.com"}
		err = db.Write(ctx, org.ID, func(tx *store.Tx) error { return tx.AddSite(ctx, &site, "1") })
		if err != nil {
			t.Fatal(err)
		}

		bare := &follower{org: org.ID, site: site.ID, updates: make(chan SiteNow, 1)}
		gone := &follower{org: org.ID, site: flex.SiteID{1}, updates: make(chan SiteNow, 1)}
		fs := followers{all: map[*follower]struct{}{bare: {}, gone: {}}}
		now, err := s.readFollowed(ctx, org.ID, []flex.SiteID{bare.site, gone.site})
		if err != nil {
			t.Fatal(err)
		}
		fs.notify(org.ID, now)

		if state := <-bare.updates; state.Site != site.ID || len(state.Assets) > 0 {
			t.Errorf("of a site without assets it is said: %+v", state)
		}
		if state, open := <-gone.updates; open {
			t.Errorf("of a site that is gone it is said: %+v", state)
		}
		if len(fs.all) != 1 {
			t.Errorf("%d follow still, want 1", len(fs.all))
		}
	})
}
