package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestLimits imports limits of a feeder, with a link that is lost when nothing is heard.
func TestLimits(t *testing.T) {
	s := store{Database: "sqlite:" + filepath.Join(t.TempDir(), "flexd.db"), Environment: "sandbox"}
	run, _ := commandRunner(t)
	run((&orgAdd{cellFlags: cellFlags{store: s}, Name: "Acme", Username: "acme"}).Run, "acme")
	of := ofOrg{store: s, Org: "Acme"}
	file := filepath.Join(t.TempDir(), "limits.csv")
	write := func(rows string) *limitsImport {
		t.Helper()
		if err := os.WriteFile(file, []byte("group,start_timestamp,end_timestamp,limit_kw\n"+rows), 0o600); err != nil {
			t.Fatal(err)
		}
		return &limitsImport{ofOrg: of, File: file}
	}

	const evening = "feeder 7,2100-01-15T18:00:00Z,2100-01-15T20:00:00Z,"
	run(write(evening+"20\n").Run, "no group is named")
	run((&capsSet{ofOrg: of, Group: "feeder 7", Power: new(50.0)}).Run, "group feeder 7 has no site")
	run((&capsSet{ofOrg: of, Power: new(50.0)}).Run, "planned")
	for rows, want := range map[string]string{
		evening + "NaN\n": "limit_kw", evening + "-1\n": "0 to", "feeder 7,yesterday,2100-01-15T20:00:00Z,1\n": "start_timestamp", "": "0 limits",
		"feeder 7,2100-01-15T20:00:00Z,2100-01-15T18:00:00Z,1\n": "ends before",
	} {
		run(write(rows).Run, want)
	}

	run(write(evening+"20\n").Run, "1 limits bind")
	run((&limitsList{ofOrg: of, JSON: true}).Run, `"limit_kw": 20`)
	run(write(evening+"20\n"+strings.ReplaceAll(evening, "2100-", "2001-")+"20\n").Run, "1 limits bind, and 1 are over already")
	run(write(evening+"25\n").Run, "1 limits bind")
	run((&limitsList{ofOrg: of}).Run, "25")
	link := &limitsLink{ofOrg: of, Group: "feeder 7", FallbackKW: new(10.0), After: time.Second}
	if err := link.Run(t.Context()); flex.KindOf(err) != flex.Malformed {
		t.Errorf("a silence of a second: %v", err)
	}

	link.After = time.Minute
	for _, do := range []func() error{
		func() error { return link.Run(t.Context()) },
		func() error { return (&limitsHeartbeat{ofOrg: of, Group: "feeder 7"}).Run(t.Context()) },
	} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
	run((&limitsList{ofOrg: of}).Run, "fallback")

	given := &limitsImport{ofOrg: of, File: file}
	data := "group,start_timestamp,end_timestamp,limit_kw,direction\n" + evening + "3,export\n" + evening + "25,\n"
	if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	run(given.Run, "2 limits bind")
	run((&limitsList{ofOrg: of, JSON: true}).Run, `"direction": "export"`)
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(data, "export", "up")), 0o600); err != nil {
		t.Fatal(err)
	}

	run(given.Run, "import or export")
	both := &limitsLink{ofOrg: of, Group: "feeder 7", ExportKW: new(2.0), After: time.Minute}
	if err := both.Run(t.Context()); err != nil {
		t.Error(err)
	}
	run((&limitsList{ofOrg: of}).Run, "export")
	if err := (&limitsUnlink{ofOrg: of, Group: "feeder 7"}).Run(t.Context()); err != nil {
		t.Error(err)
	}
	if err := (&limitsUnlink{ofOrg: of, Group: "feeder 7"}).Run(t.Context()); flex.KindOf(err) != flex.NotFound {
		t.Errorf("unlinked twice: %v", err)
	}
}
