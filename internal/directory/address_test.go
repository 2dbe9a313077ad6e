package directory

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	_ "flexd/test/seed"
)

// meter is an energised import meter with its id in place of a number.
func meter(id, address, postcode string) flex.Meter {
	return flex.Meter{MPAN: id, Address: address, Postcode: postcode, Import: true, Energised: true, HalfHourly: true, Domestic: true}
}

// bakerSt are the vectors' candidates, as the registry's nine lines come joined.
func bakerSt(t testing.TB) (meters []flex.Meter, queries []struct{ Q, Match, Reason string }) {
	v := vector[struct {
		Postcode   string `json:"candidates_postcode"`
		Candidates []struct {
			ID    string
			Lines []string
		}
		Queries []struct{ Q, Match, Reason string }
	}](t, "address_matching.json")
	for _, c := range v.Candidates {
		meters = append(meters, meter(c.ID, joinLines(c.Lines), v.Postcode))
	}
	return meters, v.Queries
}

func joinLines(lines []string) string {
	var full []string
	for _, l := range lines {
		if l != "" {
			full = append(full, l)
		}
	}
	return strings.Join(full, ", ")
}

// matched returns the id of the meter that a text finds, or nothing.
func matched(t testing.TB, text string, meters []flex.Meter) string {
	q, err := ParseAddress(text)
	if err != nil {
		if flex.KindOf(err) != flex.Invalid {
			t.Errorf("%s: %v", text, err)
		}
		return ""
	}
	m, err := Match(q, meters)
	if err != nil && flex.KindOf(err) != flex.Unclear {
		t.Errorf("%s: %v", text, err)
	}
	return m.MPAN
}

func TestAddressVectors(t *testing.T) {
	meters, queries := bakerSt(t)
	if len(meters) == 0 || len(queries) == 0 {
		t.Fatal("no vectors")
	}
	for _, q := range queries {
		if got := matched(t, q.Q, meters); got != q.Match {
			t.Errorf("%s: %q, want %q %s", q.Q, got, q.Match, q.Reason)
		}
	}
}

func TestMatch(t *testing.T) {
	baker, _ := bakerSt(t)
	village := []flex.Meter{
		meter("rectory", "THE OLD RECTORY, CHURCH LANE, LITTLE WITTERING", "YO1 7HH"),
		meter("mill", "THE OLD MILL, CHURCH LANE, LITTLE WITTERING", "YO1 7HH"),
		meter("12st", "12 CHURCH STREET, LITTLE WITTERING", "YO1 7HH"),
		meter("12ln", "12 CHURCH LANE, LITTLE WITTERING", "YO1 7HH"),
		meter("14", "14 CHURCH LANE, LITTLE WITTERING", "YO1 7HH"),
		meter("14a", "14A CHURCH LANE, LITTLE WITTERING", "YO1 7HH"),
		meter("plot", "PLOT 16, CHURCH LANE, LITTLE WITTERING", "YO1 7HH"),
		meter("rose", "ROSE COTTAGE 7 ST JOHNS ROAD", "YO1 7HH"),
		meter("broad", "3 THE BROADWAY", "YO1 7HH"),
		meter("shop", "THE FLAT, 20 CHURCH LANE", "YO1 7HH"),
		meter("below", "20 CHURCH LANE", "YO1 7HH"),
	}
	tenement := []flex.Meter{
		meter("21", "2/1, 15 HIGH STREET, GLASGOW", "G1 1AA"),
		meter("22", "2/2, 15 HIGH STREET, GLASGOW", "G1 1AA"),
		meter("gff", "GROUND FLOOR FLAT, 17 HIGH STREET, GLASGOW", "G1 1AA"),
		meter("tff", "TOP FLOOR FLAT, 17 HIGH STREET, GLASGOW", "G1 1AA"),
		meter("lift", "COMMUNAL LIFT, 15 HIGH STREET, GLASGOW", "G1 1AA"),
	}

	for _, c := range []struct {
		q      string
		meters []flex.Meter
		want   string
	}{
		// Numbers, letters and flats are equal or nothing.
		{"2 Baker Street, NW1 6XE", baker, ""},
		{"22 Baker Street, NW1 6XE", baker, ""},
		{"221A Baker Street, NW1 6XE", baker, ""},
		{"223 Baker Street, NW1 6XE", baker, ""},
		{"Flat B, 221B Baker Street, NW1 6XE", baker, ""},
		{"Flat 1, 221B Baker Street, NW1 6XE", baker, ""},
		{"11 Holmes Court, NW1 6XE", baker, "e"},
		{"111 Holmes Court, NW1 6XE", baker, ""},
		{"Holmes Court, NW1 6XE", baker, ""},
		{"Flat 1, 223-225 Baker Street NW1 6XE", baker, "d"},
		{"1 Holmes Court, 223-225 Baker Street, London NW1 6XE", baker, "d"},
		{"1 Holmes Court, 227 Baker Street, London NW1 6XE", baker, ""},
		{"Flat 1 Ivy Court, 223-225 Baker Street, London NW1 6XE", baker, ""},
		{"Landlord's supply, Holmes Court, 223-225 Baker Street NW1 6XE", baker, "f"},
		{"Flat 01 Holmes Crt NW16XE", baker, "d"},
		{"rose cotage, baker st, nw1 6xe", baker, "g"},
		{"221b, Baker Street, Marylebone, London, England, NW1 6XE", baker, "b"},
		{"221B, NW1 6XE", baker, "b"},
		{"NW1 6XE", baker, ""},
		// Houses in a village.
		{"The Old Rectory, Church Lane, Little Wittering, YO1 7HH", village, "rectory"},
		{"Old Rectory, Church Ln YO1 7HH", village, ""}, // "the" is part of the name; not ours to drop
		{"The Old App, Church Lane YO1 7HH", village, ""},
		{"12 Church St, YO1 7HH", village, "12st"},
		{"12 Church Lane, YO1 7HH", village, "12ln"},
		{"12, YO1 7HH", village, ""}, // in either street
		{"12 Church Road, Little Wittering, YO1 7HH", village, ""},
		{"14 Church Lane YO1 7HH", village, "14"},
		{"14 a Church Lane YO1 7HH", village, "14a"},
		{"16 Church Lane YO1 7HH", village, ""}, // a plot's number is not a house's
		{"Plot 16 Church Lane YO1 7HH", village, ""},
		{"7 Saint John's Road YO1 7HH", village, "rose"},
		{"Rose Cottage, 7 St. Johns Rd, YO1 7HH", village, "rose"},
		{"Lily Cottage, 7 St. Johns Rd, YO1 7HH", village, ""},
		{"3 The Broadway, YO1 7HH", village, "broad"},
		{"20 Church Lane, YO1 7HH", village, "below"},
		// Scottish flats.
		{"2/1 15 High Street, Glasgow G1 1AA", tenement, "21"},
		{"Flat 2/2, 15 High St G1 1AA", tenement, "22"},
		{"15 High Street G1 1AA", tenement, ""},
		{"GFF 17 High Street G1 1AA", tenement, "gff"},
		{"Flat Top Floor, 17 High Street G1 1AA", tenement, "tff"},
		{"First Floor Flat, 17 High Street G1 1AA", tenement, ""},
	} {
		if got := matched(t, c.q, c.meters); got != c.want {
			t.Errorf("%s: %q, want %q", c.q, got, c.want)
		}
	}
}

func TestMatchPrefersTheLiveImport(t *testing.T) {
	with := func(id string, imports, live bool) flex.Meter {
		m := meter(id, "12 CHURCH LANE", "YO1 7HH")
		m.Import, m.Energised = imports, live
		return m
	}

	for _, c := range []struct {
		meters []flex.Meter
		want   string
	}{
		{[]flex.Meter{with("export", false, true), with("import", true, true)}, "import"},
		{[]flex.Meter{with("old", true, false), with("new", true, true), with("export", false, true)}, "new"},
		{[]flex.Meter{with("off", true, false), with("export", false, true)}, "off"},
		{[]flex.Meter{with("export", false, true)}, ""},
		{[]flex.Meter{with("day", true, true), with("night", true, true)}, ""},
		{[]flex.Meter{with("import", true, true), meter("same", "12, Church Ln.", "YO17HH")}, ""},
		{nil, ""},
	} {
		if got := matched(t, "12 Church Lane, YO1 7HH", c.meters); got != c.want {
			t.Errorf("%v: %q, want %q", c.meters, got, c.want)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"221B Baker Street, London":               "no postcode",
		"Baker Street, NW1 6XE":                   "number or name",
		"London, Baker Street, NW1 6XE":           "", // LONDON could be a house
		"":                                        "no postcode",
		"12 High Street, SW1A 1AAA":               "no postcode",
		strings.Repeat("1", MaxAddress+1):         "longer",
		strings.Repeat("1", 500) + " NW1 6XE":     "",
		"12 Church Lane, Formerly M1 1AE, OX12AB": "",
	} {
		_, err := ParseAddress(text)
		if want == "" && err != nil || want != "" && (flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestKey(t *testing.T) {
	same := [][]string{
		{"221B Baker Street", "221 B, baker st.", "221b Baker Street, London", "221B BAKER STREET LONDON NW1 6XE"},
		{"Flat 1, Holmes Court, 223-225 Baker Street", "Apt 01 Holmes Ct 223-225 Baker St London"},
		{"Rose Cottage, Baker Street, London", "ROSE COTTAGE BAKER ST"},
		{"221 Baker Street"}, {"Flat A, 221B Baker Street"}, {"Landlord, 221B Baker Street"}, {"221B Baker Road"}, {""},
	}
	seen := map[string]int{}
	for i, group := range same {
		for _, text := range group {
			k := NewAddress(text, "NW1 6XE").Key()
			if j, ok := seen[k]; ok && j != i {
				t.Errorf("%q has the key of %q", text, same[j])
			}
			seen[k] = i
		}

		if k := NewAddress(group[0], "NW1 6XE").Key(); len(group) > 1 {
			for _, text := range group[1:] {
				if NewAddress(text, "NW1 6XE").Key() != k {
					t.Errorf("%q: %q, want %q", text, NewAddress(text, "NW1 6XE").Key(), k)
				}
			}
		}
	}
	if NewAddress("1 High Street", "NW1 6XE").Key() == NewAddress("1 High Street", "NW1 6XF").Key() {
		t.Error("two postcodes are two places")
	}
}

func TestNamed(t *testing.T) {
	baker, _ := bakerSt(t)
	for part, want := range map[string]string{
		"221": "abc", "221B": "abc", "Flat 1": "d", "1": "d", "Rose Cottage": "g", "rose": "g", "Holmes Ct": "def", "": "abcdefg", "Flat 2": "", "9": "",
	} {
		got := ""
		for _, m := range baker {
			if NewAddress(m.Address, "NW1 6XE").Named(part) {
				got += m.MPAN
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", part, got, want)
		}
	}
}

// TestNumbersAreNeverFuzzy: of two houses that differ in number, letter or flat alone, one
// is never taken for the other.
func TestNumbersAreNeverFuzzy(t *testing.T) {
	premises := rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringMatching(`[1-9][0-9]{0,2}[A-D]?`).Draw(t, "number") + " " + rapid.SampledFrom([]string{"Church Lane", "Mill Road"}).Draw(t, "street")
		if rapid.Bool().Draw(t, "in a flat") {
			s = "Flat " + rapid.StringMatching(`([1-9][0-9]?[A-D]?|[A-D])`).Draw(t, "flat") + ", " + s
		}
		return s
	})

	rapid.Check(t, func(t *rapid.T) {
		asked, stored := premises.Draw(t, "asked"), premises.Draw(t, "stored")
		q, err := ParseAddress(asked + ", YO1 7HH")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Match(q, []flex.Meter{meter("m", strings.ToUpper(stored), "YO1 7HH")})
		if (err == nil) != (asked == stored) {
			t.Fatalf("%s for %s: %v", stored, asked, err)
		}
	})
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"221B Baker Street, London, NW1 6XE", "Flat One, 2/1 FLAT NW16XE", "GROUND FLOOR FLAT FLAT FLAT 1 NW1 6XE", "1-2 - 3/4 'a.b&c NW1 6XE"} {
		f.Add(s)
	}

	baker, _ := bakerSt(f)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text)
		if err != nil {
			return
		}
		Match(a, baker)
		m := meter("own", text, string(a.Postcode))
		if got, err := Match(a, []flex.Meter{m}); err == nil && got.MPAN != "own" {
			t.Fatalf("%q finds %v", text, got)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	meters, _ := bakerSt(b)
	for b.Loop() {
		matched(b, "Flat One, Holmes Court NW1 6XE", meters)
	}
}
