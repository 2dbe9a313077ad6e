package control

import (
	"testing"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// TestCarsIn_StepOf: the words of a battery schedule beside cars, of which the battery neither takes nor gives anything.
func TestCarsIn_StepOf(t *testing.T) {
	for _, c := range []struct {
		cars    carActivity
		mode    battery.Mode
		net     flex.WattHours
		want    battery.Action
		deviate bool
	}{
		{carActivity{}, battery.ModeLock, -500, battery.AvoidImport, false},
		{carActivity{}, battery.ModeLock, 500, battery.AvoidExport, false},
		{carActivity{}, battery.ModeSelfUse, 500, battery.AvoidImport, true},
		{carActivity{charge: true}, battery.ModeLock, -500, battery.AvoidExport, false},
		{carActivity{charge: true}, battery.ModeSelfUse, 500, battery.AvoidExport, false},
		{carActivity{charge: true}, battery.ModeSelfUse, -500, battery.AvoidExport, false},
		{carActivity{charge: true}, battery.ModeCharge, 500, battery.ChargeMax, false},
		{carActivity{charge: true}, battery.ModeDischarge, 500, battery.DischargeMax, false},
		{carActivity{charge: true, maxDischarge: 5000}, battery.ModeLock, 500, battery.AvoidExport, false},
		{carActivity{maxDischarge: 5000}, battery.ModeLock, 500, battery.AvoidImport, false},
		{carActivity{maxDischarge: 5000}, battery.ModeFeedIn, -500, battery.AvoidImport, false},
		{carActivity{maxDischarge: 900}, battery.ModeLock, 500, battery.AvoidExport, false}, // the home draws 1000 W
	} {
		if got, deviate := c.cars.stepOf(c.mode, c.net); got != c.want || deviate != c.deviate {
			t.Errorf("%+v, %v at %d: %v, %v", c.cars, c.mode, c.net, got, deviate)
		}
	}
}
