package wire

import (
	"errors"
	"strings"
	"testing"

	"flexd/internal/flex"
)

const oneReading = `{"asset_id":"b2c3d4e5-f6a7-8901-bcde-f23456789012","start_timestamp":"2026-01-15T10:00:00Z","end_timestamp":"2026-01-15T10:30:00Z","value":3.7,"label":"charger_consumption_energy_kwh"}`

func TestDecode_EveryFaultAtOnce(t *testing.T) {
	_, err := Decode[IntentEventRequest]([]byte(`{"intent":{"energy_required_kwh":-1,"charging_mode":"fast"}}`))
	e, ok := errors.AsType[*flex.Error](err)
	if !ok {
		t.Fatal(err)
	}
	got, err := Encode(ValidationErrors(e.Faults))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"detail":[` +
		`{"loc":["body","intent","energy_required_kwh"],"msg":"ensure this value is greater than or equal to 0","type":"value_error.number.not_ge"},` +
		`{"loc":["body","intent","charging_mode"],"msg":"value is not a valid enumeration member; permitted: 'maximise_charging_time', 'minimise_charging_time'","type":"type_error.enum"},` +
		`{"loc":["body","intent","ready_by"],"msg":"field required","type":"value_error.missing"}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReadings_OneBadReadingDoesNotEndTheBatch(t *testing.T) {
	body := `{"readings":[` + oneReading + `,{},` + strings.Replace(oneReading, "3.7", `"3.7"`, 1) + `,` + oneReading + `]}`
	var got []int
	for item, err := range Readings(strings.NewReader(body)) {
		if err != nil {
			t.Fatal(err)
		}
		n := len(item.Faults)
		if !item.Identified {
			n = -n
		}
		got = append(got, n)
	}
	want := []int{0, -5, 1, 0} // faults of each, negative where the reading cannot be named
	if len(got) != 4 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || got[3] != want[3] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func BenchmarkReadings(b *testing.B) {
	body := `{"readings":[` + strings.Repeat(oneReading+",", 999) + oneReading + `]}`
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		n := 0
		for item, err := range Readings(strings.NewReader(body)) {
			if err != nil || item.Faults != nil {
				b.Fatal(err, item.Faults)
			}
			n++
		}
		if n != 1000 {
			b.Fatal(n)
		}
	}
}
