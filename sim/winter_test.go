package sim

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
)

// A home with a heat pump and a tank is warm and has hot water on a mild day. A heat pump and an element that give nothing for hours are
// found, and so is a main fuse that carries half of what flexd is given.
func TestWinter_PlantedFault(t *testing.T) {
	day := flex.Day{Year: 2027, Month: 1, Dom: 11}
	start, end := day.Start(), day.Add(1).Start()
	rooms := &Rooms{
		Air: 1200, Walls: 6800, Water: 90, Leak: 60, Wall: 100, Couple: 1200, Emitter: 300, Glass: 3, People: 200,
		Carnot: 0.45, Low: 19, High: 22, NightLow: 19, Setpoint: 21.5, Steering: flex.SteerWindows,
	}
	pump := Happening{Kind: Pump, Home: "car0", KW: 2, From: start, To: end, Rooms: rooms}
	tank := Happening{Kind: Tank, Home: "car0", KW: 3, From: start, To: end, Water: &Water{Litres: 200, Leak: 1.5, Low: 45, High: 60, People: 2, Seed: 1}}

	for law, plant := range map[string]func(h []Happening){
		"warm": func(h []Happening) { h[2].Dead = true },
		"hot":  func(h []Happening) { h[3].Dead = true },
		"fuse": func(h []Happening) { h[0].Weak = true },
	} {
		history := []Happening{
			{Kind: Fuse, Home: "car0", KW: 5.2, From: start, To: start},
			{Kind: Weather, From: start, To: start.Add(time.Hour), Climate: &Climate{Mean: 2}},
			pump,
			tank,
		}
		plant(history)
		o := play(t, history)
		if !strings.Contains(strings.Join(o.Broken, "\n"), law+":") {
			t.Errorf("the planted fault of %s was not found: %q", law, o.Broken)
		}
	}
}
