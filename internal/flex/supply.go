package flex

import "math"

// Supply is what a site's connection to the grid can carry, each way.
type Supply struct {
	Import Watts
	Export Watts
	Set    bool // it was given for the site; else it is the default
}

// Source says in a word whether the supply was given.
func (s Supply) Source() string {
	if s.Set {
		return "set"
	}
	return "default"
}

// DefaultSupply is taken for a site whose capacity was never given: 100 A single phase at
// 230 V, the largest usual supply of a British home.
var DefaultSupply = Supply{Import: 23_000, Export: 23_000}

// The limits of a supply's capacity. A site that may not export has an export capacity of 0;
// one that cannot import is none.
const (
	SupplyImportMin Watts = 1_000
	SupplyMax       Watts = 10_000_000 // a connection at high voltage
)

// SupplyChange is what is given of a supply; what is nil stays.
type SupplyChange struct{ Import, Export *Watts }

// Apply returns the supply with the change.
func (c SupplyChange) Apply(s Supply) Supply {
	s.Set = s.Set || c != SupplyChange{}
	if c.Import != nil {
		s.Import = *c.Import
	}
	if c.Export != nil {
		s.Export = *c.Export
	}

	return s
}

// PhaseVoltage is the nominal voltage of a phase against neutral, by BS EN 50160, in volts.
const PhaseVoltage = 230

// FuseCapacity is what a main fuse of so many amperes for each phase carries on 1 or 3 phases, where
// what is drawn lies evenly on them. The phase that carries most is not known: whoever has
// single-phase chargers on one of three phases gives 1, which counts everything as if it were there.
func FuseCapacity(amperes float64, phases int) (Watts, error) {
	known := phases == 1 || phases == 3
	usual := amperes >= 5 && amperes <= 800 // false for NaN
	if !known || !usual {
		return 0, Fail(
			Invalid,
			"a main fuse of %g A on %d phases: give 5 to 800 A for each phase, and 1 or 3 phases",
			amperes,
			phases,
		)
	}

	return Watts(math.Round(amperes * PhaseVoltage * float64(phases))), nil
}
