package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestPricesRoles chooses sources on the command line.
func TestPricesRoles(t *testing.T) {
	at := store{Database: freshDatabase(t), Environment: "production"}
	h, err := at.openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.DB.AddOrg(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}

	for _, source := range []string{"nordpool-n2ex", "agreed", "retail:agile"} {
		text := "start,price_gbp_per_mwh\n2026-04-14T22:00:00Z,81.5\n"
		if err := (&pricesImport{store: at, File: "-", Source: source}).Run(t.Context(), console{in: strings.NewReader(text), out: io.Discard, err: io.Discard}); err != nil {
			t.Fatal(err)
		}
	}
	h.Close()

	for _, c := range []struct {
		values  []string
		want    []string
		refused string
	}{
		{nil, []string{"planning    agreed, nordpool-n2ex  rule", "! no settlement source is chosen"}, ""},
		{[]string{"planning=nordpool-n2ex", "settlement"}, nil, "role=source"},
		{[]string{"planning=nordpool-n2ex", "payment=agreed"}, nil, "no role"},
		{nil, []string{"planning    agreed, nordpool-n2ex  rule"}, ""}, // nothing was chosen
		{[]string{"planning=nordpool-n2ex", "settlement=agreed"}, []string{"planning    nordpool-n2ex  choice  nordpool-n2ex always", "settlement  agreed         choice"}, ""},
		{[]string{"settlement=retail:agile"}, nil, "no market pays it"},
		{[]string{"planning=agreed", "settlement=retail:agile"}, nil, "no market pays it"},
		{nil, []string{"planning    nordpool-n2ex  choice  nordpool-n2ex always"}, ""}, // the first of the two was not chosen either
		{[]string{"settlement"}, nil, "role=source"},
		{[]string{"settlement="}, []string{"settlement  agreed, nordpool-n2ex  rule    by rule always"}, ""},
	} {
		var out bytes.Buffer
		err := (&pricesRoles{store: at, Name: "acme", Values: c.values}).Run(t.Context(), console{out: &out, err: io.Discard})

		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%v: %v, want %s", c.values, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}

		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v: %s lacks %q", c.values, out.String(), want)
			}
		}
	}
}
