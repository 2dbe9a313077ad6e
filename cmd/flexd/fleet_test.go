package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFleetEnvelope prints an envelope in its three forms.
func TestFleetEnvelope(t *testing.T) {
	flexd := commandLineOf(t, "sqlite:"+filepath.Join(t.TempDir(), "flexd.db"))
	if code, out := flexd("org add acme --username acme"); code != exitDone {
		t.Fatal(out)
	}

	for line, want := range map[string]string{
		"fleet envelope":                         "0 assets; 0 more without a schedule",
		"fleet envelope --format csv":            "start_timestamp,end_timestamp,planned_kwh,least_kwh,most_kwh",
		"fleet envelope --json --gsp-group _C":   `"gsp_group": "_C"`,
		"fleet envelope --org acme --windows":    "LEAST KW",
		"fleet envelope --windows --format json": `"windows": [`,
	} {
		if code, out := flexd(line); code != exitDone || !strings.Contains(out, want) {
			t.Errorf("%s: %d %.400s", line, code, out)
		}
	}

	if code, out := flexd("fleet envelope --group feeder"); code != exitFailed || !strings.Contains(out, `no group is named "feeder"`) {
		t.Errorf("%d %s", code, out)
	}
}
