package console_test

import (
	"strings"
	"testing"

	"flexd/internal/control"
)

// TestAsset_EarlierNight looks back, in the next evening when the car is plugged in again, at
// the night before. The shortfall of that night is not stated for the car as it is now.
func TestAsset_EarlierNight(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		s.event(shortfall, control.Event{Kind: control.PlugOut})
		d.goTo("2026-01-15T18:00:00Z")
		s.plugIn(shortfall, 5, "06:00", false, "00:30-05:30")
		s.serve()
		d.login()

		page := d.page("/console/assets/" + s.assets[shortfall].String() + "?from=2026-01-14&to=2026-01-14")
		d.wants(page, "Of 52 kWh asked for by Thu 15 Jan, 06:00 schedule ", "promised 37 kWh; 52 kWh were missing: ",
			"15 kWh as only off-peak hours were permitted", "37 kWh as it was unplugged at 21:40", "What it took is not known")
		if strings.Contains(page, "It will be") {
			t.Error("the plan of the night before is said to be that of the car as it is now")
		}
	})
}

// TestAsset_Skipped asks why a car was not charged whose household skipped the night.
func TestAsset_Skipped(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		if err := s.control.SkipPlan(t.Context(), s.Org, s.assets[shortfall]); err != nil {
			t.Fatal(err)
		}
		if err := s.control.EndSkip(t.Context(), s.Org, s.assets[shortfall]); err != nil {
			t.Fatal(err)
		}

		s.serve()
		d.login()
		d.wants(d.page("/console/assets/"+s.assets[shortfall].String()),
			"Nothing is to be charged until Thu 15 Jan, 06:00: a night was skipped, or the household is away.",
			"A skipped night or an absence was ended.")
	})
}
