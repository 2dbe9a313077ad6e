package wire

import (
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestIgnored_Names sends unknown names and reads what is said of each.
func TestIgnored_Names(t *testing.T) {
	onboard := func(s string) (g Ignored) { Decode[OnboardRequest]([]byte(s), &g); return g }
	patch := func(s string) (g Ignored) { Decode[AssetUpdateRequest]([]byte(s), &g); return g }

	for _, c := range []struct {
		title    string
		got      Ignored
		warnings []string
		header   string
	}{
		{"none", onboard(`{"site":{"email":"a"},"assets":[]}`), nil, ""},
		{"two letters swapped", onboard(`{"site":{"emial":"a"}}`), []string{`unknown name "emial" in site: ignored; did you mean "email"?`}, "site.emial"},
		{"the first part", onboard(`{"assets":[{},{"properties":{"power":7}}]}`),
			[]string{`unknown name "power" in assets.1.properties: ignored; did you mean "power_kw"?`}, "assets.1.properties.power"},
		{"at the root", onboard(`{"propositon":1}`), []string{`unknown name "propositon" in the body: ignored; did you mean "proposition"?`}, "propositon"},
		{"of an object within", patch(`{"power_kw":22}`), []string{`unknown name "power_kw" in the body: ignored; did you mean "properties.power_kw"?`}, "power_kw"},
		{"near to none", patch(`{"colour":{"deep":[{"x":1}]}}`), []string{`unknown name "colour" in the body: ignored`}, "colour"},
		{"near to two", patch(`{"properties":{"reserve":1}}`), []string{`unknown name "reserve" in properties: ignored`}, "properties.reserve"},
		{"in the wrong case is a fault instead", patch(`{"Properties":{}}`), nil, ""},
		{"the same in each item", onboard(`{"assets":[{"tpye":1},{"tpye":1}]}`), []string{
			`unknown name "tpye" in assets.0: ignored`, `unknown name "tpye" in assets.1: ignored`}, "assets.0.tpye"},
		{"empty", patch(`{"":1}`), []string{`unknown name "" in the body: ignored`}, "?"},
		{"control characters", patch(`{"a\r\nSet-Cookie: b, c\u0000\u00e9\u202e":1}`),
			[]string{`unknown name "a\r\nSet-Cookie: b, c\x00é\u202e" in the body: ignored`}, "a??Set-Cookie:?b??c???"},
	} {
		t.Run(c.title, func(t *testing.T) {
			got := c.got.Warnings(func([]string) bool { return true })
			if !slices.Equal(got, c.warnings) || c.got.Count != len(got) {
				t.Errorf("%d names: %q, want %q", c.got.Count, got, c.warnings)
			}

			if field := c.got.Header(); field != c.header {
				t.Errorf("the header has %q, want %q", field, c.header)
			}
		})
	}
}

// TestIgnored_Missing holds what is said of a required name beside unknown ones.
func TestIgnored_Missing(t *testing.T) {
	const plain = "field required"
	for _, c := range []struct {
		err  error
		want string
	}{
		{as[TariffRequest](`{"type":"dynamic"}`), plain + `; there is "type", which is unknown`},
		{as[SiteUpdateRequest](`{"tariff":{"tarif_type":"dynamic"}}`), plain + `; there is "tarif_type", which is unknown`},
		{as[TariffRequest](`{"colour":"dynamic"}`), plain},
		{as[TariffRequest](`{"type":"dynamic","tarif_type":"dynamic"}`), plain},
		{as[SiteUpdateRequest](`{"tariff":{},"type":1}`), plain},
		{inQuery[MeterSearchQuery]("postcod=E1"), plain + `; there is "postcod", which is unknown`},
	} {
		faults := c.err.Error()
		if !strings.HasSuffix(faults, c.want) {
			t.Errorf("%q does not end in %q", faults, c.want)
		}
	}
}

// TestIgnored_Bounds sends many and long names: what is kept and said of them stays small.
func TestIgnored_Bounds(t *testing.T) {
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, `"n%d":{},`, i)
	}

	long := strings.Repeat("ü", 500_000)
	for _, c := range []struct {
		title, body  string
		count, lines int
	}{
		{"10,000 names", "{" + many.String() + `"x":1}`, 10_001, MaxIgnoredWarnings},
		{"a name of 1 MB", `{"` + long + `":1}`, 1, 1},
		{"100 names of 9,000 bytes", "{" + strings.Repeat(`"%`+long[:9000]+`":1,`, 1) + longNames(99, 9000) + "}", 100, MaxIgnoredWarnings},
	} {
		t.Run(c.title, func(t *testing.T) {
			var g Ignored
			var before, after runtime.MemStats
			body := []byte(c.body)

			runtime.GC()
			runtime.ReadMemStats(&before)
			if _, err := Decode[AssetUpdateRequest](body, &g); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)

			lines := g.Warnings(func([]string) bool { return true })
			if g.Count != c.count || len(g.Names) > MaxIgnored || len(lines) != c.lines {
				t.Errorf("%d counted, %d kept, %d lines", g.Count, len(g.Names), len(lines))
			}
			if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 256<<10 {
				t.Errorf("%d bytes are held", held)
			}
			bounded(t, &g)
			runtime.KeepAlive(body)
		})
	}
}

func longNames(n, size int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"%04d%s":1`, i, strings.Repeat("x", size))
	}
	return strings.Join(names, ",")
}

// bounded fails unless what is said of unknown names is short and can be sent.
func bounded(t *testing.T, g *Ignored) {
	t.Helper()
	field := g.Header()
	if len(field) > maxIgnoredHeader || strings.ContainsFunc(field, func(c rune) bool { return c < ' ' || c > '~' }) {
		t.Errorf("the header has %q", field)
	}
	if (field == "") != (g.Count == 0) || len(g.Names) > min(g.Count, MaxIgnored) {
		t.Errorf("%d names are counted, %d kept, the header has %q", g.Count, len(g.Names), field)
	}

	for _, line := range g.Warnings(func([]string) bool { return true }) {
		if !utf8.ValidString(line) || len(line) > 2000 || strings.ContainsAny(line, "\r\n\x00") {
			t.Errorf("the warning is %q", line)
		}
	}
}

// TestIgnored_Params sends unknown names in a query and a form.
func TestIgnored_Params(t *testing.T) {
	var g Ignored
	if _, err := Query[PageQuery](url.Values{"limit": {"1"}, "ofset": {"1"}, "a\r\nb": {""}}, &g); err != nil {
		t.Fatal(err)
	}
	if field := g.Header(); field != "a??b, ofset" {
		t.Errorf("the header has %q", field)
	}

	var broken Ignored
	if _, err := Query[PageQuery](url.Values{strings.Repeat("\x80", 100): {""}, "\xff": {""}}, &broken); err != nil || broken.Count != 2 {
		t.Errorf("%d names, %v", broken.Count, err)
	}
	bounded(t, &broken)
	if _, err := Form[TokenForm](url.Values{"username": {"a"}, "password": {"b"}, "scope": {""}}, &g); err != nil || g.Count != 2 {
		t.Errorf("%d names, %v: a field that was not filled in is counted", g.Count, err)
	}
}

// TestIgnored_Readings sends an unknown name in every reading of a batch: all are counted, and
// one is said.
func TestIgnored_Readings(t *testing.T) {
	reading := strings.Replace(oneReading, "{", `{"quality":1,`, 1)
	body := `{"readings":[` + strings.Repeat(reading+",", 999) + reading + `],"sorce":"x"}`
	var g Ignored
	n := 0
	for item, err := range Readings(strings.NewReader(body), &g) {
		if err != nil || item.Faults != nil {
			t.Fatal(err, item.Faults)
		}
		n++
	}

	if n != 1000 || g.Count != 1001 || len(g.Names) != MaxIgnored || g.Header() != "readings.0.quality" {
		t.Errorf("%d readings, %d names, %d kept, the header has %q", n, g.Count, len(g.Names), g.Header())
	}
}

// BenchmarkReadings_Unknown is BenchmarkReadings with an unknown name in each.
func BenchmarkReadings_Unknown(b *testing.B) {
	reading := strings.Replace(oneReading, "{", `{"quality":1,`, 1)
	body := `{"readings":[` + strings.Repeat(reading+",", 999) + reading + `]}`
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var g Ignored
		for range Readings(strings.NewReader(body), &g) {
		}
		if g.Count != 1000 {
			b.Fatal(g.Count)
		}
	}
}
