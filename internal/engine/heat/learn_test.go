package heat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/engine/heat"
)

// lived are the half-hours of a building that is worked out minute by minute, kept at 20 degrees by a thermostat and let
// cool by night, read to a tenth of a degree.
func lived(r *rand.Rand, b heat.Building, days int) []heat.Sample {
	round := func(t float64) float64 { return math.Round(t*10) / 10 }
	temp, on := 20.0, true

	var list []heat.Sample
	for slot := range 48 * days {
		outdoor := 4 + 4*math.Sin(float64(slot)/48*2*math.Pi) + r.NormFloat64()
		s := heat.Sample{Hours: 0.5, Before: round(temp), Outdoor: outdoor, Gap: slot == 0}
		for range 30 {
			if temp < 19.8 {
				on = true
			}
			if temp > 20.2 || slot%48 < 10 {
				on = false
			}

			given := 0.0
			if on {
				given = 9000
			}
			s.Heat += given / 60
			temp += (given + b.Gain - b.Loss*(temp-outdoor)) / b.Capacity / 60
		}

		s.After = round(temp)
		list = append(list, s)
	}

	return list
}

// TestLearn has buildings that lose half, or twice, what is assumed of them: after three days most of the difference is
// learned, and of one that is as assumed nothing is.
func TestLearn(t *testing.T) {
	assumed := heat.Building{Loss: 200, Capacity: 8000}
	for _, part := range []float64{0.5, 1, 2} {
		real := heat.Building{Loss: part * assumed.Loss, Capacity: 8000, Gain: 200}
		got := heat.Learn(assumed, lived(rand.New(rand.NewPCG(1, 2)), real, 3))

		// Weather that changes little says little of what people give and what is lost: what counts is the heat
		// that keeps 20 degrees.
		needs := func(b heat.Building, outdoor float64) float64 { return b.Loss*(20-outdoor) - b.Gain }
		want, have := needs(real, 2), needs(got.Building, 2)
		if math.Abs(have/want-1) > 0.1 || got.Miss > 0.3 || got.Used < 100 {
			t.Errorf("a loss of %g: takes %.0f W and not %.0f: %+v", real.Loss, have, want, got)
		}
		if got.Capacity < 6000 || got.Capacity > 10000 {
			t.Errorf("a loss of %g: stores %.0f Wh", real.Loss, got.Capacity)
		}
	}

	if got := heat.Learn(assumed, nil); got.Building != assumed || got.Used != 0 {
		t.Errorf("learned of nothing: %+v", got)
	}
}

// TestLearn_Bounds has readings that no building could give: what is learned stays within its bounds.
func TestLearn_Bounds(t *testing.T) {
	assumed := heat.Building{Loss: 200, Capacity: 8000}
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var list []heat.Sample
		for range 100 {
			list = append(list, heat.Sample{
				Hours:   0.5,
				Before:  40 * r.Float64(),
				After:   40 * r.Float64(),
				Outdoor: 60*r.Float64() - 30,
				Heat:    9000 * r.Float64(),
				Gap:     r.IntN(20) == 0,
			})
		}

		got := heat.Learn(assumed, list)
		if got.Loss < 50 || got.Loss > 800 || got.Capacity < 2000 || got.Capacity > 32000 || math.IsNaN(got.Gain+got.Error+got.Miss) {
			t.Fatalf("learned %+v", got)
		}
	}
}

// TestLearn_Dip has rooms that are half a degree colder after every sixth half-hour than the building explains, and as
// warm as it says after the next: three hours show little of it, the dip shows all.
func TestLearn_Dip(t *testing.T) {
	b := heat.Building{Loss: 200, Capacity: 8000}
	list := lived(rand.New(rand.NewPCG(1, 2)), b, 4)
	plain := heat.Learn(b, list)
	for i := 0; i+1 < len(list); i += 6 {
		list[i].After -= 0.5
		list[i+1].Before -= 0.5
	}

	got := heat.Learn(b, list)
	if plain.Dip > 0.2 || got.Dip < 0.4 || got.Dip > 0.7 {
		t.Errorf("a dip of %.2f degrees, %.2f without one", got.Dip, plain.Dip)
	}
}

// TestLearn_Stop has rooms that are 0.9 degrees colder than the building explains in each half-hour in which the heat pump stops, and as warm
// as it says after the next: so much is learned of the stops, though they are too few for the dip of all half-hours.
func TestLearn_Stop(t *testing.T) {
	b := heat.Building{Loss: 200, Capacity: 8000}
	list := lived(rand.New(rand.NewPCG(1, 2)), b, 8)

	for i := range list { // it runs but for one half-hour of 25
		list[i].Heat = 1800
		if i%25 == 24 {
			list[i].Heat = 0
		}
		before := 20.0
		if i > 0 {
			before = list[i-1].After
		}
		list[i].Before, list[i].Outdoor, list[i].Gap = before, 2, false
		list[i].After = before + (list[i].Heat-0.5*200*(before-2))/8000
	}

	plain := heat.Learn(b, list)
	for i := 24; i+1 < len(list); i += 25 {
		list[i].After -= 0.9
		list[i+1].Before -= 0.9
	}

	got := heat.Learn(b, list)
	if plain.Stop > 0.2 || got.Stop < 0.7 || got.Stop > 1.1 || got.Dip > 0.5 {
		t.Errorf("%.2f degrees where it stops, %.2f without that; a dip of %.2f", got.Stop, plain.Stop, got.Dip)
	}

	if few := heat.Learn(b, list[:80]); few.Stop != 0 {
		t.Errorf("learned %.2f degrees of three stops", few.Stop)
	}
}
