package control

import (
	"testing"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// TestCarsIn_StepOf: the words of a battery schedule beside cars, of which the battery neither takes nor gives anything.
func TestCarsIn_StepOf(t *testing.T) {
	for _, c := range []struct {
		cars    carsIn
		mode    battery.Mode
		net     flex.WattHours
		want    battery.Action
		deviate bool
	}{
		{carsIn{}, battery.ModeLock, -500, battery.AvoidImport, false},
		{carsIn{}, battery.ModeLock, 500, battery.AvoidExport, false},
		{carsIn{}, battery.ModeSelfUse, 500, battery.AvoidImport, true},
		{carsIn{charge: true}, battery.ModeLock, -500, battery.AvoidExport, false},
		{carsIn{charge: true}, battery.ModeSelfUse, 500, battery.AvoidExport, false},
		{carsIn{charge: true}, battery.ModeSelfUse, -500, battery.AvoidExport, false},
		{carsIn{charge: true}, battery.ModeCharge, 500, battery.ChargeMax, false},
		{carsIn{charge: true}, battery.ModeDischarge, 500, battery.DischargeMax, false},
		{carsIn{charge: true, given: 5000}, battery.ModeLock, 500, battery.AvoidExport, false},
		{carsIn{given: 5000}, battery.ModeLock, 500, battery.AvoidImport, false},
		{carsIn{given: 5000}, battery.ModeFeedIn, -500, battery.AvoidImport, false},
		{carsIn{given: 900}, battery.ModeLock, 500, battery.AvoidExport, false}, // the home draws 1000 W
	} {
		if got, deviate := c.cars.stepOf(c.mode, c.net); got != c.want || deviate != c.deviate {
			t.Errorf("%+v, %v at %d: %v, %v", c.cars, c.mode, c.net, got, deviate)
		}
	}
}
