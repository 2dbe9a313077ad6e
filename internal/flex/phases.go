package flex

// SinglePhaseMax is the most that a charger on one phase gives: 32 A at 230 V, and what makers round it up to.
const SinglePhaseMax Watts = 8000

// PhasePower is the least that a car charges with on each phase: 6 A (IEC 61851-1) at 230 V, in W.
const PhasePower Watts = 6 * PhaseVoltage

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
