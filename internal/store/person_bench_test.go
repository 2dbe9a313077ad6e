package store_test

import (
	"fmt"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// What it costs that texts about persons are sealed: the same work in a database with them in plain
// text and in one with them sealed.
func BenchmarkPersons(b *testing.B) {
	for _, kept := range []string{"plain", "sealed"} {
		o := store.Options{}
		if kept == "sealed" {
			o.Keys = storetest.Keys(b)
		}

		storetest.EachBench(b, func(b *testing.B, url string) {
			db, err := store.Open(b.Context(), url, o)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			if db.PersonsSealed() != (kept == "sealed") {
				b.Fatal("it is kept otherwise")
			}

			org, err := db.AddOrg(b.Context(), "Acme")
			if err != nil {
				b.Fatal(err)
			}
			benchPersons(b, db, org.ID, kept)
		})
	}
}

func benchPersons(b *testing.B, db *store.DB, org flex.OrgID, kept string) {
	ctx := b.Context()
	n := 0
	add := func() (s flex.Site) {
		n++
		s = flex.Site{
			MPAN: flex.Personal(fmt.Sprintf("12%011d", n)), Address: flex.Personal(fmt.Sprint(
				n,
				" High Street, Newtown",
			)),
			Postcode: "AB1 2CD", Email: flex.Personal(fmt.Sprintf("user%d@home.example", n)), ExternalUserID: fmt.Sprint(
				"user",
				n,
			),
		}

		err := db.Write(ctx, org, func(tx *store.Tx) error {
			there, err := tx.SiteByMPAN(ctx, s.MPAN.Reveal())
			if err != nil || there != nil {
				b.Fatal(there, err)
			}
			return tx.AddSite(ctx, &s, fmt.Sprint(n, "|ab12cd"))
		})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}

	read := func(fn func(*store.Tx) error) {
		if err := db.Read(ctx, org, fn); err != nil {
			b.Fatal(err)
		}
	}

	site := add()
	for range 199 {
		add()
	}

	b.Run(kept+"/site", func(b *testing.B) {
		for b.Loop() {
			read(func(tx *store.Tx) error {
				_, err := tx.SiteRecord(ctx, site.ID)
				return err
			})
		}
	})
	b.Run(kept+"/byMPAN", func(b *testing.B) {
		for b.Loop() {
			read(func(tx *store.Tx) error {
				_, err := tx.SiteByMPAN(ctx, site.MPAN.Reveal())
				return err
			})
		}
	})

	b.Run(kept+"/list100", func(b *testing.B) {
		for b.Loop() {
			read(func(tx *store.Tx) error {
				_, err := tx.SiteRecords(
					ctx,
					store.SiteFilter{Postcode: "AB1 2CD", Limit: 100},
				)
				return err
			})
		}
	})
	b.Run(kept+"/register", func(b *testing.B) {
		for b.Loop() {
			add()
		}
	})
}
