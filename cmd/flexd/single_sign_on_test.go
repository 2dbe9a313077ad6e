package main

import (
	"strings"
	"testing"

	"flexd/internal/access"
)

// Settings with which nobody could sign in, or that would ask a provider without TLS, are
// refused with what would be right.
func TestSingleSignOn_Flags(t *testing.T) {
	right := singleSignOn{Issuer: "https://login.example.com", ClientID: "flexd", Role: map[string]string{"leads": "admin", "fen": "viewer@Acme Energy,Fen"}}
	const base = "https://flexd.example.com/"

	for want, change := range map[string]func(*singleSignOn){
		"over https":         func(s *singleSignOn) { s.Issuer = "http://login.example.com" },
		"no URL":             func(s *singleSignOn) { s.Issuer = "login" },
		"neither ? nor #":    func(s *singleSignOn) { s.Issuer += "?realm=staff" },
		"--sso-client-id":    func(s *singleSignOn) { s.ClientID = "" },
		"at least one group": func(s *singleSignOn) { s.Role = nil },
		"no role":            func(s *singleSignOn) { s.Role = map[string]string{"leads": "root"} },
		"without a name":     func(s *singleSignOn) { s.Role = map[string]string{"leads": "admin@Acme,"} },
		"--sso-issuer":       func(s *singleSignOn) { s.Issuer = "" },
	} {
		s := right

		change(&s)
		if _, err := s.read(base, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}

	sso, err := right.read(base, nil)
	if err != nil || sso.Grants["leads"].Role != access.Admin || len(sso.Grants["fen"].Orgs) != 2 {
		t.Errorf("%v, %v", sso, err)
	}

	if _, err := right.read("", nil); err == nil {
		t.Error("browsers could not come back, and it is taken")
	}
}
