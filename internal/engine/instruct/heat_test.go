package instruct

import "testing"

// TestHeatPence checks what a heater's energy costs in addition to its price, at and around
// the energy of its plan from before.
func TestHeatPence(t *testing.T) {
	less := HeatAsk{Planned: 500, Whole: true}
	more := HeatAsk{Planned: 500, Whole: true, Up: true}
	after := HeatAsk{Planned: 500}

	for _, c := range []struct {
		name   string
		asks   []HeatAsk
		energy float64
		want   float64
	}{
		{"less, off", []HeatAsk{less}, 0, 0},
		{"less, as planned", []HeatAsk{less}, 500, 50},
		{"less, within what is rounded", []HeatAsk{less}, 501, 50.1},
		{"less, beyond", []HeatAsk{less}, 601, 160.1},
		{"more, as planned", []HeatAsk{more}, 500, -50},
		{"more, beyond", []HeatAsk{more}, 1500, -150},
		{"more, less than planned", []HeatAsk{more}, 399, 60.1},
		{"afterwards, as planned", []HeatAsk{after}, 500, 0},
		{"afterwards, beyond", []HeatAsk{after}, 601, 100},
		{"more, after another", []HeatAsk{after, more}, 1500, -150},
		{"two that ended", []HeatAsk{after, after}, 601, 200},
	} {
		if got := HeatPence(c.asks)(c.energy); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%s: %v p, want %v", c.name, got, c.want)
		}
	}

	if HeatPence(nil) != nil {
		t.Error("without an instruction energy counts something")
	}
}
