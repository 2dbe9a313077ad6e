package directory

import (
	"testing"

	"flexd/internal/flex"
)

// TestMatch_OtherWriting holds what is the same premises written in another way, and what only
// looks so. Each list is all that the postcode has.
func TestMatch_OtherWriting(t *testing.T) {
	list := func(addresses ...string) (meters []flex.Meter) {
		for _, a := range addresses {
			meters = append(meters, meter(a, a, "YO1 7HH"))
		}
		return meters
	}

	for _, c := range []struct {
		q    string
		list []flex.Meter
		want string
	}{
		// A dwelling beside a house is not the house.
		{"The Annexe, 4 Elm Grove, YO1 7HH", list("4 ELM GROVE"), ""},
		{"4 Elm Grove, YO1 7HH", list("THE ANNEXE, 4 ELM GROVE"), ""},
		{"4 Elm Grove, The Annexe, YO1 7HH", list("4 ELM GROVE"), ""},
		{"4 Elm Grove, YO1 7HH", list("4 ELM GROVE ANNEXE"), ""},
		{"Garage, 4 Elm Grove, YO1 7HH", list("4 ELM GROVE"), ""},
		{"The Annexe, Rose Cottage, Elm Grove, YO1 7HH", list("ROSE COTTAGE, ELM GROVE"), ""},
		{"Annex, 4 Elm Gr, YO1 7HH", list("THE ANNEXE, 4 ELM GROVE", "4 ELM GROVE"), "THE ANNEXE, 4 ELM GROVE"},
		{"4 Elm Grove Annexe, YO1 7HH", list("THE ANNEXE, 4 ELM GROVE", "4 ELM GROVE"), "THE ANNEXE, 4 ELM GROVE"},
		{"4 Elm Grove, YO1 7HH", list("THE ANNEXE, 4 ELM GROVE", "4 ELM GROVE"), "4 ELM GROVE"},
		{"Flat 1, The Annexe, 4 Elm Grove, YO1 7HH", list("FLAT 1, 4 ELM GROVE"), ""},
		{"4 Stable Lane, YO1 7HH", list("4 STABLE LANE"), "4 STABLE LANE"},
		{"Rose Cottage, 4 Elm Grove, YO1 7HH", list("4 ELM GROVE"), "4 ELM GROVE"},
		// A letter behind the number may be a flat's, where nothing else has that number.
		{"10A High St, YO1 7HH", list("FLAT A, 10 HIGH STREET", "FLAT B, 10 HIGH STREET"), "FLAT A, 10 HIGH STREET"},
		{"Flat A, 10 High St, YO1 7HH", list("10A HIGH STREET", "10B HIGH STREET"), "10A HIGH STREET"},
		{"10A High St, YO1 7HH", list("FLAT A, 10 HIGH STREET", "10A HIGH STREET"), "10A HIGH STREET"},
		{"Flat A, 10 High St, YO1 7HH", list("FLAT A, 10 HIGH STREET", "10A HIGH STREET"), "FLAT A, 10 HIGH STREET"},
		{"10A High St, YO1 7HH", list("10 HIGH STREET"), ""},
		{"10A High St, YO1 7HH", list("FLAT B, 10 HIGH STREET", "FLAT A, 100 HIGH STREET", "FLAT A, 10 LOW STREET"), ""},
		{"10A High St, YO1 7HH", list("FLAT 10A, 1 HIGH STREET"), ""},
		{"Flat 2, 10A High St, YO1 7HH", list("FLAT A, 10 HIGH STREET"), ""},
		// A stroke may stand either way round, so it is followed only if one way leads somewhere.
		{"1/10 High St, YO1 7HH", list("FLAT 1, 10 HIGH STREET", "FLAT 2, 10 HIGH STREET"), "FLAT 1, 10 HIGH STREET"},
		{"Flat 1, 10 High St, YO1 7HH", list("1/10 HIGH STREET", "2/10 HIGH STREET"), "1/10 HIGH STREET"},
		{"Flat 1, 10 High St, YO1 7HH", list("1/10 HIGH STREET", "10/1 HIGH STREET"), ""},
		{"1/10 High St, YO1 7HH", list("FLAT 1, 10 HIGH STREET", "FLAT 10, 1 HIGH STREET"), ""},
		{"1/10 High St, YO1 7HH", list("1/10 HIGH STREET", "FLAT 1, 10 HIGH STREET"), "1/10 HIGH STREET"},
		{"1/10 High St, YO1 7HH", list("1 HIGH STREET", "10 HIGH STREET"), ""},
		{"1/10 High St, YO1 7HH", list("10/1 HIGH STREET"), ""},
	} {
		if got := matched(t, c.q, c.list); got != c.want {
			t.Errorf("%s: %q, want %q", c.q, got, c.want)
		}
	}
}

// TestUPRN holds that one property number is one premises, however its meters' addresses are
// written, and two are two.
func TestUPRN(t *testing.T) {
	at := func(id, address, uprn string, imports bool) flex.Meter {
		m := meter(id, address, "YO1 7HH")
		m.UPRN, m.Import = uprn, imports
		return m
	}

	for _, c := range []struct {
		name, q string
		meters  []flex.Meter
		want    string
		listed  int
	}{
		{"written in two ways", "Rose Cottage, Mill Lane, YO1 7HH",
			[]flex.Meter{at("in", "ROSE COTTAGE, MILL LANE", "100012", true), at("out", "5 MILL LANE", "000000100012", false)}, "in", 1},
		{"two import meters under one number", "5 Mill Lane, YO1 7HH",
			[]flex.Meter{at("a", "5 MILL LANE", "100012", true), at("b", "5 MILL LANE", "100012", true)}, "", 1},
		{"one address, two numbers", "5 Mill Lane, YO1 7HH",
			[]flex.Meter{at("a", "5 MILL LANE", "100012", true), at("b", "5 MILL LANE", "100013", true)}, "", 2},
		{"one of two without a number", "5 Mill Lane, YO1 7HH",
			[]flex.Meter{at("a", "5 MILL LANE", "100012", true), at("b", "5 MILL LANE", "", false)}, "a", 1},
		{"no number at all", "5 Mill Lane, YO1 7HH",
			[]flex.Meter{at("a", "5 MILL LANE", "unknown", true), at("b", "5 MILL LANE", "", false)}, "a", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := matched(t, c.q, c.meters); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}

			if got := onePerPremises(c.meters, "YO1 7HH", ""); len(got) != c.listed {
				t.Errorf("%d premises are listed, want %d", len(got), c.listed)
			}
		})
	}
}

// TestKey_Annexe keeps a dwelling beside a house from being the house's duplicate.
func TestKey_Annexe(t *testing.T) {
	key := func(text string) string { return NewAddress(text, "YO1 7HH").Key() }
	if key("4 Elm Grove, The Annexe") == key("4 Elm Grove") || key("4 Elm Grove, The Annexe") != key("Annexe, 4 Elm Grove") {
		t.Errorf("%s, %s, %s", key("4 Elm Grove"), key("4 Elm Grove, The Annexe"), key("Annexe, 4 Elm Grove"))
	}
}
