package ocppserver

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"flexd/client"
	"flexd/internal/flex"
)

// currentLeast and powerLeast are the least on a phase that shows that the car draws from it, in A
// and in W: less may be the charger itself.
const (
	currentLeast = 1
	powerLeast   = volts
)

// phasesOf is how many phases a connector of a charger has: as the charger's line says, else
// as its meter showed, else as its asset's properties say, else as its power implies.
func phasesOf(
	o chargerOptions,
	learned int,
	a client.AssetResponse,
) int {
	given := 0
	if a.Properties != nil && a.Properties.Phases != nil {
		given = *a.Properties.Phases
	}

	power := powerOf(a)

	return flex.PhasesOf(cmp.Or(o.phases, learned, given), &power)
}

// sendPhases gives flexd the phases that a connector is known to have by the charger's line or
// its meter, where nobody gave its asset any and flexd would plan it on another number: what
// it is planned then can be sent.
func (c *charger) sendPhases(ctx context.Context, n *connector) error {
	c.mu.Lock()
	a := n.asset
	phases := phasesOf(c.b.optionsOf(c.id), n.phases, a)
	known := !a.ID.IsZero() && !n.stored && !n.phasesRefused
	c.mu.Unlock()

	if !known || phases == phasesOf(chargerOptions{}, 0, a) {
		return nil
	}
	if a.Properties != nil && a.Properties.Phases != nil {
		return nil // somebody has their reason
	}

	a, err := c.b.Client.UpdateAsset(ctx, a.ID, client.AssetUpdateRequest{
		Properties: &client.AssetProperties{Phases: &phases},
	})
	if err == nil {
		c.setAsset(n, a)
		return nil
	}

	c.b.Log.Warn(
		"flexd does not take how many phases a charger has",
		"charger",
		c.id,
		"connector",
		n.number,
		"phases",
		phases,
		"err",
		err,
	)

	status := client.StatusOf(err)
	if status >= http.StatusBadRequest && !mayPass(status) {
		n.phasesRefused = true
		return nil
	}

	return errAgain
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
	if phasesOf(c.b.optionsOf(c.id), 0, n.asset) == 3 {
		return
	}

	n.sendAgain()
	n.lacksFloor()
	c.b.Log.Info(
		"a charger has three phases, as its meter shows; phases= in its line says another number",
		"charger",
		c.id,
		"connector",
		n.number,
	)
}
