package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// persons are what the tests below keep of people, each text in a place of its own.
var persons = []string{
	"1012345678901", "1012345678912", "2012345678923", // import, before a change, export
	"Planted Cottage", "7 Planted Lane", "QQ9 7ZZ", "QQ8 7ZZ", "100012345678",
	"ann.planted@home.example", "former.planted@home.example",
	"planted-user-77", "Your code: 919697", "Dear Ann Planted", "mailbox of planted is full",
}

// keepPersons stores every one of them, as the services do.
func keepPersons(t *testing.T, db *store.DB, org flex.OrgID) (site flex.Site) {
	t.Helper()
	ctx := t.Context()
	site = flex.Site{
		MPAN: flex.Personal(persons[1]), Address: flex.Personal(persons[3]), Postcode: flex.Personal(persons[5]),
		Email: flex.Personal(persons[9]), ExternalUserID: persons[10],
	}

	err := db.WriteAll(ctx, func(all *store.All) error {
		err := all.PutMeters(ctx, []flex.Meter{
			{
				MPAN:     persons[0],
				Address:  persons[4],
				Postcode: persons[6],
				UPRN:     "00" + persons[7],
				Import:   true,
				GSPGroup: "_A",
			},
			{
				MPAN:     persons[2],
				Address:  persons[4],
				Postcode: persons[6],
				GSPGroup: "_A",
			},
		})
		if err != nil {
			return err
		}
		_, _, err = all.DecideMove(ctx, persons[0], org, all.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	err = db.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.AddSite(ctx, &site, "7 planted lane|qq87zz"); err != nil {
			return err
		}

		site.MPAN, site.Email = flex.Personal(persons[0]), flex.Personal(persons[8])
		if err := tx.UpdateSite(ctx, site, "7 planted lane|qq87zz"); err != nil {
			return err
		}

		if err := tx.PutPairs(ctx, []flex.MeterPair{{Import: persons[0], Export: persons[2], From: tx.Now()}}); err != nil {
			return err
		}

		volumes := []store.SettledVolume{{
			MPAN:      persons[0],
			Site:      site.ID,
			At:        time.Unix(1800, 0),
			Run:       1,
			Delivered: 5,
		}}
		if err := tx.PutSettledVolumes(ctx, volumes); err != nil {
			return err
		}

		return tx.AddMail(
			ctx,
			store.Mail{
				SiteID:  site.ID,
				To:      site.Email,
				Subject: persons[11],
				Text:    persons[12],
			},
		)
	})
	if err != nil {
		t.Fatal(err)
	}

	return site
}

// wantPersons finds the site by each text that sites are found by, and reads all of them.
func wantPersons(t *testing.T, db *store.DB, org flex.OrgID, site flex.Site) {
	t.Helper()
	ctx := t.Context()

	err := db.Read(ctx, org, func(tx *store.Tx) error {
		for name, find := range map[string]func() (*flex.Site, error){
			"MPAN": func() (
				*flex.Site,
				error,
			) {
				return tx.SiteByMPAN(ctx, persons[0])
			},

			"address": func() (
				*flex.Site,
				error,
			) {
				alike, err := tx.SitesByAddress(ctx, "7 planted lane|qq87zz")
				if err != nil || len(alike) != 1 {
					return nil, err
				}

				return &alike[0], nil
			},

			"user": func() (
				*flex.Site,
				error,
			) {
				return tx.SiteByUser(ctx, persons[10])
			},

			"UPRN": func() (
				*flex.Site,
				error,
			) {
				return tx.SiteByUPRN(ctx, persons[7])
			},
		} {
			found, err := find()

			if err != nil || found == nil || *found != site {
				t.Errorf("by %s: %v %v", name, found, err)
			}
		}

		for _, f := range []store.SiteFilter{{MPAN: persons[0]}, {Postcode: persons[5]}, {}} {
			f.Limit = 5
			p, err := tx.SiteRecords(ctx, f)
			if err != nil || len(p.Sites) == 0 || p.Sites[0].MPAN != site.MPAN || p.Sites[0].Address != site.Address || p.Sites[0].Meter == nil || p.Sites[0].Meter.Postcode != persons[6] {
				t.Errorf("the list by %+v has %+v: %v", f, p, err)
			}
		}

		former, err := tx.FormerEmails(ctx, site.ID, time.Unix(0, 0))
		if err != nil || len(former) != 1 || former[0].Email.Reveal() != persons[9] {
			t.Errorf("former addresses: %v %v", former, err)
		}

		meter, err := tx.Meter(ctx, persons[0])
		if err != nil || meter == nil || meter.Address != persons[4] || meter.UPRN != "00"+persons[7] {
			t.Errorf("the meter: %v %v", meter, err)
		}

		pairs, err := tx.Pairs(
			ctx,
			flex.Span{
				From: tx.Now().Add(-time.Hour),
				To:   tx.Now().Add(time.Hour),
			},
		)
		if err != nil || len(pairs) != 1 || pairs[0].Import != persons[0] || pairs[0].Export != persons[2] {
			t.Errorf("pairs: %v %v", pairs, err)
		}

		vs, err := tx.SettledVolumes(
			ctx,
			[]string{persons[0], persons[1]},
			flex.Span{From: time.Unix(0, 0), To: time.Unix(3600, 0)},
			7,
		)
		if err != nil || len(vs) != 1 || vs[0].MPAN != persons[0] {
			t.Errorf("volumes: %v %v", vs, err)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	err = db.ReadAll(ctx, func(all *store.All) error {
		for _, text := range []string{persons[0], "ANN.Planted@home.example", "qq97zz", "QQ9 7ZZ", "Planted-User-77", persons[7], "planted cottage"} {
			found, err := all.FindSites(
				ctx,
				store.Find{Text: text, Limit: 5},
			)
			if err != nil || len(found) != 1 || found[0].Site != site {
				t.Errorf("%q finds %v: %v", text, found, err)
			}
		}

		none, err := all.FindSites(
			ctx,
			store.Find{Text: "annx@home.example", Limit: 5},
		)
		if err != nil || len(none) != 0 {
			t.Errorf("a stranger's address finds %v: %v", none, err)
		}

		rs, err := all.Registrations(ctx, persons[0])
		if err != nil || len(rs) != 1 || rs[0].MPAN != persons[0] {
			t.Errorf("registrations: %v %v", rs, err)
		}

		held, err := all.Export(ctx, site.ID)
		if err != nil {
			return err
		}

		for _, text := range []string{persons[0], persons[3], persons[8], persons[9], persons[12]} {
			if !strings.Contains(fmt.Sprint(held), text) {
				t.Errorf("the person's own export lacks %q", text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// leaked returns which of the texts can be read in what a thief of the database has: its file,
// journals and copy on SQLite, every row on PostgreSQL as a dump has them.
func leaked(t *testing.T, db *store.DB, seed *storetest.Seed, url string) (found []string) {
	t.Helper()

	var all strings.Builder
	if path, embedded := strings.CutPrefix(url, "sqlite:"); embedded {
		copied := filepath.Join(t.TempDir(), "copy.db")
		if err := db.Backup(t.Context(), copied); err != nil {
			t.Fatal(err)
		}

		for _, file := range []string{path, path + "-wal", path + "-shm", copied} {
			b, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}

			all.Write(b)
		}
	} else {
		for _, table := range seed.Strings(`SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`) {
			for _, row := range seed.Strings(`SELECT CAST(t AS text) FROM ` + table + ` t`) {
				all.WriteString(row)
			}
		}
	}

	for _, text := range persons {
		if strings.Contains(all.String(), text) {
			found = append(found, text)
		}
	}

	if !strings.Contains(all.String(), "Acme") {
		t.Error("not even the organisation's name can be read: the search shows nothing")
	}

	return found
}

// What is held of a person can be read in no byte of the database, its journals and its copies,
// and is found and shown all the same; a text that is written beside it is found by the search.
func TestPersons_File(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		seed.Exec(`UPDATE org SET name = 'Acme'`)

		site := keepPersons(t, db, seed.Org)
		failMail(t, db)
		if found := leaked(t, db, seed, url); len(found) > 0 {
			t.Errorf("who has the database reads %q", found)
		}
		wantPersons(t, db, seed.Org, site)

		seed.Exec(`UPDATE site SET address = $1`, persons[3])
		if found := leaked(t, db, seed, url); !slices.Equal(found, persons[3:4]) {
			t.Errorf("a planted leak is found as %q", found)
		}
	})
}

// failMail has the mail under way fail, with what the relay said.
func failMail(t *testing.T, db *store.DB) {
	t.Helper()
	ctx := t.Context()
	err := db.WriteAll(ctx, func(all *store.All) error {
		mails, err := all.TakeMail(ctx, 5, time.Minute)
		if err != nil || len(mails) != 1 || mails[0].To.Reveal() != persons[8] || mails[0].Subject != persons[11] {
			t.Errorf("mails: %v %v", mails, err)
			return err
		}
		return all.MailAgain(
			ctx,
			mails[0],
			all.Now().Add(time.Minute),
			persons[13],
		)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSealPersons seals what a database without a key kept in plain text: everything is found as
// before, and nothing can be read; cut off, it goes on; and nothing opens the store meanwhile.
func TestSealPersons(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		open := func(o store.Options) *store.DB {
			t.Helper()
			db, err := store.Open(ctx, url, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db
		}

		plain := open(store.Options{})
		seed := storetest.NewSeed(t, plain, url)
		seed.Exec(`UPDATE org SET name = 'Acme'`)
		site := keepPersons(t, plain, seed.Org)
		wantPersons(t, plain, seed.Org, site)
		const more = 1203 // over two batches, and a part of one
		addSites(t, plain, seed.Org, more)
		if found := leaked(t, plain, seed, url); len(found) != len(persons)-2 { // not the MPAN of before, and no mail has failed
			t.Fatalf(
				"of what lies in plain text the search finds %q",
				found,
			)
		}

		// With a key it goes on in plain text, until it is sealed.
		o := store.Options{Keys: storetest.Keys(t)}
		keyed := open(o)
		wantPersons(t, keyed, seed.Org, site)
		if keyed.PersonsSealed() {
			t.Error("a database with plain texts is taken for a sealed one")
		}
		keyed.Close()
		plain.Close()

		if _, err := store.SealPersons(ctx, url, store.Options{}); flex.KindOf(err) != flex.Unavailable {
			t.Errorf("sealed without a key: %v", err)
		}

		n, err := store.SealPersons(ctx, url, o)
		if err != nil || n != more+9 {
			t.Errorf("%d rows were sealed: %v", n, err)
		}

		// As if it had been cut off before the last row.
		seed.Exec(`UPDATE person_key SET whole = FALSE`)
		seed.Exec(
			`UPDATE site SET address = $1, email = $2 WHERE id = $3`,
			persons[3],
			persons[8],
			site.ID.Bytes(),
		)
		if _, err := store.Open(ctx, url, o); flex.KindOf(err) != flex.Conflict {
			t.Errorf("a half sealed database opens: %v", err)
		}
		if n, err := store.SealPersons(ctx, url, o); n != 1 || err != nil {
			t.Errorf("the rest: %d, %v", n, err)
		}
		if n, err := store.SealPersons(ctx, url, o); n != 0 || err != nil {
			t.Errorf("a third time: %d, %v", n, err)
		}

		sealed := open(o)
		wantPersons(t, sealed, seed.Org, site)
		if found := leaked(t, sealed, seed, url); len(found) > 0 {
			t.Errorf("afterwards %q can be read", found)
		}
		if _, err := store.Open(ctx, url, store.Options{}); flex.KindOf(err) != flex.Unavailable {
			t.Errorf("it opens without the key: %v", err)
		}
	})
}

func addSites(t *testing.T, db *store.DB, org flex.OrgID, n int) {
	t.Helper()
	err := db.Write(t.Context(), org, func(tx *store.Tx) error {
		for i := range n {
			s := flex.Site{
				Address:  flex.Personal(fmt.Sprint(i, " High Street")),
				Postcode: "AB1 2CD",
			}
			if err := tx.AddSite(t.Context(), &s, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// During a rolling upgrade a process that has no keys for texts about persons, as one of the
// release before, writes beside one that has: each finds what the other wrote, and nothing is
// sealed while one of them serves.
func TestPersons_RollingUpgrade(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		open := func(o store.Options) *store.DB {
			t.Helper()
			db, err := store.Open(t.Context(), url, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db
		}

		before := open(store.Options{})
		org, err := before.AddOrg(t.Context(), "Acme")
		if err != nil {
			t.Fatal(err)
		}

		o := store.Options{Keys: storetest.Keys(t)}
		after := open(o)

		for i, pair := range [][2]*store.DB{{before, after}, {after, before}, {before, open(o)}} {
			wantFound(
				t,
				pair[0],
				pair[1],
				org.ID,
				fmt.Sprintf("10123456789%02d", i),
			)
		}

		if strings.HasPrefix(url, "postgres") {
			refuseWhileServing(t, after, url, o)
		}

		before.Close()
		after.Close()
		if _, err := store.SealPersons(t.Context(), url, o); err != nil {
			t.Fatal(err)
		}
		wantFound(t, open(o), open(o), org.ID, "1012345678999")
	})
}

// wantFound adds a site by one process, and finds it by its MPAN in the other.
func wantFound(t *testing.T, writer, reader *store.DB, org flex.OrgID, mpan string) {
	t.Helper()
	ctx := t.Context()

	site := flex.Site{MPAN: flex.Personal(mpan), Postcode: "AB1 2CD"}
	err := writer.Write(
		ctx,
		org,
		func(tx *store.Tx) error { return tx.AddSite(ctx, &site, "") },
	)
	if err != nil {
		t.Fatal(err)
	}

	err = reader.Read(ctx, org, func(tx *store.Tx) error {
		found, err := tx.SiteByMPAN(ctx, mpan)
		if err == nil && (found == nil || found.ID != site.ID) {
			t.Errorf(
				"%s is not found by the other process: %v",
				mpan,
				found,
			)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// refuseWhileServing has a process hold the lock that each flexd serve holds on PostgreSQL.
func refuseWhileServing(t *testing.T, db *store.DB, url string, o store.Options) {
	t.Helper()

	ctx, stop := context.WithCancel(t.Context())
	ended, began := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		db.Watch(ctx, func() { close(began) }, func(error) {})
	}()
	<-began

	if _, err := store.SealPersons(t.Context(), url, o); flex.KindOf(err) != flex.Conflict {
		t.Errorf("sealed while a process serves: %v", err)
	}

	stop()
	<-ended
}

// A text about a person is written sealed or not at all, and read opened or not at all: a
// column whose author forgot it answers with an error.
func TestPersonal_Plain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()

		for name, run := range map[string]func(*store.All) error{
			"written": func(all *store.All) error {
				return store.Exec(ctx, all, `UPDATE site SET email = $1`, flex.Personal("jo@home.example"))
			},
			"queued": func(all *store.All) error {
				return store.ExecLater(ctx, all, `UPDATE site SET email = $1`, flex.Personal("jo@home.example"))
			},

			"compared": func(all *store.All) error {
				return store.ReadValue(ctx, all, new(string), `SELECT email FROM site WHERE email = $1`, flex.Personal("x"))
			},
			"read": func(all *store.All) error {
				return store.ReadValue(ctx, all, new(flex.Personal), `SELECT 'jo@home.example'`)
			},
		} {
			err := db.WriteAll(ctx, run)

			if err == nil || !strings.Contains(err.Error(), "about a person") {
				t.Errorf("%s: %v", name, err)
			}
		}

		err := db.WriteAll(ctx, func(all *store.All) error {
			var kept string
			if err := store.ReadValue(ctx, all, &kept, `SELECT CAST($1 AS TEXT)`, flex.Personal("x").Reveal()); err != nil || kept != "x" {
				t.Errorf("a text that is no person's: %q, %v", kept, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
