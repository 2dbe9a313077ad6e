package console_test

import (
	"strings"
	"testing"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// acts returns the acts on a site in the audit log, the newest first, as "who act".
func (d *service) acts(site flex.SiteID) (acts []string) {
	d.Helper()
	err := d.db.ReadAll(d.Context(), func(all *store.All) error {
		found, err := all.Acts(d.Context(), store.ActFilter{Subject: site.String(), Limit: 50})
		for _, a := range found {
			acts = append(acts, a.Who+" "+a.Act)
		}
		return err
	})
	if err != nil {
		d.Fatal(err)
	}

	return acts
}

// The audit log has who viewed a household, once in a while for each page. A list of search
// results is one entry, without the search text. After an erasure the log still says that
// somebody looked, but has no data about the person.
func TestViewed(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		const address, email = "1 Planted Lane", "ann.planted@home.example"
		var sites [2]flex.Site
		err := d.db.Write(t.Context(), d.Org, func(tx *store.Tx) error {
			for i := range sites {
				sites[i] = flex.Site{Address: address, Email: email, Postcode: "AB1 2CD"}
				if err := tx.AddSite(t.Context(), &sites[i], ""); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		site := sites[0].ID
		if _, err := d.access.AddOperator(t.Context(), "bob", password, access.Viewer); err != nil {
			t.Fatal(err)
		}

		d.login()
		path := "/console/sites/" + site.String()
		for range 3 {
			d.page(path)
		}
		d.page(path + "/statement.csv")
		d.loginAs("bob", password)
		d.page(path)
		d.get("/console/sites/nonsense")
		d.wait(access.ViewedAgain)
		d.page(path)

		want := "bob see site, bob see site, ada see statement, ada see site"
		if got := strings.Join(d.acts(site), ", "); got != want {
			t.Errorf("who saw the site: %s, want %s", got, want)
		}
		if got := d.acts(sites[1].ID); len(got) > 0 {
			t.Errorf("at a site that nobody opened: %v", got)
		}

		d.page("/console/search?q=" + email)
		d.page("/console/search?q=nobody@home.example")
		found := d.page("/console/audit.csv?act=see+what+a+search+finds")
		if n := strings.Count(found, "see what a search finds"); n != 1 || !strings.Contains(found, "sites, 0") {
			t.Errorf("%d entries of searches: %s", n, found)
		}
		d.wants(d.page("/console/audit?site="+site.String()), "see statement", site.String())

		// a list of several is an entry at each of them
		for _, shown := range sites {
			if got := d.acts(shown.ID); len(got) == 0 || got[0] != "bob see what a search finds" {
				t.Errorf("at a site of the list: %v", got)
			}
		}

		// what a search finds alone is opened at once: both are written down
		d.get("/console/search?q=" + site.String())
		if got := d.acts(site); len(got) != 6 || got[0] != "bob see what a search finds" {
			t.Errorf("after a search that found the site alone: %v", got)
		}

		a := d.get("/console/audit?site=banana")
		if a.status/100 != 4 || !strings.Contains(a.body, "is not the id of a site: search for it first") {
			t.Errorf("acts on no site: %d %s", a.status, a.body)
		}

		if _, _, err := d.server.Registry.Offboard(t.Context(), d.Org, site); err != nil {
			t.Fatal(err)
		}
		err = d.db.WriteAll(t.Context(), func(all *store.All) error {
			_, err := all.Erase(t.Context(), site)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		if got := d.acts(site); len(got) != 6 {
			t.Errorf("after the erasure %v is left", got)
		}
		log := d.page("/console/audit.csv")
		for _, text := range []string{address, email, "AB1 2CD"} {
			if strings.Contains(log, text) {
				t.Errorf("the audit log has %q", text)
			}
		}
	})
}

// What cannot be written down is not shown.
func TestViewed_NothingUnwritten(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		site := d.Site()
		d.Exec(`ALTER TABLE audit_head RENAME TO elsewhere`)
		a := d.get("/console/sites/" + site.String())
		d.Exec(`ALTER TABLE elsewhere RENAME TO audit_head`)
		if a.status != 500 || strings.Contains(a.body, "Consents and enrolments") {
			t.Errorf("a page that the audit log does not have: %d", a.status)
		}
		d.wants(d.page("/console/sites/"+site.String()), "Consents and enrolments")
	})
}
