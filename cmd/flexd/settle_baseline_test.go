package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
)

func baselineErrors(t *testing.T, s settleBaseline) (string, error) {
	t.Helper()
	var out bytes.Buffer
	s.Begin, s.End = "16:00", "17:00"
	if s.Power == 0 {
		s.Power = 7.4
	}
	err := s.Run(t.Context(), console{out: &out, err: io.Discard})
	return strings.Join(strings.Fields(out.String()), " "), err // a blank between any two words
}

// A home of 200 Wh a half-hour with a car on one evening: 3.5 kWh at 7 kW from 16:00 on.
func TestSettleBaselineError_File(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}

	var home strings.Builder
	home.WriteString("start,load_kwh\n")
	first := time.Date(2025, 11, 3, 0, 0, 0, 0, time.UTC) // a Monday
	for i := range 48 * 24 {
		fmt.Fprintf(&home, "%s,0.2\n", first.Add(time.Duration(i)*flex.HalfHour).Format(time.RFC3339))
	}

	readings := write("home.csv", home.String())
	stays := write("stays.csv", "plugged_in,plugged_out,energy_kwh,power_kw\n2025-11-26T16:00:00Z,2025-11-27T07:00:00Z,3.5,7\n")
	out, err := baselineErrors(t, settleBaseline{Readings: readings, Sessions: stays, From: "2025-11-26"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"METHOD DAYS HALF-HOURS MEAN WH BIAS WH BIAS % ERROR WH",
		"mean 1 2 1950 +1750.0 +89.7 1750",
		"nominated 1 2 1950 +0.0 +0.0 0",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}

	for name, s := range map[string]settleBaseline{
		"no file":               {Readings: filepath.Join(dir, "none.csv")},
		"stays that end before": {Readings: readings, Sessions: write("a.csv", "plugged_in,plugged_out,energy_kwh\n2025-11-26T16:00:00Z,2025-11-26T15:00:00Z,3\n")},
		"no energy":             {Readings: readings, Sessions: write("b.csv", "plugged_in,plugged_out,energy_kwh\n2025-11-26T16:00:00Z,2025-11-26T17:00:00Z,lots\n")},
		"no power":              {Readings: readings, Power: -1},
		"days the wrong way":    {Readings: readings, From: "2025-11-26", To: "2025-11-25"},
	} {
		if _, err := baselineErrors(t, s); err == nil {
			t.Errorf("%s: no failure", name)
		}
	}
}

// The same of an organisation's site, whose car has a meter of its own.
func TestSettleBaselineError_Org(t *testing.T) {
	at := store{Database: freshDatabase(t), Environment: "sandbox"}
	h, err := at.openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	seed := storetest.NewSeed(t, h.DB, at.Database)
	asset := seed.Asset(seed.Site(), flex.Charger, 7400)

	day := flex.DayAt(time.Now()).Add(-1)
	seed.Consent(day.Add(-70).Start())
	if settle.ClockChange(day) {
		day = day.Add(-1)
	}
	read := func(p flex.Period, label flex.Label, kwh float64) flex.Reading {
		return flex.Reading{AssetID: asset, Span: p.Span(), Label: label, Value: flex.Micro(kwh * 1e6)}
	}

	in, out := day.Period(33).Start(), day.Period(36).End()
	err = h.DB.Write(t.Context(), seed.Org, func(tx *records.Tx) error {
		rs := []flex.Reading{read(day.Period(33), flex.ChargerEnergy, 3.5), read(day.Period(34), flex.ChargerEnergy, 0),
			read(day.Period(35), flex.ChargerEnergy, 0), read(day.Period(36), flex.ChargerEnergy, 0)}

		for back := range 61 {
			for n := 33; n <= 34; n++ {
				kwh := 0.2
				if back == 0 && n == 33 {
					kwh += 3.5
				}
				rs = append(rs, read(day.Add(-back).Period(n), flex.ProvisionalConsumption, kwh))
			}
		}

		return tx.PutReadings(t.Context(), rs)
	})
	if err != nil {
		t.Fatal(err)
	}

	seed.Exec(`INSERT INTO session (id, org_id, asset_id, site_id, number, plugged_in_at, plugged_out_at, generation)
		SELECT id, org_id, id, site_id, 1, $1, $2, 0 FROM asset`, in.UnixMicro(), out.UnixMicro())
	seed.QueueEnded()

	text, err := baselineErrors(t, settleBaseline{ofOrg: ofOrg{store: at, Org: "seeded"}, From: day.String(), To: day.String()})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "mean 1 2 1950 +1750.0") || !strings.Contains(text, "nominated 1 2 1950 +0.0") {
		t.Errorf("printed\n%s", text)
	}

	seed.Events(day, 36, 36)
	if text, err = baselineErrors(t, settleBaseline{ofOrg: ofOrg{store: at, Org: "seeded"}, From: day.String(), To: day.String()}); err != nil || !strings.Contains(text, "mean 0") {
		t.Errorf("a day of an event counts: %v\n%s", err, text)
	}
	if _, err := baselineErrors(t, settleBaseline{ofOrg: ofOrg{store: at, Org: "seeded"}, From: "2024-01-01"}); flex.KindOf(err) != flex.Invalid {
		t.Errorf("more than %d days: %v", 400, err)
	}
}
