package main

import (
	"strings"
	"testing"
	"time"
)

func TestList(t *testing.T) {
	type row struct {
		Name string     `json:"name"`
		To   *time.Time `json:"to"`
		Why  []string   `json:"why"`
	}

	to := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	rows := []row{{"Ann", nil, nil}, {"Bo", &to, []string{"late", "low"}}}
	cells := func(r row) []any { return []any{r.Name, r.To, r.Why, 1.5} }

	var out strings.Builder
	if err := list(console{out: &out}, false, rows, "NAME\tTO\tWHY\tKWH", cells); err != nil {
		t.Fatal(err)
	}
	want := "NAME  TO                    WHY        KWH\nAnn                                    1.5\nBo    2026-03-04T12:00:00Z  late; low  1.5\n"
	if out.String() != want {
		t.Errorf("a table\n%s, want\n%s", out.String(), want)
	}

	out.Reset()
	if err := list(console{out: &out}, true, rows, "NAME", cells); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"to": "2026-03-04T12:00:00Z"`) {
		t.Errorf("as JSON %s", out.String())
	}
}
