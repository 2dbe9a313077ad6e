package registry_test

import (
	"context"
	"runtime"
	"testing"

	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A client brings access to a cloud while its site is offboarded, and that comes once the
// access that there was is deleted: the site leaves all the same, and the new access with it.
func TestOffboard_TokenBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		d := &registry.Service{DB: db}
		seed := storetest.NewSeed(t, db, url)
		site, ctx := seed.Site(), context.Background()

		put := func() {
			err := d.PutToken(
				ctx,
				seed.Org,
				site,
				registry.CloudToken{Access: "access", Refresh: "refresh"},
			)
			if err != nil {
				t.Error(err)
			}
		}

		left := make(chan error, 1)
		leave := func() {
			_, _, err := d.Offboard(ctx, seed.Org, site)
			left <- err
		}

		if db.Engine() != "postgres" {
			put()
			leave()
		} else {
			gate := seed.ShutGate("former_email") // which is deleted after it
			defer gate.Open()

			go leave()
			for len(left)+gate.Waiting() == 0 {
				runtime.Gosched()
			}
			put()
			gate.Open()
		}

		if err := <-left; err != nil {
			t.Errorf("the site did not leave: %v", err)
		}
		if n := seed.Count(`SELECT (SELECT count(*) FROM cloud_token) + (SELECT count(*) FROM site)`); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}
