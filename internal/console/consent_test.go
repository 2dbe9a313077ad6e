package console_test

import (
	"net/url"
	"strings"
	"testing"
)

// TestWithdrawConsent ends the consent to the use of a site's boundary meter, for a reason and
// with a typed word. The span stays in the list, and the audit log has the reason.
func TestWithdrawConsent(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		s.NoConsent()
		path := "/console/sites/" + s.sites[plain].String()
		if page := d.page(path); strings.Contains(page, "Withdraw the consent") {
			t.Error("a site without a consent has the form")
		}

		s.Consent(at("2026-01-02T10:00:00Z"))
		d.wants(d.page(path), "Withdraw the consent", "still holds")
		for _, bad := range []url.Values{{}, {"reason": {"x"}}, {"typed": {"withdraw"}}, {"reason": {"x"}, "typed": {"yes"}}} {
			if a := d.do("POST", path+"/consent/withdraw", bad); a.status != 400 {
				t.Errorf("%v: %d", bad, a.status)
			}
		}

		form := url.Values{"reason": {"the user rang"}, "typed": {"withdraw"}}
		page := d.post(path+"/consent/withdraw", form)
		d.wants(page, "The consent is withdrawn.", "No consent to use the boundary meter.")
		if strings.Contains(page, "still holds") || !strings.Contains(page, "Withdrew the consent") {
			t.Error("the consent still holds, or its end is not told")
		}
		d.wants(d.page("/console/audit"), "withdraw meter consent", "the user rang")
	})
}
