package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/flex"
)

func TestReadPosition(t *testing.T) {
	read := func(text string) ([]flex.Traded, error) {
		file := filepath.Join(t.TempDir(), "position.csv")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readPosition(file)
	}

	const head = "start,kwh,buy_gbp_per_mwh,sell_gbp_per_mwh\n"
	got, err := read(head + "2026-01-15T18:30:00Z,120.5,95,60\n2026-01-15T19:00:00+00:00,0,-5,-6\n")
	if err != nil || len(got) != 2 || got[0].Energy != 120_500 || got[0].Buy != flex.FromGBPPerMWh(95) || got[1].Sell != flex.FromGBPPerMWh(-6) ||
		got[1].Period.Sub(got[0].Period) != 1 {
		t.Errorf("%+v, %v", got, err)
	}

	for text, want := range map[string]string{
		"start,kwh,buy_gbp_per_mwh\n":         "no column sell_gbp_per_mwh",
		head:                                  "has no half-hour",
		head + "2026-01-15T18:40:00Z,1,1,1":   "line 2: start is",
		head + "yesterday,1,1,1":              "line 2: start is",
		head + "2026-01-15T18:30:00Z,,1,1":    `line 2: kwh is ""`,
		head + "2026-01-15T18:30:00Z,1,NaN,1": "buy_gbp_per_mwh is",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestCapsSet changes one cap and leaves the others.
func TestCapsSet(t *testing.T) {
	site := flex.SiteID{1}
	c := flex.Caps{Fleet: flex.Cap{Power: new(flex.Watts(9000)), StartsPerMinute: 2}}
	(&capsSet{Group: "feeder", Power: new(4.5), Site: []flex.SiteID{site}}).change(&c, nil)
	(&capsSet{Group: "feeder", Starts: new(1)}).change(&c, nil)
	(&capsSet{Power: new(-1.0)}).change(&c, nil)
	if c.Fleet.Power != nil || c.Fleet.StartsPerMinute != 2 || len(c.Groups) != 1 {
		t.Fatalf("%+v", c)
	}
	if g := c.Groups[0]; g.Name != "feeder" || *g.Power != 4500 || g.StartsPerMinute != 1 || len(g.Sites) != 1 || g.Sites[0] != site {
		t.Errorf("%+v", g)
	}
}

// TestCapsClear says what was removed, and that there was nothing.
func TestCapsClear(t *testing.T) {
	s := newRepairStory(t)
	s.run(0, "caps", "set", "--org", "seeded", "--kw", "50")
	s.run(
		0,
		"caps",
		"set",
		"--org",
		"seeded",
		"--group",
		"feeder",
		"--kw",
		"5",
		"--site",
		s.site.String(),
	)
	s.wants(s.run(exitFailed, "caps", "clear", "--org", "seeded", "--group", "nosuch"), `no group is named "nosuch"`)
	s.wants(s.run(0, "caps", "clear", "--org", "seeded", "--group", "feeder"), "The caps of group feeder are removed.")
	s.wants(s.run(0, "caps", "clear", "--org", "seeded"), "All caps are removed.")
	s.wants(s.run(0, "caps", "clear", "--org", "seeded"), "No caps are set.")
}

// TestCaps_Parents puts a feeder into a substation and removes it again, shows both, previews
// a change without making it, and refuses impossible groups.
func TestCaps_Parents(t *testing.T) {
	s := store{Database: "sqlite:" + filepath.Join(t.TempDir(), "flexd.db"), Environment: "sandbox"}
	run, out := commandRunner(t)
	run((&orgAdd{cellFlags: cellFlags{store: s}, Name: "Acme", Username: "acme"}).Run, "acme")
	of := ofOrg{store: s, Org: "Acme"}
	show := (&capsShow{ofOrg: of}).Run
	json := (&capsShow{ofOrg: of, JSON: true}).Run
	set := func(group, parent string, preview bool) func(context.Context, console) error {
		return (&capsSet{ofOrg: of, Group: group, Parent: &parent, Preview: preview}).Run
	}

	run(set("feeder 7", "substation 2", false), `lies in group "substation 2", which is not among the groups`)
	run((&capsSet{ofOrg: of, Group: "substation 2", Power: new(900.0)}).Run, "group substation 2 has no site")
	run(set("feeder 7", "substation 2", true), "feeder 7")
	run((&capsSet{ofOrg: of}).Run, "nothing to set: give --kw, --starts-per-minute, --group or --position")
	run((&capsSet{ofOrg: of, Group: "substation 2"}).Run, `nothing to set: the group "substation 2" exists`)
	run((&capsSet{ofOrg: of, Group: "substation 3"}).Run, "group substation 3 has no site")
	run((&capsSet{ofOrg: of, Group: "feeder 7", Site: []flex.SiteID{{7}}, Preview: true}).Run, "site not found")
	run(show, "substation 2")
	run(show, "substation 3")
	if strings.Contains(out.String(), "feeder 7") {
		t.Errorf("a preview sets a group:\n%s", out.String())
	}

	run(set("feeder 7", "substation 2", false), "has no site")
	run(show, "feeder 7      substation 2  -")
	run(json, `"parent": "substation 2"`)
	run(set("substation 2", "feeder 7", true), "a group cannot lie in itself")
	run(set("", "substation 2", false), "give --group too")
	clear := func(group string) func(context.Context, console) error {
		return func(ctx context.Context, c console) error { return (&capsClear{ofOrg: of, Group: group}).Run(ctx, c) }
	}
	run(clear("substation 2"), `while "feeder 7" lies in it`)
	run(set("feeder 7", "", false), "has no site")
	run(clear("substation 2"), "")
	run(show, "feeder 7      -   -")
}
