package directory

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flexd/internal/flex"
)

func vector[T any](t testing.TB, name string) (v T) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// details returns the reasons that a refusal lists, or nothing if it is none.
func details(err error) []string {
	if e, ok := errors.AsType[*flex.Error](err); ok && e.Kind == flex.Malformed {
		return e.Details
	}
	return nil
}

func TestMPANVectors(t *testing.T) {
	v := vector[struct {
		Cores []struct {
			Core  string
			Sum   int `json:"weighted_sum"`
			Check int `json:"check_digit"`
		} `json:"valid_cores"`
		Full []struct {
			Full, Core string
		} `json:"valid_full_21"`
		Ten []struct{ Core string } `json:"mod11_equals_10"`

		Each      map[string]string `json:"synthetic_one_per_distributor"`
		Invalid   []struct{ Input string }
		Normalise []struct{ Input, Core string }
	}](t, "mpan.json")

	var cores []string
	for _, e := range v.Cores {
		cores = append(cores, e.Core)
	}

	for _, e := range v.Ten {
		cores = append(cores, e.Core)
	}
	for _, core := range v.Each {
		cores = append(cores, core)
	}
	if len(cores) < 20 {
		t.Fatal("too few vectors")
	}

	for _, core := range cores {
		if m, err := ParseMPAN(core); err != nil || m.Core() != core {
			t.Errorf("%s: %v %v", core, m.Core(), err)
		}
	}

	for _, e := range v.Full {
		m, err := ParseMPAN(e.Full)
		if err != nil || m.Core() != e.Core {
			t.Errorf("%s: %s %v", e.Full, m.Core(), err)
		}
	}
	for _, e := range v.Normalise {
		if m, err := ParseMPAN(e.Input); err != nil || m.Core() != e.Core {
			t.Errorf("%q: %s %v", e.Input, m.Core(), err)
		}
	}

	for _, e := range v.Invalid {
		if _, err := ParseMPAN(e.Input); len(details(err)) == 0 {
			t.Errorf("%q: %v, want reasons", e.Input, err)
		}
	}
	w := vector[struct {
		Valid   []string
		Invalid []struct{ MPAN string }
	}](t, "mpan-check-digit.json")

	for _, s := range w.Valid {
		if _, err := ParseMPAN(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, e := range w.Invalid {
		if _, err := ParseMPAN(e.MPAN); len(details(err)) == 0 {
			t.Errorf("%q: %v, want reasons", e.MPAN, err)
		}
	}
}

func TestMPANReasons(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string // a part of each reason, in order
	}{
		{"", []string{"empty"}},
		{" - ", []string{"empty"}},
		{"1200023305968", []string{"call for 7"}},
		{"0000000000001", []string{"call for 0", "number 00"}},
		{"0000000000000", []string{"number 00"}},
		{"12000233059AB", []string{`'A' is not a digit`}},
		{"12000233059A", []string{`'A' is not a digit`, "12 characters"}},
		{"１２０００２３３０５９６７", []string{`'１' is not a digit`}},
		{"01801902120002330596", []string{"20 characters"}},
		{"S0180190212000233059677", []string{`'S' is not a digit`, "23 characters"}},
		{strings.Repeat("1", 65), []string{"more than 64"}},
		{strings.Repeat("1", 64), []string{"64 characters"}},
	} {
		_, err := ParseMPAN(c.text)
		got := details(err)
		if len(got) != len(c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
			continue
		}

		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%q: %q, want %q", c.text, got, c.want)
			}
		}
	}
}

func withCheck(twelve string) string { return twelve + string(checkDigit(twelve)) }

// TestCheckDigit: a number without its check digit has exactly one that is right, and a
// wrong digit elsewhere passes only where the remainders 0 and 10 share a check digit.
func TestCheckDigit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		twelve := rapid.StringMatching(`[1-9][0-9]{11}`).Draw(t, "twelve")
		right := 0
		for c := byte('0'); c <= '9'; c++ {
			if _, err := ParseMPAN(twelve + string(c)); err == nil {
				right++
			}
		}

		if right != 1 {
			t.Fatalf("%s has %d check digits", twelve, right)
		}
		full := withCheck(twelve)
		i := rapid.IntRange(1, 11).Draw(t, "place")
		wrong := []byte(full)
		wrong[i] = '0' + (wrong[i]-'0'+byte(rapid.IntRange(1, 9).Draw(t, "by")))%10
		if _, err := ParseMPAN(string(wrong)); err == nil && full[12] != '0' {
			t.Fatalf("%s passes for %s", wrong, full)
		}
	})
}

func TestMPANIsMasked(t *testing.T) {
	m, err := ParseMPAN("01801902 1200023305967")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(m), fmt.Sprintf("%+v", m), fmt.Sprintf("%#v", m), fmt.Sprint(struct{ M MPAN }{m})} {
		if strings.Contains(s, "330596") || strings.Contains(s, "01801902") || !strings.Contains(s, "5967") {
			t.Errorf("printed as %s", s)
		}
	}
	if Mask("967") != "…" || Mask("") != "…" {
		t.Error("a short number is hidden whole")
	}
}

func FuzzParseMPAN(f *testing.F) {
	for _, s := range []string{"1200023305967", "S 01 801 902 12 0002 3305 967", "069238I51470116845051", "１２", "12-0002-3305-967"} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMPAN(s)
		if err != nil {
			if len(details(err)) == 0 {
				t.Fatalf("%q: %v lists no reason", s, err)
			}
			return
		}
		if again, err := ParseMPAN(m.Core()); err != nil || again.Core() != m.Core() || len(m.Core()) != coreLen {
			t.Fatalf("%q reads as %q", s, m.Core())
		}
	})
}
