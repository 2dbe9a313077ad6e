package control_test

import (
	"math"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// level is how full the fixture's car is expected to be at ready-by, as its household and its operator are told.
func (h *fixture) level() int {
	h.Helper()
	home, err := h.service.Household(h.Context(), h.Org, h.site)
	if err != nil {
		h.Fatal(err)
	}

	p, err := h.service.Past(h.Context(), control.PastQuery{Asset: h.asset, Org: h.Org})
	if err != nil {
		h.Fatal(err)
	}

	value, known := p.Level.AtLast()
	if known != (home.Cars[0].ReadyLevel > 0) || home.Cars[0].ReadyLevel != int(math.Round(value)) {
		h.Errorf("the household is told %d %%, the operator %g", home.Cars[0].ReadyLevel, value)
	}

	last := time.Time{}
	for _, l := range p.Level.Expected {
		if l.At.Before(last) || l.Value < 0 || l.Value > 100 {
			h.Errorf("expected are %v", p.Level.Expected)
		}
		last = l.At
	}

	return home.Cars[0].ReadyLevel
}

// A car that need not discharge is expected to hold what was read and nine tenths of what it takes, of 60 kWh.
func TestCarLevel(t *testing.T) {
	const evening = "2026-01-14T17:00:00Z"
	soc := func(percent float64) func(*fixture) {
		return func(h *fixture) { h.soc(percent) }
	}

	for _, c := range []struct {
		name   string
		before func(*fixture)
		kwh    float64
		after  func(*fixture)
		want   int
	}{
		{"read at plug-in", soc(40), 20, nil, 70},
		{"nothing read", nil, 20, nil, 0},
		{"read in kWh", func(h *fixture) { h.read(h.asset, flex.BatteryStoredEnergy, evening, evening, 12) }, 20, nil, 50},
		{"of another stay", func(h *fixture) { h.soc(40); h.wait(time.Hour) }, 20, nil, 0},
		{"full", soc(90), 20, nil, 100},
		{"no capacity", func(h *fixture) { h.soc(40); h.Exec(`UPDATE asset SET capacity_wh = NULL`) }, 20, nil, 0},
		{"late at night, as planned", soc(40), 20, func(h *fixture) {
			h.accept()

			h.goTo("2026-01-15T06:30:00Z")
		}, 70},
		{"late at night, not accepted", soc(40), 20, func(h *fixture) { h.goTo("2026-01-15T06:30:00Z") }, 40},
		{"late at night, metered less", soc(40), 20, func(h *fixture) {
			h.accept()

			for at := flex.PeriodAt(h.look().Current.MadeAt); at.Start().Format(time.RFC3339) < "2026-01-15T06:30:00Z"; at = at.Add(1) {
				h.read(h.asset, flex.ChargerEnergy, at.Start().Format(time.RFC3339), at.End().Format(time.RFC3339), 0)
			}

			h.goTo("2026-01-15T06:30:00Z")
		}, 40},
		{"read again", soc(40), 20, func(h *fixture) {
			h.accept()
			h.goTo("2026-01-15T06:30:00Z")
			h.soc(66)
		}, 66},
		{"unplugged", soc(40), 20, func(h *fixture) { h.event(control.Event{Kind: control.PlugOut}) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachOf(t, evening, func(h *fixture) {
				h.Exec(`UPDATE asset SET capacity_wh = 60000`)
				if c.before != nil {
					c.before(h)
				}

				h.plugInAt(c.kwh, flex.Minimise)
				if c.after != nil {
					c.after(h)
				}

				if got := h.level(); got != c.want {
					h.Errorf("expected are %d %%, want %d", got, c.want)
				}
			})
		})
	}
}
