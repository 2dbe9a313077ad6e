package main

import (
	"testing"

	"flexd/internal/access"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// TestAlerts_AuditOrg: an organisation's operators read in the audit log that its alerts were
// changed, and nothing about those of others.
func TestAlerts_AuditOrg(t *testing.T) {
	database := freshDatabase(t)
	run := commandLineOf(t, database)
	for _, line := range []string{
		"org add Acme --username me",
		"alerts rule refused --org Acme --off",
		"alerts rule waiting --off",
		"alerts route add mail --kind email --to a@example.com --org Acme",
	} {
		if code, said := run(line); code != exitDone {
			t.Fatalf("flexd %s: %d %s", line, code, said)
		}
	}

	h, err := store{Database: database, Environment: "production"}.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()

	org, err := namedOrg(t.Context(), h, "Acme")
	if err != nil {
		t.Fatal(err)
	}

	own := records.Within(t.Context(), []flex.OrgID{org.ID})
	for _, act := range []string{"set alert rule", "add alert route"} {
		v, err := h.Access.Audit(own, access.AuditFilter{Act: act, Limit: 10})
		if err != nil || len(v.Acts) != 1 {
			t.Errorf("%s: %+v %v", act, v.Acts, err)
		}
	}
}
