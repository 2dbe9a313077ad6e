package flex

// SinglePhaseMax is the most that a charger on one phase gives: 32 A at 230 V, and what makers round it up to.
const SinglePhaseMax Watts = 8000

// ChargerMax is the most that a charger on three phases gives: 32 A at 230 V on each, in W.
const ChargerMax Watts = 3 * 32 * PhaseVoltage

// PhasePower is the least that a car charges with on each phase: 6 A (IEC 61851-1) at 230 V, in W.
const PhasePower Watts = 6 * PhaseVoltage

// Wiring is how a device lies on the phases of its site.
type Wiring struct {
	Phases int // 1 or 3; another number counts as 1
	Phase  int // of a device on one phase of three, which: 1, 2 or 3; 0 for not known
}

// LeastPower is the least that a car charges with on so many phases, in W. Phases that are not known count as
// one.
func LeastPower(phases int) Watts { return PhasePower * Watts(max(1, phases)) }

// PhasesOf is how many phases an asset draws on: as it was given, else three if its nominal power is more than
// one phase gives (SinglePhaseMax), else one. 0 is not given, and no power one that is not known.
func PhasesOf(given int, power *Watts) int {
	if given > 0 {
		return given
	}

	if power != nil && *power > SinglePhaseMax {
		return 3
	}

	return 1
}

// ProfilePhases is the number of phases that the profiles of an asset name, by its own field: 3 if that says so, else 0 for
// the 1 that is published. What is guessed by its power is not named: the charger may be on one phase.
func ProfilePhases(given int) int {
	if given == 3 {
		return 3
	}
	return 0
}

// PhaseNames are the names of the phases, by their numbers; that of one that is not known is empty.
var PhaseNames = [4]string{"", "L1", "L2", "L3"}

// Wiring is how the asset lies on the phases of its site.
func (a *Asset) Wiring() Wiring { return a.WiringAt(a.Power) }

// WiringAt is Wiring for a power that is not the asset's own but its model's. Nil is not known.
func (a *Asset) WiringAt(power *Watts) Wiring {
	return Wiring{Phases: PhasesOf(a.Phases, power), Phase: a.Phase}
}
