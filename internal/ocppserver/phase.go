package ocppserver

import (
	"slices"
	"strings"

	"flexd/internal/flex"
)

// currentLeast and powerLeast are the least on a phase that shows that the car draws from it, in A
// and in W: less may be the charger itself.
const (
	currentLeast = 1
	powerLeast   = volts
)

// phasesOf is how many phases a charger has: as its line says, else as its meter showed, else
// as its power implies.
func phasesOf(o chargerOptions, learned int, power flex.Watts) int {
	if o.phases > 0 {
		return o.phases
	}
	return flex.PhasesOf(learned, &power)
}

// drawsOnPhases reports whether the values of one instant show a car that draws on more than one
// phase. A current on one alone says nothing: the car may take no more, and a charger on one phase
// may be wired to any.
func drawsOnPhases(values []sampled) bool {
	var drawn []string
	for _, v := range values {
		phase, to, _ := strings.Cut(v.Phase, "-")
		single := strings.HasPrefix(phase, "L") && (to == "" || to == "N")
		if single && v.flows() && !slices.Contains(drawn, phase) {
			drawn = append(drawn, phase)
		}
	}

	return len(drawn) > 1
}

// flows reports whether a value shows that a car draws.
func (v sampled) flows() bool {
	atPlug := v.Location == "" || v.Location == "Outlet" ||
		v.Location == "Cable"
	if !atPlug || v.Format == "SignedData" {
		return false
	}

	switch v.Measurand {
	case "Current.Import":
		return v.Value.value >= currentLeast
	case "Power.Active.Import":
		scale, known := scaleOf(power, v.Unit)
		return known && v.Value.value*scale >= powerLeast
	}

	return false
}

// learnPhases takes note of a car that draws on several phases of a connector whose charger is
// believed to have one: in amperes it would be sent three times what is meant. The caller holds mu.
func (c *charger) learnPhases(n *connector, values []sampled) {
	if n.phases == 3 || !drawsOnPhases(values) {
		return
	}

	n.phases = 3
	if phasesOf(c.b.optionsOf(c.id), 0, powerOf(n.asset)) == 3 {
		return
	}

	n.sendAgain()
	n.floored = false
	c.b.Log.Info(
		"a charger has three phases, as its meter shows; phases= in its line says another number",
		"charger",
		c.id,
		"connector",
		n.number,
	)
}
