package main

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestSettle settles a day again, as it was known before a reading was corrected and as it is
// known now. The command line prints the differences.
func TestSettle(t *testing.T) {
	at := store{Database: freshDatabase(t), Environment: "sandbox"}
	h, err := at.openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	seed := storetest.NewSeed(t, h.DB, at.Database)
	site := seed.Site()
	asset := seed.Asset(site, flex.Charger, 0)

	seed.Consent(time.UnixMicro(1))
	day := flex.DayAt(time.Now()).Add(-3)
	put := func(value flex.Micro) {
		t.Helper()
		err := h.DB.Write(t.Context(), seed.Org, func(tx *records.Tx) error {
			return tx.PutReadings(t.Context(), []flex.Reading{{AssetID: asset, Span: day.Period(36).Span(), Label: flex.ChargerEnergy, Value: value}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	err = h.DB.WriteAll(t.Context(), func(all *records.All) error {
		p := flex.PricedPeriod{Period: day.Period(36), Price: flex.FromGBPPerMWh(100), Known: true}
		_, err := all.AddPublication(t.Context(), records.Publication{Source: "test", PublishedAt: day.Start(), Span: p.Period.Span()}, []flex.PricedPeriod{p})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	seed.Readings(day.Add(-60).Period(1), 60*48)
	seed.Events(day, 36, 36)
	put(1e6)
	known := time.Now()
	put(2e6)
	of := ofOrg{store: at, Org: "seeded"}
	var out bytes.Buffer
	c := console{out: &out, err: io.Discard}

	run := regexp.MustCompile(`run     ([0-9a-f-]{36})\nevents  1\n`)
	again := func(known time.Time) (id flex.RunID) {
		t.Helper()
		out.Reset()
		if err := (&settleAgain{ofOrg: of, From: day.String(), To: day.String(), Site: site.String(), KnownAt: known}).Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}

		found := run.FindStringSubmatch(out.String())
		if found == nil {
			t.Fatalf("settled again: %s", out.String())
		}
		if err := id.UnmarshalText([]byte(found[1])); err != nil {
			t.Fatal(err)
		}
		return id
	}

	then, now := again(known), again(time.Time{})
	diff := func(a, b flex.RunID, want ...string) {
		t.Helper()
		out.Reset()
		if err := (&settleDiff{ofOrg: of, Before: a, After: b}).Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}

		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("the difference is %s, want %s", out.String(), w)
			}
		}
	}

	diff(then, now, "period 36")
	diff(now, now, "The two runs say the same.")
	out.Reset()
	if err := (&settleRuns{ofOrg: of, Limit: 10}).Run(t.Context(), c); err != nil || strings.Count(out.String(), "again") != 2 {
		t.Errorf("the runs: %s %v", out.String(), err)
	}
}
