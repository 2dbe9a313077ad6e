package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each command's help ends with an example, and the command line accepts each example. The
// files that they name exist.
func TestExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	var cmds commands
	parser, err := newParser(t.Context(), &cmds, console{in: os.Stdin, out: os.Stdout, err: os.Stderr}, nil)
	if err != nil {
		t.Fatal(err)
	}

	leaves := parser.Model.Leaves(false)
	for _, leaf := range leaves {
		line := exampleOf(leaf.Path())
		if line == "" {
			t.Errorf("flexd %s has no example", leaf.Path())
			continue
		}

		args := words(line)
		for _, w := range args {
			if filepath.Ext(w) != "" && filepath.Base(w) == w {
				if err := os.WriteFile(w, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}

		if ctx, err := parser.Parse(args); err != nil {
			t.Errorf("flexd %s: %v", line, err)
		} else if got := ctx.Selected().Path(); got != leaf.Path() {
			t.Errorf("flexd %s is an example of %s", line, got)
		}
	}

	if n := len(strings.Split(strings.TrimSpace(examples), "\n")); n != len(leaves) {
		t.Errorf("%d examples for %d commands", n, len(leaves))
	}
}

// words splits a line as a shell does, single quotes alone.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// Each command belongs to a part of the list.
func TestGroups(t *testing.T) {
	parser, err := newParser(t.Context(), new(commands), console{}, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range parser.Model.Children {
		if c.Group == nil || c.Group.Title == "" {
			t.Errorf("flexd %s is in no group", c.Name)
		}
	}
}

// A shell completes commands by the script.
func TestCompletion_Bash(t *testing.T) {
	needs(t, "bash")
	var script strings.Builder
	if code := run(context.Background(), []string{"completion", "bash"}, console{out: &script, err: &script}); code != exitDone {
		t.Fatal(script.String())
	}

	for line, want := range map[string]string{
		"flexd ":              "serve",
		"flexd pay":           "payouts",
		"flexd payouts mo":    "modulus",
		"flexd org add A --u": "--username",
		"flexd serve --env":   "--environment",
	} {
		parts := strings.Split(line, " ")
		ask := script.String() + "\nCOMP_WORDS=(" + strings.Join(parts[:len(parts)-1], " ") + " '" + parts[len(parts)-1] + "')\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_flexd\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
		out, err := exec.Command("bash", "-c", ask).CombinedOutput()
		if err != nil || !strings.Contains("\n"+string(out), "\n"+want+"\n") {
			t.Errorf("%q: %v: %s, want %s", line, err, out, want)
		}
	}

	if code := run(context.Background(), []string{"completion", "tcsh"}, console{out: &script, err: &script}); code != exitUsage {
		t.Errorf("tcsh: %d", code)
	}
}

// Whoever stops reading stops the printing alone: what was to be set is set.
func TestOrgSet_ClosedPipe(t *testing.T) {
	db := freshDatabase(t)
	var out, wrong strings.Builder
	for _, args := range [][]string{
		{"org", "add", "Acme", "--username", "acme", "--database", db},
		{"org", "set", "Acme", "close_books_after_days=7", "--database", db},
	} {
		run(t.Context(), args, console{out: closedPipe{}, err: &wrong})
	}

	if code := run(t.Context(), []string{"org", "set", "Acme", "--json", "--database", db}, console{out: &out, err: &wrong}); code != exitDone {
		t.Fatal(wrong.String())
	}

	var rows []settingRow
	if err := json.Unmarshal([]byte(out.String()), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Name == "close_books_after_days" && r.Value != nil && *r.Value == "7" {
			return
		}
	}
	t.Errorf("it was not set: %s", out.String())
}

// closedPipe is an output that nobody reads.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
