package control

import (
	"testing"

	"flexd/internal/engine/heat"
)

// TestHeatPump_PriceOver has a heat pump pay for caps that it would exceed, but not for being off, nor where none binds it.
func TestHeatPump_PriceOver(t *testing.T) {
	choices := func() []heat.Choice { return []heat.Choice{{Off: true}, {Target: 20, Hold: 1}} }
	h := &heatPump{heatedTank: &heatedTank{excess: []int{0, 2}}}
	p := &heat.Problem{Slots: []heat.Slot{{Choices: choices()}, {Choices: choices()}, {Choices: choices()}}}
	h.priceExcess(p)

	for i, want := range []float64{1, 1 + 2*capPrice, 1} {
		off, on := p.Slots[i].Choices[0], p.Slots[i].Choices[1]
		if off.Hold != 0 || on.Hold != want {
			t.Errorf("in the slot %d off costs %g and on %g, not %g", i, off.Hold, on.Hold, want)
		}
	}
}
