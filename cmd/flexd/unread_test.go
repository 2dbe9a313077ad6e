package main

import (
	"io"
	"slices"
	"testing"
)

// A misspelt variable is named. Variables for flags of this command, of other commands and of
// other programs are not.
func TestUnread(t *testing.T) {
	var cmds commands
	parser, err := newParser(t.Context(), &cmds, console{out: io.Discard, err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}

	got := unread(parser.Model, []string{
		"HOME=/", "FLEXD_DATABASE=sqlite:x.db", "FLEXD_PRICE_SORCE=elexon-mid", "FLEXD_LOG=json", "FLEXD_TEST_STRICT=1", "FLEXD_PORT_8080_TCP=x", "FLEXD_SERVICE_HOST=x",
		"FLEXD_OPERATOR_PASSWORD=x", "FLEXD_OPERATORS_TWOSTEP=true", "FLEXD_OPERATORS_TWO_STEP=true",
	})
	if want := []string{"FLEXD_OPERATORS_TWOSTEP", "FLEXD_PRICE_SORCE"}; !slices.Equal(got, want) {
		t.Errorf("unread: %q, want %q", got, want)
	}
}
