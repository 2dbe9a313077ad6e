package store_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/keyring"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// secrets are what the tests below keep; no file of the store may hold them.
var secrets = []string{"whsec_c2VjcmV0", "whsec_b2xkc2VjcmV0", "Bearer of-an-endpoint", "123456\n01234567\nAnn", "verifier-of-a-link", "token-of-a-cloud"}

func keys(t *testing.T, firsts ...byte) *keyring.Ring {
	t.Helper()
	var all [][keyring.KeySize]byte
	for _, b := range firsts {
		all = append(all, [keyring.KeySize]byte{b})
	}
	r, err := keyring.NewRing(all...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// keepSecrets stores one secret of each kind, and returns a site that has them.
func keepSecrets(t *testing.T, db *store.DB, org flex.OrgID) (site flex.Site) {
	t.Helper()
	ctx := t.Context()
	err := db.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.AddSite(ctx, &site, ""); err != nil {
			return err
		}

		_, err := tx.PutEndpoint(ctx, flex.Endpoint{
			Name: flex.ScheduleEndpoint, URL: "https://client.example/", Secret: flex.Secret(secrets[0]), OldSecret: flex.Secret(secrets[1]),
			Headers: []flex.EndpointHeader{{Name: "Authorization", Value: flex.Secret(secrets[2])}}, Enabled: true, Rate: 1, Concurrency: 1,
		})
		if err != nil {
			return err
		}
		return tx.PutPayee(ctx, &store.Payee{SiteID: site.ID, Ending: "4567"}, []byte(secrets[3]), "12345601234567")
	})
	if err != nil {
		t.Fatal(err)
	}

	err = db.WriteAll(ctx, func(all *store.All) error {
		l := store.CloudLink{State: [32]byte{1}, Org: org, Site: site.ID, Provider: "volvo", Verifier: flex.Secret(secrets[4]), ExpiresAt: all.Now().Add(time.Hour)}
		if err := all.AddCloudLink(ctx, l); err != nil {
			return err
		}
		return all.PutCloudToken(ctx, store.CloudToken{Org: org, Site: site.ID, Provider: "volvo", Access: flex.Secret(secrets[5])})
	})
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// wantSecrets reads them all back.
func wantSecrets(t *testing.T, db *store.DB, org flex.OrgID, site flex.Site) {
	t.Helper()
	ctx := t.Context()
	var got []string
	err := db.Read(ctx, org, func(tx *store.Tx) error {
		e, err := tx.Endpoint(ctx, flex.ScheduleEndpoint)
		if err != nil {
			return err
		}

		p, err := tx.Payee(ctx, site.ID)
		if err != nil {
			return err
		}
		account, err := tx.OpenPayee(*p)
		got = append(got, e.Secret.Reveal(), e.OldSecret.Reveal(), e.Headers[0].Value.Reveal(), string(account))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	err = db.WriteAll(ctx, func(all *store.All) error {
		l, err := all.CloudLink(ctx, [32]byte{1})
		if err != nil {
			return err
		}
		tokens, err := all.CloudTokens(ctx, site.ID)
		got = append(got, l.Verifier.Reveal(), tokens[0].Access.Reveal())
		return err
	})
	if err != nil || !slices.Equal(got, secrets) {
		t.Errorf("kept %q, read %q: %v", secrets, got, err)
	}
}

// TestSecrets_File shows that who has a copy of the database has no secret of it.
func TestSecrets_File(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	org, err := db.AddOrg(t.Context(), "Acme")
	if err != nil {
		t.Fatal(err)
	}
	wantSecrets(t, db, org.ID, keepSecrets(t, db, org.ID))
	file := filepath.Join(t.TempDir(), "copy.db")
	if err := db.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}

	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "https://client.example/") {
		t.Fatal("the copy does not even hold the URL: the search below shows nothing")
	}

	for _, secret := range secrets {
		for part := range strings.SplitSeq(secret, "\n") {
			if len(part) > 3 && strings.Contains(string(b), part) {
				t.Errorf("the copy holds %q", part)
			}
		}
	}
}

// TestReseal turns the keys: old values open under both, are sealed again, and then the old
// key is of no use.
func TestReseal(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		open := func(want string, firsts ...byte) *store.DB {
			t.Helper()
			o := store.Options{}
			if len(firsts) > 0 {
				o.Keys = keys(t, firsts...)
			}

			db, err := store.Open(t.Context(), url, o)
			if err != nil {
				if want == "" || !strings.Contains(err.Error(), want) {
					t.Fatalf("open with %v: %v", firsts, err)
				}
				return nil
			}

			if want != "" {
				t.Errorf("open with %v: nothing is said of %q", firsts, want)
			}
			t.Cleanup(func() { db.Close() })
			return db
		}

		sealing := func(db *store.DB) (s store.Sealing) {
			t.Helper()
			err := db.ReadAll(t.Context(), func(all *store.All) (err error) {
				s, err = all.Sealing(t.Context())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}

		old := open("", 1)
		org, err := old.AddOrg(t.Context(), "Acme")
		if err != nil {
			t.Fatal(err)
		}
		site := keepSecrets(t, old, org.ID)
		if s := sealing(old); s.Old() != 0 || s.Under[s.Newest] != 6 {
			t.Errorf("at first: %+v", s)
		}

		open("does not hold", 2)
		both := open("", 2, 1)
		wantSecrets(t, both, org.ID, site)
		if s := sealing(both); s.Old() != 6 || s.Newest == sealing(old).Newest {
			t.Errorf("with a new key: %+v", s)
		}

		if n, err := both.Reseal(t.Context()); n != 6 || err != nil {
			t.Errorf("sealed %d again: %v", n, err)
		}
		if n, err := both.Reseal(t.Context()); n != 0 || err != nil {
			t.Errorf("sealed %d a third time: %v", n, err)
		}
		wantSecrets(t, both, org.ID, site)
		wantSecrets(t, open("", 2), org.ID, site)
		open("a copy from before the latest flexd key rotate", 1)
		open("--key-file", []byte{}...)
	})
}
