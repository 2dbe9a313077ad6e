package control

import (
	"flexd/internal/flex"
	"flexd/internal/store"
)

// CalledKind is the kind of a called asset.
type CalledKind string

// The kinds of assets that instructions call.
const (
	CalledCar     CalledKind = "car"
	CalledBattery CalledKind = "battery"
	CalledHeater  CalledKind = "heater"
)

// kindOfCalled returns the kind of a called asset.
func kindOfCalled(c *store.Called) CalledKind {
	if c.Battery {
		return CalledBattery
	}

	if c.Heater {
		return CalledHeater
	}

	return CalledCar
}

// notPaid says why nothing is paid, at an instruction's price, for the change of a called
// asset; empty if something is.
func notPaid(in *flex.Instruction, kind CalledKind) string {
	switch {
	case kind == CalledHeater:
		return "a tank or a heat pump has no flex events by which it could be paid"
	case in.Dispatched:
		return ""
	case in.Price == 0:
		return "the instruction does not say what it pays"
	}

	return ""
}
