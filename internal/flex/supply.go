package flex

import "math"

// Supply is what a site's connection to the grid can carry, each way.
type Supply struct {
	Import Watts
	Export Watts
	Set    bool // it was given for the site; else it is the default
	Fuse   Fuse // that Import was given as; zero if it was given as a power
}

// Fuse is a main fuse: so many amperes for each phase, on 1 or 3 phases.
type Fuse struct {
	Amperes float64
	Phases  int
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
//
// A fuse is the import, and an import in watts is no fuse.
type SupplyChange struct {
	Import, Export *Watts
	Fuse           *Fuse
}

// Apply returns the supply with the change.
func (c SupplyChange) Apply(s Supply) Supply {
	s.Set = s.Set || c != SupplyChange{}
	if c.Import != nil {
		s.Import, s.Fuse = *c.Import, Fuse{}
	}
	if c.Fuse != nil {
		s.Import, s.Fuse = c.Fuse.Carries(), c.Fuse.rounded()
	}
	if c.Export != nil {
		s.Export = *c.Export
	}

	return s
}

// PhaseVoltage is the nominal voltage of a phase against neutral, by BS EN 50160, in volts.
const PhaseVoltage = 230

// Bounds of a main fuse, in amperes for each phase.
const (
	FuseMin = 5
	FuseMax = 800
)

// Check refuses a fuse that none is: Invalid, with what would be right.
func (f Fuse) Check() error {
	known := f.Phases == 1 || f.Phases == 3
	usual := f.Amperes >= FuseMin && f.Amperes <= FuseMax // false for NaN
	if !known || !usual {
		return Fail(
			Invalid,
			"a main fuse of %g A on %d phases: give 5 to 800 A for each phase, and 1 or 3 phases",
			f.Amperes,
			f.Phases,
		)
	}

	return nil
}

// Carries is what a main fuse carries, where what is drawn lies evenly on its phases. What is planned behind it
// keeps each phase by itself too.
func (f Fuse) Carries() Watts {
	return Watts(math.Round(
		f.rounded().Amperes * PhaseVoltage * float64(f.Phases),
	))
}

// MilliAmperes is the fuse's current for each phase, as it is kept.
func (f Fuse) MilliAmperes() int64 { return int64(math.Round(f.Amperes * 1000)) }

// rounded is the fuse as it is kept.
func (f Fuse) rounded() Fuse {
	f.Amperes = float64(f.MilliAmperes()) / 1000
	return f
}
