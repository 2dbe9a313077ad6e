package main

import (
	"slices"
	"strings"
	"testing"

	"flexd/internal/books"
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

// goodSettings are values of the settings that are no number.
var goodSettings = map[string]string{
	"page_colour": "#7a1f5c", "page_colour_dark": "#ffd9f0", "page_email": "help@acme.example", "page_phone": "+44 20 7946 0000",
	"page_url": "https://acme.example/help",
	"baseline": "nominated", "rounding": "half_even", "two_factor": "false", "payment_file_format": "pain.001", "payer_sort_code": "12-34-56",
	"payer_account": "12345678", "payer_sun": "123456", "payer_iban": "GB29 NWBK 6016 1331 9268 19", "payer_bic": "NWBKGB2L",
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
		wrong := []string{"no sense", "-1"}
		if s.name == "counterparty" || slices.Contains([]string{"payer_name", "payer_address", "payer_contact", "page_name"}, s.name) { // they take any text of one line
			wrong = []string{"two\nlines", strings.Repeat("x", books.TextMax+1)}
		}

		for _, nonsense := range wrong {
			if err := s.set(&blankSettings, nonsense); err == nil {
				t.Errorf("%s takes %q", s.name, nonsense)
			}
		}

		good := goodSettings[s.name]
		if good == "" {
			good = "1"
		}
		if err := s.set(&blankSettings, good); err != nil || s.show(&blankSettings) == s.show(&zeroSettings) {
			t.Errorf("%s does not keep %q: %v", s.name, good, err)
		}
	}
}

// Terms are set from a day on and listed; what is wrong with a day is said.
func TestOrgTerms(t *testing.T) {
	run := commandLineOf(t, freshDatabase(t))
	for _, step := range []struct {
		line string
		code int
		want string
	}{
		{"org add Acme --username me", exitDone, ""},
		{"org set Acme", exitDone, "credit_pence_per_kwh 2, or none if user_share is above 0 (default)"},
		{"org set Acme credit_pence_per_kwh=0 min_withdrawal_pence=0", exitDone, "min_withdrawal_pence 0 the"},
		{"org set Acme user_share=0.5 --from 2126-04-01", exitDone, "0 (default); 0.5 from 2126-04-01"},
		{"org set Acme min_withdrawal_pence=default default_need_wh=default", exitDone, "min_withdrawal_pence 1000 (default)"},
		{"org set Acme default_need_wh=0", exitUsage, "not a whole number from 1 to 1000000"},
		{"org set Acme user_share=0.5 --from tomorrow", exitUsage, "is not a day such as 2026-04-01"},
		{"org set Acme two_factor=true --from 2126-04-01", exitUsage, "--from is for what is dated: credit_pence_per_kwh"},
		{"org terms Acme", exitDone, "user_share 2126-04-01 0.5"},
		{"org terms Acme --json", exitDone, `"from_day": "2126-04-01"`},
		{"org terms Nobody", exitFailed, "flexd org list prints them"},
	} {
		code, said := run(step.line)
		if code != step.code || !strings.Contains(strings.Join(strings.Fields(said), " "), step.want) {
			t.Errorf("flexd %s: %d, want %d with %q:\n%s", step.line, code, step.code, step.want, said)
		}
	}
}
