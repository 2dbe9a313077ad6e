package access_test

import (
	"context"
	"crypto/sha256"
	"runtime"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// beside writes, and has act begin before what was written is committed: on PostgreSQL it waits for that. When both are done it
// returns how many tokens there are.
func beside(t *testing.T, db *store.DB, url string, write func(*store.All) error, act func() error) int {
	t.Helper()
	done := make(chan error, 1)
	locks := storetest.At(t, db, url)

	err := db.WriteAll(t.Context(), func(all *store.All) error {
		if err := write(all); err != nil {
			return err
		}

		go func() { done <- act() }()

		for db.Engine() == "postgres" && len(done) == 0 {
			if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
				break
			}
			runtime.Gosched()
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return locks.Count(`SELECT count(*) FROM token`)
}

// A credential is revoked while a login with it has yet to commit its token: the token ends too.
func TestRevoke_BesideALogin(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		d := &access.Service{DB: db}
		org, _, err := d.AddOrg(t.Context(), "acme", "u", "")
		if err != nil {
			t.Fatal(err)
		}

		token := store.Token{Hash: sha256.Sum256([]byte("a token")), Org: org.ID, Username: "u", Roles: flex.Roles, ExpiresAt: db.Now().Add(time.Hour)}
		n := beside(t, db, url, func(all *store.All) error {
			_, err := all.AddToken(t.Context(), token)
			return err
		}, func() error { return d.Revoke(context.Background(), "u") })
		if n != 0 {
			t.Error("a token is left")
		}
	})
}

// A household's token is asked for twice at once: the second ends the first, so that the site has one.
func TestIssueHousehold_TwiceAtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		d := &access.Service{DB: db}
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site()
		if _, err := d.AddCredential(t.Context(), seed.Org, "u", "", flex.Roles, access.NoLimits); err != nil {
			t.Fatal(err)
		}

		first := store.Token{
			Hash: sha256.Sum256([]byte("the first")), Org: seed.Org, Username: "u", Roles: []flex.Role{flex.HomeAssistant}, Site: site,
			ExpiresAt: db.Now().Add(time.Hour),
		}
		n := beside(t, db, url, func(all *store.All) error {
			tx, err := all.For(t.Context(), seed.Org)
			if err != nil {
				return err
			}

			if _, err := tx.LockedSite(t.Context(), site); err != nil {
				return err
			}

			_, err = all.AddToken(t.Context(), first)
			return err
		}, func() error {
			_, err := d.IssueHousehold(context.Background(), access.Principal{Org: seed.Org, Username: "u"}, site)
			return err
		})
		if n != 1 {
			t.Errorf("the site has %d tokens", n)
		}
	})
}

// A token whose credential is revoked opens nothing, though an earlier flexd left it behind.
func TestIdentify_OfARevokedCredential(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		d := &access.Service{DB: db}
		_, secret, err := d.AddOrg(t.Context(), "acme", "u", "")
		if err != nil {
			t.Fatal(err)
		}

		issued, err := d.Login(t.Context(), "u", secret, "a")
		if err != nil {
			t.Fatal(err)
		}

		at := storetest.At(t, db, url)
		at.Exec(`UPDATE credential SET revoked_at = 1 WHERE username = 'u'`)
		if _, err := d.Identify(t.Context(), issued.Token); flex.KindOf(err) != flex.Unauthorized {
			t.Errorf("it opens something: %v", err)
		}
		at.Exec(`UPDATE credential SET revoked_at = NULL WHERE username = 'u'`)
	})
}
