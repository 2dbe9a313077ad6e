package flex

// Supply is what a site's connection to the grid can carry, each way.
type Supply struct {
	Import, Export Watts
	Set            bool // it was given for the site; else it is the default
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
