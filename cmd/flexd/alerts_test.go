package main

import (
	"strings"
	"testing"
)

// TestAlerts sets rules and routes by the command line, and reads them again.
func TestAlerts(t *testing.T) {
	run := commandLineOf(t, freshDatabase(t))
	const id = "019bb3a2-0000-7000-8000-000000000000"
	for _, step := range []struct {
		line string
		code int
		said string
	}{
		{"org add Acme --username me", exitDone, ""},
		{"alerts list --json", exitDone, "[]"},
		{"alerts rules", exitDone, "short_of_headroom true 1 15m0s true"},
		{"alerts rule short_of_time --threshold 50 --for 15m", exitDone, "holds from the next look"},
		{"alerts rule refused --org Acme --off", exitDone, "holds"},
		{"alerts rule pigeons", exitUsage, "no kind of exception"},
		{"alerts rule refused --org Nobody", exitFailed, "flexd org list prints them"},
		{"alerts rules --json", exitDone, `"threshold": 50`},
		{"alerts rule short_of_time --for 20m", exitDone, "holds"},
		{"alerts rules", exitDone, "short_of_time true 50 20m0s false"},
		{"alerts rules", exitDone, "refused Acme false 1 5m0s false"},
		{"alerts rule short_of_time --org Acme --threshold 7", exitDone, "holds"},
		{"alerts rules --json", exitDone, `"threshold": 7,
    "for": "20m0s"`},
		{"alerts route add night --kind webhook --to https://example.com/alerts --heartbeat 5m", exitDone, "secret  whsec_"},
		{"alerts route add night --kind email --to a@example.com", exitFailed, "there is a route"},
		{"alerts route add pager --kind pagerduty", exitUsage, "integration key"},
		{"alerts route add plain --kind webhook --to http://10.0.0.1/", exitUsage, "--allow-private-endpoints"},
		{"alerts route add plain --kind alertmanager --to http://10.0.0.1/api/v2/alerts --allow-private-endpoints=10.0.0.0/8 --org Acme", exitDone, "go there"},
		{"alerts route list", exitDone, "https://example.com/alerts"},
		{"alerts route list --json", exitDone, `"heartbeat": "5m0s"`},
		{"alerts route list --json", exitDone, `"organisation": "Acme"`},
		{"alerts route list", exitDone, "critical  Acme"},
		{"alerts route test night", exitDone, "sends the test"},
		{"alerts route sent night", exitDone, "night  test"},
		{"alerts route sent --json", exitDone, `"what": "test"`},
		{"alerts route sent day", exitFailed, "there is no route"},
		{"alerts route add mail --kind email --to a@example.com", exitDone, "must have --mail-relay"},
		{"alerts route remove plain", exitDone, "Nothing is sent"},
		{"alerts route remove plain", exitFailed, "there is no route"},
		{"alerts acknowledge " + id, exitFailed, "no such alert is firing"},
		{"alerts snooze " + id + " --for 1s --note x", exitUsage, "a minute to 30 days"},
		{"alerts snooze x --for 1h --note x", exitUsage, ""},
	} {
		code, said := run(step.line)
		if code != step.code || !strings.Contains(oneSpace(said), oneSpace(step.said)) {
			t.Errorf("flexd %s: %d %s, want %d %s", step.line, code, said, step.code, step.said)
		}

		if strings.Contains(step.line, "list") && strings.Contains(said, "whsec_") {
			t.Errorf("flexd %s prints a secret", step.line)
		}
	}
}

// oneSpace replaces each run of spaces by one space: columns are as wide as their widest cell.
func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }
