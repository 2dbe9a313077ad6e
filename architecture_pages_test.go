package flexd_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestJobsPage compares the page's table of background jobs with those that the program has.
func TestJobsPage(t *testing.T) {
	code, err := os.ReadFile("internal/app/jobs.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range regexp.MustCompile(`a\.add\("([^"]+)"`).FindAllStringSubmatch(string(code), -1) {
		want = append(want, m[1])
	}

	var got []string
	for _, row := range tableOf(t, "## Background jobs") {
		got = append(got, strings.Split(row[0], ", ")...)
	}

	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("ARCHITECTURE.md lists the jobs\n%q, and internal/app adds\n%q", got, want)
	}
}

// onlyPostgres are tables that SQLite has no need of.
var onlyPostgres = []string{"reading_rest"}

// TestTablesPage compares the page's list of tables with those of a fresh database.
func TestTablesPage(t *testing.T) {
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, store.Options{})
	want := storetest.NewSeed(t, db, url).Strings(`SELECT name FROM sqlite_master WHERE type = 'table'
		AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'goose%' ORDER BY name`)

	var got []string
	for _, row := range tableOf(t, "## Tables") {
		got = append(got, strings.Split(row[0], ", ")...)
	}

	got = slices.DeleteFunc(got, func(name string) bool { return slices.Contains(onlyPostgres, name) })
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("ARCHITECTURE.md lists the tables\n%q, and the database has\n%q", got, want)
	}
}

// tableOf returns the rows of the first table below a heading of ARCHITECTURE.md.
func tableOf(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("no section %q", heading)
	}

	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") {
			continue
		}
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}

	if len(rows) < 2 {
		t.Fatalf("no table below %q", heading)
	}
	return rows[1:]
}
