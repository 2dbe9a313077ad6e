package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A database is made by migrate alone when it is told to, and once it is up to date nothing is
// done to it.
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
