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

// currentLeast and powerLeast are the least current (A) and power (W) on a phase that show
// that the car draws from it. The charger itself may draw less.
const (
	currentLeast = 1
	powerLeast   = volts
)

// phasesOf returns the number of a connector's phases. The sources in order of priority: the
// charger's line, its meter, the asset's properties, and the rated power.
func phasesOf(
	o chargerOptions,
	learned int,
	a client.AssetResponse,
) int {
	labelled := 0
	if a.Properties != nil && a.Properties.Phases != nil {
		labelled = *a.Properties.Phases
	}

	power := powerOf(a)

	return flex.PhasesOf(cmp.Or(o.phases, learned, labelled), &power)
}

// sendPhases sends flexd the phases that the charger's line or meter shows, if the asset has
// none and flexd would assume another number. Without them, flexd could plan powers that the
// charger cannot be sent.
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
		return nil // somebody has set them on purpose
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

	return errRetry
}

// drawsOnPhases reports whether the values of one instant show a car that draws on several
// phases. A current on one phase proves nothing: the car may be single-phase, and a
// single-phase charger may be wired to any phase.
func drawsOnPhases(values []sampled) bool {
	var phases []string
	for _, v := range values {
		phase, to, _ := strings.Cut(v.Phase, "-")
		single := strings.HasPrefix(phase, "L") && (to == "" || to == "N")
		if single && v.flows() && !slices.Contains(phases, phase) {
			phases = append(phases, phase)
		}
	}

	return len(phases) > 1
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

// learnPhases notes a car that draws on several phases of a charger that is believed to have
// one. Otherwise a limit in amperes would allow three times the intended power. The caller
// holds mu.
func (c *charger) learnPhases(n *connector, values []sampled) {
	if n.phases == 3 || !drawsOnPhases(values) {
		return
	}

	n.phases = 3
	if phasesOf(c.b.optionsOf(c.id), 0, n.asset) == 3 {
		return
	}

	n.resendProfile()
	n.lacksFloor()
	c.b.Log.Info(
		"a charger has three phases, as its meter shows; phases= in its line says another number",
		"charger",
		c.id,
		"connector",
		n.number,
	)
}
