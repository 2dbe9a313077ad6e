package wire

import "testing"

// TestIntent_NeedMax: 20,000 are watt-hours, which no car needs in kWh.
func TestIntent_NeedMax(t *testing.T) {
	for need, right := range map[string]bool{"0": true, "2000": true, "2000.001": false, "20000": false} {
		_, err := Decode[Intent]([]byte(`{"energy_required_kwh":`+need+`,"ready_by":"2026-07-01T07:00:00Z"}`), nil)
		if (err == nil) != right {
			t.Errorf("%s kWh: %v", need, err)
		}
		_, err = Decode[WhatIfIntent]([]byte(`{"energy_required_kwh":`+need+`}`), nil)
		if (err == nil) != right {
			t.Errorf("%s kWh of a what-if: %v", need, err)
		}
	}
}
