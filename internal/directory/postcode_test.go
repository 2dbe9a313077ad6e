package directory

import (
	"strings"
	"testing"

	"flexd/internal/flex"
)

func TestPostcodeVectors(t *testing.T) {
	v := vector[struct {
		Repair [][2]string
		Cases  []struct {
			Input         string
			Normalised    string
			Lenient       bool `json:"lenient_valid"`
			Strict        bool `json:"strict_valid"`
			Area, Outward string
			GB            bool
		}
	}](t, "postcodes.json")

	if len(v.Cases) == 0 || len(v.Repair) == 0 {
		t.Fatal("no vectors")
	}

	for _, c := range v.Cases {
		p, err := ParsePostcode(c.Input)
		if (err == nil) != c.Lenient || string(p) != c.Normalised {
			t.Errorf("%q: %q, %v", c.Input, p, err)
		}
		if err != nil {
			if flex.KindOf(err) != flex.Invalid {
				t.Errorf("%q: %v was not written to be shown", c.Input, err)
			}
			continue
		}

		if p.Strict() != c.Strict || p.Area() != c.Area || p.Outward() != c.Outward || p.InGB() != c.GB {
			t.Errorf("%q: strict %v, %s, %s, in GB %v", c.Input, p.Strict(), p.Area(), p.Outward(), p.InGB())
		}
	}

	for _, c := range v.Repair {
		want, _, _ := strings.Cut(c[1], " (")
		p, ok := RepairPostcode(c[0])
		if strings.HasPrefix(want, "unchanged") {
			if ok {
				t.Errorf("%q was mended to %q", c[0], p)
			}
		} else if !ok || string(p) != want {
			t.Errorf("%q: %q, want %q", c[0], p, want)
		}
	}
}

func TestFindPostcode(t *testing.T) {
	for text, want := range map[string]string{
		"sw1a-2aa":                           "SW1A 2AA",
		"SWIA 2AA":                           "SW1A 2AA",
		"nwi 6xe":                            "NW1 6XE",
		"M.1 1AE":                            "M1 1AE",
		"M1O 1AE":                            "M1O 1AE", // as good as M10: not ours to decide
		"1A1 1AA":                            "",        // IA is no area
		"01 OAA":                             "",
		"EIO 1AA":                            "", // E10, E1O or EI0
		"SW1A 2A":                            "",
		"GIR 0AA":                            "",
		"SW1A 2AAA SW1A 2AAA SW1A 2AAA SW1A": "",
	} {
		p, err := FindPostcode(text)
		if string(p) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, p, err, want)
		}
	}

	for _, area := range []string{"BT1 1AA", "JE2 3AB", "GY1 1AA", "IM1 1AA"} {
		if p, err := ParsePostcode(area); err != nil || p.InGB() {
			t.Errorf("%s: %v, in GB %v", area, err, p.InGB())
		}
	}
	if Postcode("").Area() != "" || Postcode("").Strict() {
		t.Error("the empty postcode has no parts")
	}
}

func FuzzFindPostcode(f *testing.F) {
	for _, s := range []string{"SW1A 2AA", "SWIA 2AA", "01 OAA", "1A2aa", "ＳＷ1A 1AA"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := FindPostcode(s)
		if err != nil {
			return
		}
		if again, err := ParsePostcode(string(p)); err != nil || again != p {
			t.Fatalf("%q reads as %q, which reads as %q, %v", s, p, again, err)
		}
	})
}
