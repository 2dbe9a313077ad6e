package sim

import (
	"os"
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

// TestWinter_LawsButComfort plays heated homes for some winter days, which takes minutes: of all laws they may break only those of comfort, and of
// those the homes' hours outside their bands stay under two in a hundred.
func TestWinter_LawsButComfort(t *testing.T) {
	if os.Getenv("FLEXD_LONG") == "" {
		t.Skip("it takes minutes: FLEXD_LONG=1 plays it")
	}

	const homes, days = 20, 3
	for seed := range uint64(6) {
		o := play(t, DrawWinter(seed, flex.Day{Year: 2027, Month: 1, Dom: 11}, homes, days))
		for _, b := range o.Broken {
			if !strings.HasPrefix(b, "warm:") && !strings.HasPrefix(b, "hot:") {
				t.Errorf("seed %d: %s", seed, b)
			}
		}

		for what, heat := range o.Heat {
			if most := float64(heat.Devices*days*24) / 50; heat.Outside > most {
				t.Errorf("seed %d: %s of %d homes are outside their bands for %.1f hours", seed, what, heat.Devices, heat.Outside)
			}
		}
	}
}
