package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// What an operator of all organisations does to one of them, or views there, is in the audit
// log of that one. A selection with assets of others is recorded with this organisation's
// assets only. Views of its households' pages are recorded however their ids were written, and
// so are actions on its alerts.
func TestAudit_OfOrganisation(t *testing.T) {
	s, _, own := neighbours(t)
	s.loginAs(operator, password)
	both := url.Values{"action": {"exclude"}, "sure": {"on"}, "id": {s.assets[plain].String(), own.String()}}
	if a := s.do("POST", "/console/assets/selection", both); a.status != http.StatusOK {
		t.Fatalf("exclude two: %d %s", a.status, a.body)
	}

	site := s.idOf(s.Strings(`SELECT lower(hex(site_id)) FROM asset WHERE id = $1`, own.Bytes())[0])
	s.page("/console/sites/" + strings.ToUpper(site))
	firing := s.idOf(s.Strings(`SELECT lower(hex(id)) FROM alert WHERE title LIKE 'FEN-1%'`)[0])
	s.post("/console/alerts/"+firing+"/acknowledge", url.Values{"note": {"on it"}})

	s.loginAs(bea, beasPassword)
	audit := s.page("/console/audit.csv")
	s.wants(audit, "exclude assets", own.String(), "see site", "acknowledge alert")
	if strings.Contains(audit, s.assets[plain].String()) {
		t.Errorf("the log has an asset of another organisation: %s", audit)
	}
	s.wants(s.page("/console/audit?site="+site), "see site")
}

// An operator of several organisations lists what was done to one of them.
func TestAudit_FilteredByOrganisation(t *testing.T) {
	s, _, own := neighbours(t)
	s.loginAs(operator, password)
	both := url.Values{"action": {"exclude"}, "sure": {"on"}, "id": {s.assets[plain].String(), own.String()}}
	if a := s.do("POST", "/console/assets/selection", both); a.status != http.StatusOK {
		t.Fatalf("exclude two: %d %s", a.status, a.body)
	}

	org := s.idOf(s.Strings(`SELECT lower(hex(org_id)) FROM asset WHERE id = $1`, own.Bytes())[0])
	audit := s.page("/console/audit.csv?org=" + org)
	s.wants(audit, "exclude assets", own.String())
	if strings.Contains(audit, s.assets[plain].String()) {
		t.Errorf("the log of one organisation has an asset of another: %s", audit)
	}
	s.wants(s.page("/console/audit?org="+org), `<option value="`+org+`" selected>`)
}
