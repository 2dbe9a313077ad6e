package control_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestInstruction_BatteryMinutes has a battery's inverter report each minute while it gives for an instruction: the report has what
// it measured, nothing of minutes that it left out or said twice, and what comes late.
func TestInstruction_BatteryMinutes(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		h.until("2026-01-15T04:10:00Z")
		sent := h.send(asks("2026-01-15T04:11:00Z", "2026-01-15T05:00:00Z", -3000))

		// Minutes are counted from 04:11.
		minute := func(m int) string { return sent.From.Add(time.Duration(m) * time.Minute).Format(time.RFC3339) }
		power := func(from, to int, kw float64) { h.read(id, flex.BatteryInverterPower, minute(from), minute(to), kw) }
		for m := range 30 {
			if m != 9 {
				power(m, m+1, -2.97)
			}
		}
		power(14, 16, -1)   // in the place of that of minute 14, and beside that of minute 15
		power(30, 35, 0.6)  // five minutes in one
		power(35, 49, -2.5) // too long to say when
		h.goTo("2026-01-15T05:30:00Z")

		check := func(what string, wants map[int]flex.Optional[flex.WattHours]) {
			t.Helper()
			report, err := h.service.ReportInstructionMinutes(h.Context(), h.Org, sent.ID)
			if err != nil || len(report.Minutes) != 109 || len(report.Assets) != 1 {
				t.Fatalf("%+v, %v", report, err)
			}

			metered, n := flex.WattHours(0), 0
			for m, got := range report.Assets[0].Minutes.Metered {
				if want, ok := wants[m]; ok && got != want {
					t.Errorf("%s: minute %d: %+v, not %+v", what, m, got, want)
				}
				if got.Given {
					metered += got.Value
					n++
				}

				if slot := report.Minutes[m]; slot.Metered != got.Value || (slot.NumMetered == 1) != got.Given || got.Given && slot.MeteredBaseline != report.Assets[0].Minutes.Baseline[m] {
					t.Errorf("%s: minute %d of all: %+v, not %+v", what, m, slot, got)
				}
			}

			if n != len(report.Minutes)-unmetered(wants) {
				t.Errorf("%s: %d minutes are metered, with %d Wh", what, n, metered)
			}
		}

		none := flex.Optional[flex.WattHours]{}
		gave := flex.Optional[flex.WattHours]{Value: -50, Given: true}
		drew := flex.Optional[flex.WattHours]{Value: 10, Given: true}
		wants := map[int]flex.Optional[flex.WattHours]{0: gave, 8: gave, 9: none, 10: gave, 14: {Value: -17, Given: true}, 15: none, 16: gave, 29: gave, 30: drew, 34: drew}
		for m := 35; m < 109; m++ {
			wants[m] = none
		}
		check("at first", wants)

		power(9, 10, -3.03) // late
		power(0, 1, 0.6)    // a correction
		wants[9] = flex.Optional[flex.WattHours]{Value: -51, Given: true}
		wants[0] = drew
		check("late", wants)

		sums, err := h.service.ReportInstruction(h.Context(), h.Org, sent.ID)
		if err != nil || sums.Minutes != nil {
			t.Errorf("%+v, %v", sums, err)
		}
	})
}

// unmetered counts the minutes that are not to be metered.
func unmetered(wants map[int]flex.Optional[flex.WattHours]) int {
	n := 0
	for _, want := range wants {
		if !want.Given {
			n++
		}
	}
	return n
}
