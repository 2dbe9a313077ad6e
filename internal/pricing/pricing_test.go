package pricing_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
)

var noon = time.Date(2026, 4, 14, 11, 0, 0, 0, time.UTC)

func TestKindOf(t *testing.T) {
	for source, want := range map[string]pricing.Kind{
		"nordpool-n2ex": pricing.DayAhead, "elexon-mid": pricing.Index, "elexon-mid-stream": pricing.Index,
		"elexon-system-price": pricing.Imbalance, "imbalance:forecast": pricing.Imbalance,
		"octopus": pricing.Retail, "octopus:C": pricing.Retail, "octopus:C:AGILE-1": pricing.Retail, "retail:agile": pricing.Retail,
		"sandbox": pricing.Invented, "file": pricing.File, "retailer": pricing.File, "my octopus": pricing.File, "": pricing.File,
	} {
		if got := pricing.KindOf(source); got != want {
			t.Errorf("%q is %s, want %s", source, got, want)
		}
	}
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		role   pricing.Role
		source string
		env    flex.Environment
		ok     bool
	}{
		{pricing.Planning, "nordpool-n2ex", flex.Production, true},
		{pricing.Planning, "octopus:C", flex.Production, true},
		{pricing.Planning, "elexon-system-price", flex.Production, false},
		{pricing.Settlement, "elexon-system-price", flex.Production, true},
		{pricing.Settlement, "octopus:C", flex.Production, false},
		{pricing.Contract, "retail:agile", flex.Production, false},
		{pricing.Contract, "file", flex.Production, true},
		{pricing.Settlement, "sandbox", flex.Production, false},
		{pricing.Settlement, "sandbox", flex.Sandbox, true},
	} {
		if err := pricing.Allowed(c.role, c.source, c.env); (err == nil) != c.ok {
			t.Errorf("%s=%s in %s: %v", c.role, c.source, c.env, err)
		}
	}
}

// TestRule holds what counts without a choice: as before where there is one source, and never a
// retail rate for settlement.
func TestRule(t *testing.T) {
	for _, c := range []struct {
		name                 string
		sources              []string
		planning, settlement []string
	}{
		{"none", nil, nil, nil},
		{"one file", []string{"file"}, []string{"file"}, []string{"file"}},
		{"the system price alone", []string{"elexon-system-price"}, []string{"elexon-system-price"}, []string{"elexon-system-price"}},
		{"a retail rate alone", []string{"octopus:C"}, []string{"octopus:C"}, nil},
		{"day-ahead and system price", []string{"elexon-system-price", "nordpool-n2ex"}, []string{"nordpool-n2ex"}, []string{"nordpool-n2ex"}},
		{"retail and system price", []string{"elexon-system-price", "octopus:C"}, []string{"octopus:C"}, []string{"elexon-system-price"}},
		{"two of the market", []string{"elexon-mid", "file"}, []string{"elexon-mid", "file"}, []string{"elexon-mid", "file"}},
		{"made up", []string{"sandbox"}, []string{"sandbox"}, []string{"sandbox"}},
		{"made up and a file", []string{"file", "sandbox"}, []string{"file", "sandbox"}, []string{"file", "sandbox"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := pricing.Selection{Environment: flex.Sandbox}
			for _, name := range c.sources {
				s.Sources = append(s.Sources, pricing.Source{Name: name, Added: noon.Add(-time.Hour)})
			}

			if got := s.SourcesAt(pricing.Planning, noon); !slices.Equal(got, c.planning) {
				t.Errorf("planning %v, want %v", got, c.planning)
			}
			if got := s.SourcesAt(pricing.Settlement, noon); !slices.Equal(got, c.settlement) {
				t.Errorf("settlement %v, want %v", got, c.settlement)
			}
			s.Environment = flex.Production
			if got := s.SourcesAt(pricing.Planning, noon); slices.Contains(got, pricing.SandboxSource) {
				t.Errorf("made-up prices count in production: %v", got)
			}
		})
	}
}

// TestLaterSource holds that a source that is added does not change what an earlier half-hour
// was settled at.
func TestLaterSource(t *testing.T) {
	s := pricing.Selection{Sources: []pricing.Source{{"elexon-system-price", noon.Add(-time.Hour)}, {"nordpool-n2ex", noon.Add(time.Hour)}}}
	for at, want := range map[time.Duration]string{-2 * time.Hour: "nordpool-n2ex", 0: "elexon-system-price", time.Hour: "nordpool-n2ex"} {
		if got := s.SourcesAt(pricing.Settlement, noon.Add(at)); !slices.Equal(got, []string{want}) {
			t.Errorf("%v after noon: %v, want %s", at, got, want)
		}
	}
}

func TestStretches(t *testing.T) {
	s := pricing.Selection{Sources: []pricing.Source{{"a", noon.Add(-time.Hour)}, {"b", noon.Add(-time.Hour)}}, Choices: []pricing.Choice{
		{Role: pricing.Settlement, From: time.UnixMicro(0), Source: "a"},
		{Role: pricing.Settlement, From: noon.Add(time.Hour), Source: "b"},
		{Role: pricing.Contract, From: noon.Add(2 * time.Hour), Source: "a"},
		{Role: pricing.Contract, From: noon.Add(3 * time.Hour)},
		{Role: pricing.Planning, From: noon, Source: "b"},
	}}
	var got []string
	for _, x := range s.Stretches(pricing.Settlement, flex.Span{From: noon, To: noon.Add(5 * time.Hour)}) {
		got = append(got, x.From.Format("15:04")+"-"+x.To.Format("15:04 ")+x.Sources[0])
	}
	want := []string{"11:00-12:00 a", "12:00-13:00 b", "13:00-14:00 a", "14:00-16:00 b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
