package ocppserver

import (
	"encoding/json"
	"testing"
)

// FuzzStationEvent reads what a station of OCPP 2.0.1 says of a transaction: whatever it
// writes, its register is a number that can be kept in a file.
func FuzzStationEvent(f *testing.F) {
	f.Add([]byte(`{"eventType":"Ended","transactionInfo":{"transactionId":"x"},"meterValue":[{"timestamp":"2026-01-15T10:30:00Z","sampledValue":[{"value":5.5,"unitOfMeasure":{"unit":"kWh"}}]}]}`))
	f.Add([]byte(`{"evse":{"id":99},"meterValue":{"sampledValue":{"value":1e308,"unitOfMeasure":{"unit":"kWh","multiplier":2147483647}}}}`))
	f.Add([]byte(`{"meterValue":[{"sampledValue":[{"value":"0","unitOfMeasure":{"multiplier":9999}}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m transactionEvent
		if json.Unmarshal(text, &m) != nil {
			return
		}

		if _, err := json.Marshal(registerOf(plainValues(m.Values))); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

// TestStation_Register: the end of a transaction may bring all of its samples along, in any
// order; the register is the latest one at the outlet, in Wh.
func TestStation_Register(t *testing.T) {
	for text, want := range map[string]float64{
		`[]`: -1,
		`[{"timestamp":"2026-01-15T12:00:00Z","sampledValue":[{"value":7,"unitOfMeasure":{"unit":"kWh"}}]},
		  {"timestamp":"2026-01-15T10:00:00Z","sampledValue":[{"value":5000,"context":"Transaction.Begin"}]}]`: 7000,
		`[{"timestamp":"2026-01-15T12:00:00Z","sampledValue":[{"value":7,"unitOfMeasure":{"unit":"Wh","multiplier":3}},
		  {"value":2,"phase":"L1"},{"value":3,"measurand":"Power.Active.Import"},{"value":4,"location":"EV"}]}]`: 7000,
	} {
		var values list[stationValue]
		if err := json.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		if got := registerOf(plainValues(values)).value; got != want {
			t.Errorf("%s is read as %v, not %v", text, got, want)
		}
	}
}

// TestStation_Refusals: what is not served is refused in the form of the standard's schemas.
// The library of the other tests takes these answers for invalid: it wants what may be empty
// or left out.
func TestStation_Refusals(t *testing.T) {
	c := &charger{b: New(Settings{}), id: "CP1"}
	const why = `"status":"Failed","statusInfo":{"reasonCode":"UnsupportedRequest","additionalInfo":"ISO 15118 is not served"}`
	for action, want := range map[string]string{
		"Get15118EVCertificate": `{` + why + `,"exiResponse":""}`,
		"GetCertificateStatus":  `{` + why + `}`,
	} {
		answer, err := c.takeStation(action, json.RawMessage(`{}`))
		text, _ := json.Marshal(answer)
		if err != nil || string(text) != want {
			t.Errorf("%s is answered %s %v", action, text, err)
		}
	}
}
