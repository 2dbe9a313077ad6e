package main

import (
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

func TestReadResults(t *testing.T) {
	const id = "01a1f906-3449-762e-b863-41185f98e3f2"
	got, err := readResults(strings.NewReader("note,status,withdrawal_id,more\n\"no, thanks\",failed," + id + ",x\n,posted," + strings.ToUpper(id) + ",\n"))
	if err != nil || len(got) != 2 || got[0].ID.String() != id || got[0].Status != ledger.Failed || got[0].Note != "no, thanks" || got[1].ID != got[0].ID {
		t.Errorf("%+v %v", got, err)
	}
	// As a spreadsheet saves it, with a mark at its beginning.
	got, err = readResults(strings.NewReader("\ufeffWithdrawal_ID,attempt,status\n" + id + ", 2, posted\n" + id + ",,posted\n"))
	if err != nil || len(got) != 2 || got[0].ID.String() != id || got[0].Status != ledger.Posted || got[0].Attempt != 2 || got[1].Attempt != 0 {
		t.Errorf("%+v %v", got, err)
	}
	for text, want := range map[string]string{
		"withdrawal_id,status,attempt\n" + id + ",posted,0": "line 2",
		"":                                 "the file is empty",
		"status\nposted\n":                 "no column withdrawal_id",
		"withdrawal_id\n" + id:             "no column status",
		"withdrawal_id,status\nx,posted\n": "line 2",
		"withdrawal_id,status\n" + id + ",posted,more\n":   "line 2",
		"withdrawal_id,status\n" + id + ",posted\n\"x,y\n": "line 3",
	} {
		if _, err := readResults(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

var blankSettings, zeroSettings flex.OrgSettings

// Every setting takes what it shows, refuses nonsense, and has a default and a word of help.
func TestSettings(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range settings() {
		if seen[s.name] || s.standard == "" || s.help == "" {
			t.Errorf("setting %q: known already, or without default or help", s.name)
		}
		seen[s.name] = true
		for _, nonsense := range []string{"nonsense", "-1"} {
			if err := s.set(&blankSettings, nonsense); err == nil {
				t.Errorf("%s takes %q", s.name, nonsense)
			}
		}
		good := "1"
		if s.name == "baseline" {
			good = "nominated"
		}
		if s.name == "rounding" {
			good = "half_even"
		}
		if err := s.set(&blankSettings, good); err != nil || s.show(&blankSettings) == s.show(&zeroSettings) {
			t.Errorf("%s does not keep %q: %v", s.name, good, err)
		}
	}
}
