package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestOrgSet_Rates sets the rates of fixed tariffs, refuses impossible ones, and removes one.
func TestOrgSet_Rates(t *testing.T) {
	db := freshDatabase(t)
	var out, wrong strings.Builder
	flexd := func(args ...string) int {
		out.Reset()
		return run(t.Context(), append(args, "--database", db), console{out: &out, err: &wrong})
	}

	flexd("org", "add", "Acme", "--username", "acme")

	for _, value := range []string{"-1", "1000.1", "NaN", "x"} {
		if flexd("org", "set", "Acme", "export_p_per_kwh="+value) == exitDone {
			t.Errorf("%s is taken", value)
		}
	}

	if flexd("org", "set", "Acme", "export_p_per_kwh=1000", "import_p_per_kwh=31.5") != exitDone || !strings.Contains(out.String(), "31.5") {
		t.Error(out.String(), wrong.String())
	}

	if flexd("org", "set", "Acme", "off_peak_p_per_kwh=0") != exitDone || !regexp.MustCompile(`off_peak_p_per_kwh +0 `).MatchString(out.String()) {
		t.Error(out.String(), wrong.String())
	}

	if flexd("org", "set", "Acme", "import_p_per_kwh=default") != exitDone || strings.Contains(out.String(), "31.5") || !strings.Contains(out.String(), "1000") {
		t.Error(out.String(), wrong.String())
	}
}
