package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// migrate creates a database only when asked to, and changes nothing in one that is up to
// date.
func TestMigrate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flexd.db")
	run := commandLineOf(t, "sqlite:"+file)

	for _, step := range []struct {
		line string
		code int
		want string
	}{
		{"migrate --dry-run", exitFailed, "there is no database at " + file},
		{"org list", exitFailed, "there is no database at " + file},
		{"migrate", exitDone, "brought the schema from version 0 to "},
		{"migrate", exitDone, "nothing to do: the schema has version "},
		{"migrate --dry-run --json", exitDone, `"migrations": []`},
		{"org list", exitDone, "NAME"},
	} {
		code, output := run(step.line)
		if code != step.code || !strings.Contains(output, step.want) {
			t.Errorf("flexd %s: %d, %s; want %d and %q", step.line, code, output, step.code, step.want)
		}
	}
}
