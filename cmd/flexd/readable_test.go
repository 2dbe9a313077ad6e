package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/keyring"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
)

// The data that is stored on a site can be read by the person whom it concerns, as JSON and as
// a page: with readable instants, units and names.
func TestExport_Readable(t *testing.T) {
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, records.Options{Environment: flex.Sandbox})
	seed := storetest.NewSeed(t, db, url)
	site := seed.Site(flex.FullScheduleMethod)
	charger := seed.Asset(site, flex.Charger, 7400)
	at := time.Date(2026, 1, 15, 9, 30, 0, 0, time.UTC).UnixMicro()
	seed.Exec(`INSERT INTO reading (at, asset_id, label, seconds, value, known_at) VALUES ($1, $2, 1, 1800, 2500000, $3)`, at, charger.Bytes(), at)

	// The store's texts are sealed under the keys of tests.
	keyFile := filepath.Join(t.TempDir(), "flexd.key")
	line := base64.StdEncoding.EncodeToString(append([]byte{1}, make([]byte, keyring.KeySize-1)...))
	if err := os.WriteFile(keyFile, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	export := func(format string) string {
		t.Helper()
		var out, wrong strings.Builder
		args := []string{"export", site.String(), "--format", format, "--database", url, "--environment", "sandbox", "--key-file", keyFile}
		if code := run(t.Context(), args, console{out: &out, err: &wrong}); code != exitDone {
			t.Fatalf("%s: %s", format, wrong.String())
		}
		return out.String()
	}

	var all []record
	if err := json.Unmarshal([]byte(export("json")), &all); err != nil {
		t.Fatal(err)
	}

	for _, r := range all {
		for _, row := range r.Rows {
			for name, value := range row {
				if n, number := value.(float64); number && n > 1e14 {
					t.Errorf("%s: %s is %v, an instant as a number", r.Title, name, n)
				}
			}
		}
	}

	for _, text := range []string{export("json"), export("html")} {
		for _, want := range []string{"7.400 kW", site.String(), "2026-01-15T09:30:00Z", "Charger consumption energy", "2.500 kWh"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is not in %s", want, text)
			}
		}
	}
	if machine := export("machine"); !strings.Contains(machine, `"asset"`) {
		t.Errorf("the machine's form is %s", machine)
	}
}

// Money, instants and readings have their units whatever their columns are called.
func TestReadable_Units(t *testing.T) {
	const at = int64(1768469400000000) // 2026-01-15T09:30:00Z
	kept := map[string][]map[string]any{
		"called_asset":     {{"cost": int64(12_300)}},
		"delivery":         {{"took": int64(2876)}},
		"deviation":        {{"at": at, "label": int64(13)}},
		"enrolment":        {{"since": at}},
		"held_reading":     {{"label": int64(16), "value": int64(55_500_000)}},
		"inputs":           {{"ready_by_local": int64(25_200), "ready_by_offset": int64(3600)}},
		"ledger":           {{"credit": int64(-1234), "kind": "withdrawn"}},
		"posting":          {{"amount": int64(250)}},
		"reading":          {{"at": at, "label": int64(19), "value": int64(48_250_000)}},
		"refused_reading":  {{"label": "solar_power_kw", "count": int64(3)}},
		"session":          {{"ready_by": at, "number": int64(4)}},
		"withdrawal":       {{"amount": int64(1000), "moves": int64(2)}},
		"enrolment_change": {{"at": nil}},
	}
	want := map[string]map[string]any{
		"Called asset":     {"Cost": "£0.0123"},
		"Delivery":         {"Took": "2.876ms"},
		"Deviation":        {"At": "2026-01-15T09:30:00Z", "Label": "Boundary lifetime import energy"},
		"Enrolment":        {"Since": "2026-01-15T09:30:00Z"},
		"Held reading":     {"Label": "Battery state of charge", "Value": "55.500 %"},
		"Inputs":           {"Ready by local": "07:00:00", "Ready by offset": "UTC+01:00"},
		"Ledger":           {"Credit": "-£12.34", "Kind": "withdrawn"},
		"Posting":          {"Amount": "£2.50"},
		"Reading":          {"At": "2026-01-15T09:30:00Z", "Label": "Tank temperature", "Value": "48.250 °C"},
		"Refused reading":  {"Label": "solar_power_kw", "Count": int64(3)},
		"Session":          {"Ready by": "2026-01-15T09:30:00Z", "Number": int64(4)},
		"Withdrawal":       {"Amount": "£10.00", "Moves": int64(2)},
		"Enrolment change": {"At": nil},
	}

	got := map[string]map[string]any{}
	for _, r := range readable(kept) {
		got[r.Title] = r.Rows[0]
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What a client said by an event has units and times of day, whichever of its parts were there.
func TestReadable_Event(t *testing.T) {
	const intent = `{"intent":{"Need":10000,"ReadyBy":"2026-01-01T06:30:00Z","ReadyByOffset":3600000000000,"ReadyByLocal":%s,"Estimated":null,` +
		`"MayChargePeak":true,"Mode":"minimise_charging_time","ReceivedAt":"0001-01-01T00:00:00Z"},"tariff":{"OffPeak":"00:30-05:30","Zone":"Europe/London","Type":""}}`
	const asked = "; mode minimise_charging_time; at peak times too if need be; off-peak 00:30-05:30 Europe/London"

	cases := map[string]string{
		fmt.Sprintf(intent, "25200000000000"):                                        "10.000 kWh by 07:00:00" + asked,
		fmt.Sprintf(intent, "null"):                                                  "10.000 kWh by 07:30:00" + asked,
		`{"vehicle_w":3600,"tariff":{"OffPeak":"","Zone":"","Type":"dynamic"}}`:      "no off-peak hours; the car takes 3.600 kW",
		`{"end_at":"2026-01-15T20:00:00Z"}`:                                          "until 2026-01-15T20:00:00Z",
		`{"blocks":[{"Start":"2026-01-15T20:00:00Z","End":"2026-01-15T21:00:00Z"}]}`: "charging from 2026-01-15T20:00:00Z to 2026-01-15T21:00:00Z",
		"{}":                        "{}",
		`[{"Start":"x","End":"y"}]`: `[{"Start":"x","End":"y"}]`,
	}

	for record, want := range cases {
		rows := readable(map[string][]map[string]any{"asset_event": {{"told": record}}})
		if got := rows[0].Rows[0]["Told"]; got != want {
			t.Errorf("%s reads\n%v, want\n%s", record, got, want)
		}
	}
}
