package market

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
)

func TestReadPrices(t *testing.T) {
	got, err := ReadPrices(strings.NewReader("Price_GBP_per_MWh,note,start\n" +
		"-12.345,x,2026-04-14T23:00:00+01:00\n" +
		",y,2026-04-14T22:30:00Z\n" +
		"6000,z,2026-04-14T21:30:00Z\n" +
		"0,,2026-04-14T23:00:00Z\n"))
	if err != nil {
		t.Fatal(err)
	}

	want := "[21:30 6000 true 22:00 -12.345 true 22:30 0 false 23:00 0 true]"
	var parts []string
	for _, p := range got {
		parts = append(parts, fmt.Sprint(p.Period.Start().Format("15:04"), " ", p.Price.GBPPerMWh(), " ", p.Known))
	}
	if s := fmt.Sprint(parts); s != want {
		t.Errorf("%s, want %s", s, want)
	}
}

func TestReadPricesRefuses(t *testing.T) {
	for body, want := range map[string]string{
		"":                                                      "holds no prices",
		"2026-04-14T22:00:00Z,1,2\n":                            "line 2: wrong number of fields",
		"2026-04-14 22:00,1\n":                                  `line 2: start: "2026-04-14 22:00"`,
		"2026-04-14T22:00:00,1\n":                               "line 2: start",
		"2026-04-14T22:15:00Z,1\n":                              "line 2: start: \"2026-04-14T22:15:00Z\" is not the start",
		"2026-04-14T22:00:00.5Z,1\n":                            "not the start",
		"2026-04-14T22:00:00Z,1\n,2\n":                          `line 3: start: ""`,
		"2026-04-14T22:00:00Z,x\n":                              `line 2: price_gbp_per_mwh: "x"`,
		"2026-04-14T22:00:00Z,NaN\n":                            `line 2: price_gbp_per_mwh: "NaN"`,
		"2026-04-14T22:00:00Z,Inf\n":                            "beyond",
		"2026-04-14T22:00:00Z,6000.01\n":                        "beyond",
		"2026-04-14T22:00:00Z,-6000.01\n":                       "beyond",
		"2026-04-14T22:00:00Z,1\n2026-04-14T23:00:00+01:00,2\n": "line 3: start: line 2 has the same half-hour",
	} {
		got, err := ReadPrices(strings.NewReader("start,price_gbp_per_mwh\n" + body))
		if got != nil || flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", body, got, err, want)
		}
	}
}

func TestReadPricesTakesAtMost(t *testing.T) {
	var b strings.Builder
	b.WriteString("start,price_gbp_per_mwh\n")
	at := flex.PeriodAt(time.Unix(0, 0))
	for i := range MaxRows {
		b.WriteString(at.Add(i).Start().Format(time.RFC3339) + ",1\n")
	}

	if got, err := ReadPrices(strings.NewReader(b.String())); err != nil || len(got) != MaxRows {
		t.Errorf("%d, %v", len(got), err)
	}
	b.WriteString(at.Add(MaxRows).Start().Format(time.RFC3339) + ",1\n")
	if _, err := ReadPrices(strings.NewReader(b.String())); flex.KindOf(err) != flex.Invalid {
		t.Errorf("one more: %v", err)
	}
}

func FuzzReadPrices(f *testing.F) {
	f.Add("start,price_gbp_per_mwh\n2026-04-14T22:00:00Z,1\n2026-04-14T22:30:00+00:00,\n")
	f.Add("price_gbp_per_mwh,start\n1e3,2026-04-14T22:00:00Z\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ReadPrices(strings.NewReader(text))
		if err != nil {
			if flex.KindOf(err) != flex.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}

		for i, p := range got {
			if i > 0 && !got[i-1].Period.Before(p.Period) || p.Price > MaxPrice || p.Price < -MaxPrice {
				t.Fatalf("%q: %v", text, got)
			}
		}
	})
}
