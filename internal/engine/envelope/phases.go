package envelope

import "flexd/internal/flex"

// Line is what a car behind a main fuse draws on, as its site is planned: one phase of three, all of them in equal parts, or
// one that nobody knows, which may be any.
type Line int

// The lines. Behind a fuse of which only the sum counts all cars are on all phases.
const (
	OnAll Line = iota
	OnL1
	OnL2
	OnL3
	OnAny
	Lines
)

// LineOf is the line of a car that is wired so, behind a fuse that was given for so many phases: 3 if each of three carries
// a third, any other number if only the sum counts.
func LineOf(phases int, w flex.Wiring) Line {
	if phases != 3 || w.Phases == 3 {
		return OnAll
	}
	if w.Phase >= 1 && w.Phase <= 3 {
		return OnL1 + Line(w.Phase-1)
	}

	return OnAny
}

// PerLine is an energy on each line.
type PerLine [Lines]Joules

// On is what the energies load a phase (0, 1 or 2) with, in thirds of what the phase carries: that of a car on one phase
// counts three times.
func (e *PerLine) On(phase int) Joules {
	return e[OnAll] + 3*(e[OnL1+Line(phase)]+e[OnAny])
}

// Sum is the energy on all lines.
func (e *PerLine) Sum() Joules {
	var sum Joules
	for _, lines := range e {
		sum += lines
	}

	return sum
}

// PerPhase is an energy on each phase, in thirds.
type PerPhase [3]Joules

// Let is the most that phases which carry so much let through of what cars would draw. A watt-second of a car on all phases
// takes the least of each, so these come first; one of a car on a phase that nobody knows takes as much of every phase as one
// of a car on a known phase takes of its own, so it comes where no known one is displaced by it.
func (p *PerPhase) Let(load *PerLine) Joules {
	all := min(load[OnAll], p[0], p[1], p[2])
	unknown := load[OnAny]
	for k := range p {
		unknown = min(unknown, third(p[k]-all-3*load[OnL1+Line(k)]))
	}

	sum := all + unknown
	for k := range p {
		sum += min(load[OnL1+Line(k)], third(p[k]-all-3*unknown))
	}

	return sum
}

// third is a third of an energy, rounded up, and of none none.
func third(e Joules) Joules { return (max(0, e) + 2) / 3 }
