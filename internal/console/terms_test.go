package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"flexd/internal/access"
	"flexd/internal/store"
)

// TestTerms shows an organisation's terms, previews a change, and makes it for a reason, in a
// role that may pay. What was settled before is not changed.
func TestTerms(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		s.night()
		d.login()
		base := "/console/settlement/" + d.Org.String() + "/terms"
		d.wants(d.page("/console/settlement"), "/console/settlement/terms?org=")
		d.wants(d.page("/console/settlement/terms"), "user_share", "the beginning", "holds", "part of a flex event&#39;s revenue")
		for _, bad := range []url.Values{
			{"name": {"user_share"}, "value": {"2"}}, {"name": {"share"}, "value": {"0.3"}}, {"name": {"user_share"}, "value": {"0.3"}, "from": {"tomorrow"}},
			{"name": {"user_share"}, "value": {"0.3"}, "from": {"2026-01-02"}},
		} {
			if a := d.do("POST", base+"/preview", bad); a.status/100 != 4 {
				t.Errorf("%v: %d", bad, a.status)
			}
		}

		form := url.Values{"name": {"user_share"}, "value": {"0.3"}, "from": {"2026-02-01"}}
		preview := d.do("POST", base+"/preview", form)
		d.wants(preview.body, "A change of user_share", "0.3, from Sun 1 Feb 2026 on", "keeps its terms", "no month is closed")
		if strings.Contains(d.page("/console/settlement/terms"), "Sun 1 Feb 2026") {
			t.Error("the preview changed the term")
		}
		if a := d.do("POST", base, form); a.status != http.StatusBadRequest {
			t.Errorf("without a reason: %d", a.status)
		}

		form.Set("reason", "agreed with the users")
		form.Set("sure", "on")
		d.wants(d.post(base, form), "The term is changed", "0.3", "Sun 1 Feb 2026", "ada")
		d.wants(d.page("/console/audit"), "set terms", "user_share=0.3 from 2026-02-01: agreed with the users")
		d.wants(d.page("/console/settlement/terms.csv"), "user_share,0.3,2026-02-01,false")
		later := url.Values{"name": {"user_share"}, "value": {"default"}, "from": {"2026-01-30"}}
		d.wants(d.do("POST", base+"/preview", later).body, "0 (default), from Fri 30 Jan 2026 on", "0.3 from Sun 1 Feb 2026, set by ada")

		if err := d.access.SetOperatorRole(d.Context(), operator, access.OnDuty); err != nil {
			t.Fatal(err)
		}
		if a := d.do("POST", base, form); a.status != http.StatusForbidden {
			t.Errorf("by a role that may not pay: %d", a.status)
		}
	})
}

// TestOverrideName: one operator overrides a name that does not match, and another one
// approves.
func TestOverrideName(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		s.night()
		s.withdraw(plain, 40)

		err := d.db.Write(d.Context(), d.Org, func(tx *store.Tx) error {
			ws, err := tx.Withdrawals(d.Context(), "")
			if err != nil {
				return err
			}
			return tx.PutPayeeCheck(d.Context(), store.PayeeCheck{WithdrawalID: ws[0].ID, Attempt: ws[0].Attempt, SiteID: ws[0].SiteID, Verdict: "no_match", CheckedAt: tx.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}

		const other = "another long password"
		if _, err := d.access.AddOperator(d.Context(), "Bea", other, access.Finance); err != nil {
			t.Fatal(err)
		}

		d.login()
		page := d.page("/console/settlement")
		d.wants(page, "the name does not match", "Override the check of the name")
		path := "/console/settlement/" + d.Org.String() + "/withdrawals/"
		_, id, _ := strings.Cut(page, path)
		path += id[:36]
		if a := d.do("POST", path+"/approved", url.Values{"typed": {"approve"}}); a.status != http.StatusConflict {
			t.Errorf("approved without a match: %d", a.status)
		}

		for _, bad := range []url.Values{{"reason": {"fine"}, "sure": {"on"}}, {"reason": {"their maiden name, by phone"}}} {
			if a := d.do("POST", path+"/override", bad); a.status/100 != 4 {
				t.Errorf("%v: %d", bad, a.status)
			}
		}

		form := url.Values{"reason": {"their maiden name, by phone"}, "sure": {"on"}}
		page = d.post(path+"/override", form)
		d.wants(page, "another operator may approve", "ada lets another operator approve it: their maiden name, by phone")
		if strings.Contains(page, "Override the check of the name") {
			t.Error("it can be overridden twice")
		}
		if a := d.do("POST", path+"/approved", url.Values{"typed": {"approve"}}); a.status != http.StatusConflict || !strings.Contains(a.body, "another operator has to approve") {
			t.Errorf("approved by who overrode: %d", a.status)
		}
		d.wants(d.page("/console/audit"), "override the check of a name", "their maiden name")

		a := d.do("POST", "/console/login", url.Values{"name": {"Bea"}, "password": {other}})
		d.cookie, err = http.ParseSetCookie(a.header.Get("Set-Cookie"))
		if err != nil {
			t.Fatal(err)
		}
		d.wants(d.post(path+"/approved", url.Values{"typed": {"approve"}}), "The decision is taken.")
	})
}
