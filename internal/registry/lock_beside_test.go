package registry_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// lost counts the writes that lost to another.
type lost struct {
	slog.Handler
	n atomic.Int64
}

func (l *lost) Enabled(context.Context, slog.Level) bool { return true }

func (l *lost) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "a write lost to another") {
		l.n.Add(1)
	}
	return nil
}

// lockOrder locks an organisation, its caps, a site and its asset in the order in which a
// dispatch does.
func lockOrder(db *store.DB, org flex.OrgID, site flex.SiteID, asset flex.AssetID) error {
	ctx := context.Background()
	return db.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}
		if err := tx.LockCapsUnread(ctx); err != nil {
			return err
		}
		if err := tx.LockSite(ctx, site); err != nil {
			return err
		}

		err := tx.LockAsset(ctx, asset)
		if flex.KindOf(err) == flex.NotFound { // it was deleted before
			return nil
		}

		return err
	})
}

// TestLocks_Beside has a site or an asset be changed, up to where a table is written, while
// somebody else locks the organisation, the site and the asset as a dispatch does: none of the
// two waits for one who waits for it.
func TestLocks_Beside(t *testing.T) {
	ctx := context.Background()
	more := []flex.DispatchMethod{flex.LimitedPauseMethod}
	watts := registry.AssetProperties{Power: new(flex.Watts(11_000))}

	for name, c := range map[string]struct {
		table  string
		change func(*registry.Service, flex.OrgID, flex.SiteID, flex.AssetID) error
	}{
		"a consent": {"dispatch_method", func(s *registry.Service, org flex.OrgID, site flex.SiteID, _ flex.AssetID) error {
			_, err := s.GiveDispatchConsent(ctx, org, site, more)
			return err
		}},
		"a site that leaves": {"dispatch_method", func(s *registry.Service, org flex.OrgID, site flex.SiteID, _ flex.AssetID) error {
			_, _, err := s.Offboard(ctx, org, site)
			return err
		}},

		"a power": {"asset", func(s *registry.Service, org flex.OrgID, _ flex.SiteID, asset flex.AssetID) error {
			_, err := s.ChangeAsset(ctx, org, asset, registry.AssetChange{AssetProperties: watts})
			return err
		}},
		"an asset that is deleted": {"outbox", func(s *registry.Service, org flex.OrgID, _ flex.SiteID, asset flex.AssetID) error {
			return s.DeleteAsset(ctx, org, asset)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				l := &lost{Handler: slog.DiscardHandler}
				db := storetest.Open(t, url, store.Options{Log: slog.New(l)})
				seed := storetest.NewSeed(t, db, url)
				site := seed.Site(flex.FullScheduleMethod)
				asset := seed.Asset(site, flex.Charger, 7400)

				change := func() error { return c.change(&registry.Service{DB: db}, seed.Org, site, asset) }
				besides(t, db, url, c.table, change, func() error { return lockOrder(db, seed.Org, site, asset) })
				if n := l.n.Load(); n > 0 {
					t.Errorf("%d writes lost to another one and were run again", n)
				}
			})
		})
	}
}
