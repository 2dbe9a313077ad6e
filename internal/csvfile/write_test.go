package csvfile

import (
	"encoding/csv"
	"errors"
	"strings"
	"testing"
	"time"
)

// amount is a number with a word of its own, which may begin with a sign.
type amount int

func (a amount) String() string { return "-£1.00" }

func TestCell(t *testing.T) {
	for _, tt := range []struct {
		name string
		cell any
		want string
	}{
		{"nothing", nil, ""},
		{"text", "4 Elm Row", "4 Elm Row"},
		{"an empty text", "", ""},
		{"a formula", `=HYPERLINK("http://evil")`, `'=HYPERLINK("http://evil")`},
		{"a plus", "+44 20", "'+44 20"},
		{"a minus", "-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"},
		{"an at", "@SUM(A1)", "'@SUM(A1)"},
		{"a tab", "\t=1", "'\t=1"},
		{"a carriage return", "\r=1", "'\r=1"},
		{"a new line", "\n=1", "'\n=1"},
		{"a wide sign", "\uff1d1+1", "'\uff1d1+1"},
		{"a sign further on", "a=1", "a=1"},
		{"a negative number", -12, "-12"},
		{"a negative decimal", -0.5, "-0.5"},
		{"a number written by its owner", Number("-12.30"), "-12.30"},
		{"a value whose own words begin with a sign", amount(1), "'-£1.00"},
		{"an instant", time.Unix(0, 0), "1970-01-01T00:00:00Z"},
		{"no instant", time.Time{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Cell(tt.cell); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestWriter(t *testing.T) {
	var b strings.Builder
	w := NewWriter(&b, "name", "pence")
	w.Write("a, \"b\"", -5)
	w.Write("=1", nil)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}

	rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil || len(rows) != 3 || rows[1][0] != `a, "b"` || rows[1][1] != "-5" || rows[2][0] != "'=1" {
		t.Errorf("%q, %v", rows, err)
	}
	broken := NewWriter(brokenPipe{}, "name")
	broken.Write("x")
	if broken.Flush() == nil {
		t.Error("a write that failed is not reported")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("gone") }
