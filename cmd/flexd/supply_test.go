package main

import (
	"encoding/json"
	"strings"
	"testing"

	"flexd/internal/flex"
	records "flexd/internal/store"
)

// A power on the command line. A day of a settled, closed month is refused. A repair posts
// what it changes in the open month, and the closed one stays as it was. The list says which
// power counts, from when, and when it was recorded.
func TestSupply(t *testing.T) {
	s := newRepairStory(t)
	var rows []ratingRow
	show := func() string {
		t.Helper()
		out := s.run(0, "supply", "show", s.site.String(), "--json")
		rows = nil
		if err := json.Unmarshal([]byte(out), &rows); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	}

	if out := show(); len(rows) != 2 || rows[0].Source != "default" || *rows[0].ImportKW != 23 || rows[0].From != nil || *rows[1].PowerKW != 22 {
		t.Fatalf("at first: %s", out)
	}
	asset := rows[1].AssetID
	s.run(0, "books", "close", "seeded", s.event.String()[:7])
	closed := s.run(0, "books", "balance", "seeded", "--as-of", s.last.String())
	before := s.credits()

	from := s.event.Add(-50).String()
	for _, args := range [][]string{{"power", asset, "10"}, {"set", s.site.String(), "--import", "10"}} {
		out := s.run(exitFailed, append([]string{"supply", args[0]}, append(args[1:], "--from", from)...)...)
		s.wants(out, s.event.String()+" was settled already at this site")
	}

	s.wants(s.run(exitUsage, "supply", "set", s.site.String(), "--import", "10", "--repair", "why"), "a repair needs the day")
	s.wants(s.run(exitUsage, "supply", "set", s.site.String(), "--import", "10", "--from", "2999-01-01"), "the day lies ahead")
	s.wants(s.run(exitUsage, "supply", "set", s.site.String(), "--from", from), "give --import or --export")
	s.wants(s.run(exitUsage, "supply", "set", s.site.String(), "--import", "0.5"), "1 to 10000 kW")
	s.wants(s.run(exitUsage, "supply", "set", s.site.String(), "--import", "10", "--fuse", "60"), "not both")
	s.wants(s.run(exitUsage, "supply", "set", s.site.String(), "--fuse", "60", "--phases", "2"), "1 or 3 phases")
	s.wants(s.run(exitUsage, "supply", "set", s.site.String(), "--phases", "3"), "give --fuse too")
	s.wants(s.run(exitUsage, "supply", "set", s.site.String(), "--import", "10", "--phases", "3"), "give --fuse too")
	s.wants(s.run(exitUsage, "supply", "power", asset, "0"), "is not a power in kW")

	s.run(0, "supply", "power", asset, "10", "--from", from, "--repair", "the plate says 10 kW")
	s.run(0, "settle", "again", "--org", "seeded", "--from", s.event.String(), "--to", s.event.String(), "--post")
	if got := s.credits(); !strings.HasPrefix(got, before+", correction -40 on ") || strings.Contains(strings.TrimPrefix(got, before), " on "+s.event.String()) {
		t.Errorf("the books say %s, and said %s", got, before)
	}
	if now := s.run(0, "books", "balance", "seeded", "--as-of", s.last.String()); now != closed {
		t.Errorf("the closed month was\n%s\nand is\n%s", closed, now)
	}
	s.wants(s.run(0, "verify"), "laws hold")

	if out := show(); len(rows) != 3 || *rows[1].PowerKW != 22 || rows[1].Until == nil || *rows[2].PowerKW != 10 || !rows[2].Counts {
		t.Errorf("in the end: %s", out)
	}
	s.wants(s.run(0, "supply", "set", s.site.String(), "--fuse", "80", "--export", "3.68", "--from", s.event.Add(1).String()), "18.4 kW import, 3.68 kW export (80 A, 1-phase)")
	s.wants(s.run(0, "supply", "show", s.site.String()), "22 kW")
	if show(); len(rows) != 4 || rows[0].Source != "default" || rows[0].From != nil || rows[0].Until == nil || rows[1].From == nil {
		t.Errorf("the default, which counted before, is not shown: %+v", rows)
	}
	s.wants(s.run(0, "audit", "list", "--json"), "the plate says 10 kW")
}

// The phases of an asset on the command line. They stay as they were set when only the power
// is set, and they decide the least power. 0 removes them, after which the power decides. The
// audit log has each change.
func TestSupply_Phases(t *testing.T) {
	s := newRepairStory(t)
	h, err := (&store{Database: s.url, Environment: "sandbox"}).openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })

	asset := s.seed.Asset(s.site, flex.Charger, 7400)
	for _, c := range []struct {
		args        string
		kept, least int
		said        string
	}{
		{"7.4", 0, 1, "7.4 kW, from now on"},
		{"11", 0, 3, "11 kW, from now on"},
		{"11 --phases 1", 1, 1, "11 kW on 1-phase, from now on"},
		{"7.4 --phases 3", 3, 3, "7.4 kW on 3-phase, from now on"},
		{"7.2", 3, 3, "7.2 kW, from now on"},
		{"7.4 --phases 0", 0, 1, "7.4 kW, phases by its power, from now on"},
	} {
		s.run(0, append([]string{"supply", "power", asset.String()}, strings.Fields(c.args)...)...)

		err := h.DB.Read(t.Context(), s.seed.Org, func(tx *records.Tx) error {
			a, err := tx.Asset(t.Context(), asset)
			if least := flex.PhasesOf(a.Phases, a.Power); a.Phases != c.kept || least != c.least {
				t.Errorf("%s: %d phases are kept and %d planned on, want %d and %d", c.args, a.Phases, least, c.kept, c.least)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		s.wants(s.run(0, "audit", "list", "--json"), c.said)
	}

	for _, wrong := range []string{"2", "-1", "4"} {
		s.wants(s.run(exitUsage, "supply", "power", asset.String(), "7.4", "--phases="+wrong), "an asset on "+wrong+" phases: give 1 or 3")
	}
}

// The phase of an asset on the command line. It stays as it was set when only the power is
// set, and unknown removes it.
func TestSupply_Phase(t *testing.T) {
	s := newRepairStory(t)
	h, err := (&store{Database: s.url, Environment: "sandbox"}).openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })

	asset := s.seed.Asset(s.site, flex.Charger, 7400)
	for _, c := range []struct {
		args string
		kept int
		said string
	}{
		{"7.4 --phase L2", 2, "7.4 kW, phase L2, from now on"},
		{"7.2", 2, "7.2 kW, from now on"},
		{"7.4 --phases 1 --phase L3", 3, "7.4 kW on 1-phase, phase L3, from now on"},
		{"7.4 --phase unknown", 0, "7.4 kW, phase unknown, from now on"},
	} {
		s.run(0, append([]string{"supply", "power", asset.String()}, strings.Fields(c.args)...)...)

		err := h.DB.Read(t.Context(), s.seed.Org, func(tx *records.Tx) error {
			a, err := tx.Asset(t.Context(), asset)
			if a.Phase != c.kept {
				t.Errorf("%s: phase %d is kept, want %d", c.args, a.Phase, c.kept)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		s.wants(s.run(0, "audit", "list", "--json"), c.said)
	}

	s.wants(s.run(exitUsage, "supply", "power", asset.String(), "7.4", "--phase=L4"), `an asset on phase "L4": give L1, L2 or L3`)
}
