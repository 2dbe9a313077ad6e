package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A username belongs to one organisation in all cells. A second one is refused if the cells
// are named. The doctor lists those that were made without naming the cells.
func TestCell_Usernames(t *testing.T) {
	home, north := freshDatabase(t), freshDatabase(t)
	flexd := commandLineOf(t, home)
	cells, back := " --cell north="+north, " --cell south="+home+" --database "+north
	for _, step := range []struct {
		line string
		code int
		want string
	}{
		{"org add Acme --username acme", exitDone, "acme"},
		{"org add Boreas --username acme" + back, exitFailed, "in another cell"},
		{"org add Boreas --username boreas" + back, exitDone, "boreas"},
		{"credential add Acme boreas --role entity_read" + cells, exitFailed, "in another cell"},
		{"openadr client add Acme boreas --role VEN" + cells, exitFailed, "in another cell"},
		{"credential add Acme reader --role entity_read" + cells, exitDone, "reader"},
		{"doctor" + cells, exitFailed, "3 usernames, each in one cell"},
		{"credential add Acme boreas --role entity_read", exitDone, "boreas"},
		{"doctor" + cells, exitFailed, "1 usernames are in two cells: boreas"},
	} {
		if code, out := flexd(step.line); code != step.code || !strings.Contains(out, step.want) {
			t.Errorf("%s: %d %s", step.line, code, out)
		}
	}
}

// An organisation moves to another database and back by the command line. Its credential moves
// too, and the move is in the audit log.
func TestCell_Move(t *testing.T) {
	home, north := freshDatabase(t), freshDatabase(t)
	flexd := commandLineOf(t, home)
	there := func(line string) (int, string) { return flexd(line + " --database " + north) }
	if code, out := there("org add Other --username other"); code != exitDone {
		t.Fatal(out)
	}
	if code, out := flexd("org add Acme --username acme"); code != exitDone {
		t.Fatal(out)
	}

	cells := " --cell north=" + north
	for _, step := range []struct {
		line string
		code int
		want string
	}{
		{"cell list" + cells, exitDone, "home   Acme"},
		{"cell move Acme --to south" + cells, exitFailed, "no cell is named"},
		{"cell move Nobody --to north" + cells, exitFailed, "no cell has an organisation"},
		{"cell move Acme --to north --cell home=" + north, exitUsage, "choose another name"},
		{"cell move Acme --to north --cell north=" + home, exitUsage, "one database"},
		{"cell move Acme --to north" + cells, exitDone, "Acme lives in the cell north"},
		{"cell list --json" + cells, exitDone, `"cell": "north",`},
		{"credential list Acme", exitFailed, "no organisation"},
		{"cell move Acme --to north" + cells, exitDone, "Acme lives in the cell north"},
		{"audit list", exitDone, "move organisation"},
		{"verify", exitDone, "laws hold"},
	} {
		if code, out := flexd(step.line); code != step.code || !strings.Contains(out, step.want) {
			t.Errorf("%s: %d %s", step.line, code, out)
		}
	}

	if code, out := there("credential list Acme"); code != exitDone || !strings.Contains(out, "acme") {
		t.Errorf("the credential did not come: %s", out)
	}
	if code, out := flexd("cell move Acme --to home --json" + cells); code != exitDone || !strings.Contains(out, `"cell": "home"`) {
		t.Errorf("back: %d %s", code, out)
	}
	if code, out := there("org list"); code != exitDone || strings.Contains(out, "Acme") {
		t.Errorf("it is still in the north: %s", out)
	}
}

// TestCell_Reseal: secrets are sealed again in every named cell, because the older keys are
// removed for all of them. A halt says in which cells pushes continue.
func TestCell_Reseal(t *testing.T) {
	home, north := freshDatabase(t), freshDatabase(t)
	flexd := commandLineOf(t, home)
	cells, there := " --cell north="+north, " --database "+north
	for _, step := range []struct {
		line string
		code int
		want string
	}{
		{"org add Acme --username acme", exitDone, "acme"},
		{"org add Boreas --username boreas" + there, exitDone, "boreas"},
		{"key rotate " + strings.TrimPrefix(home, "sqlite:") + ".key", exitDone, "reseal"},
		{"key rotate " + strings.TrimPrefix(north, "sqlite:") + ".key", exitDone, "reseal"},
		{"key reseal" + cells, exitDone, "sealed again in 2 databases"},
		{"doctor" + there, exitFailed, "all under the newest key"},
		{"audit list" + there, exitDone, "reseal secrets"},
		{"halt trouble --preview" + cells, exitDone, "It would stop"},
		{"halt trouble" + cells, exitDone, "pushes go on in the cells north"},
		{"halt trouble" + there + cells, exitDone, "pushes go on in the cells home"},
	} {
		if code, out := flexd(step.line); code != step.code || !strings.Contains(out, step.want) {
			t.Errorf("%s: %d %s", step.line, code, out)
		}
	}
}

// An organisation is in two cells, because one of them was restored from a copy from before
// its move. The doctor names it, and it is not moved.
func TestCell_Restored(t *testing.T) {
	home := freshDatabase(t)
	flexd := commandLineOf(t, home)
	if code, out := flexd("org add Acme --username acme"); code != exitDone {
		t.Fatal(out)
	}

	copied := filepath.Join(t.TempDir(), "north.db")
	cells := " --cell north=sqlite:" + copied
	t.Setenv("FLEXD_KEY_FILE", strings.TrimPrefix(home, "sqlite:")+".key")
	for _, step := range []struct {
		line string
		code int
		want string
	}{
		{"backup " + copied, exitDone, "consistent copy"},
		{"doctor" + cells, exitFailed, "1 organisation in several cells"},
		{"cell move Acme --to north" + cells, exitFailed, "(home, north)"},
		{"cell move Acme --to home" + cells, exitFailed, "(home, north)"},
	} {
		if code, out := flexd(step.line); code != step.code || !strings.Contains(out, step.want) {
			t.Errorf("%s: %d %s", step.line, code, out)
		}
	}
}
