package app

import (
	"testing"
	"time"

	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/grid"
)

// TestUseAhead_Devices: cars that are to draw 2 kWh and can draw 1 to 5, batteries that are to
// give 3 and can give 4 or draw 4, and heaters that are to draw 1 and can draw nothing or 1.5.
func TestUseAhead_Devices(t *testing.T) {
	now := time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
	hour := flex.Span{From: now, To: now.Add(time.Hour)}
	e := &grid.Envelope{At: now, Windows: []grid.Window{{
		Span: hour, Planned: 2000, Least: 1000, Most: 5000, Batteries: grid.DeviceWindow{Planned: -3000, Least: -4000, Most: 4000},
		Heaters: grid.DeviceWindow{Planned: 1000, Most: 1500},
	}}}

	want := adr.FleetUse{Span: hour, Quality: adr.QualityOK, IsFuture: true, Energy: 0, Reducible: 3000, More: 10_500}
	if got := useAhead(e, hour); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}
