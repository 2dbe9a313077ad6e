package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"flexd/internal/flex"
)

// Climate is the weather of a winter, the same for all homes: a mean, a daily cycle, one cold spell and noise. It is
// made up: no record of temperatures is in it.
type Climate struct {
	Mean  float64 `json:"mean_c"`
	Swing float64 `json:"swing_k"` // between the mean and the warmest hour of a day
	Noise float64 `json:"noise_k"` // of each of its waves, of some hours to some days
	Depth float64 `json:"depth_k"` // by how much it is colder in the midst of the spell
	Seed  uint64  `json:"seed"`
}

// drawClimate draws the weather of some days. Its happening is the cold spell.
func drawClimate(
	r *rand.Rand,
	first flex.Day,
	days int,
) Happening {
	from := first.Start().Add(time.Duration(r.IntN(1+24*max(0, days-2))) * time.Hour)

	return Happening{
		Kind: Weather,
		From: from,
		To:   from.Add(time.Duration(48+r.IntN(49)) * time.Hour),
		Climate: &Climate{
			Mean:  3 + 5*r.Float64(),
			Swing: 2 + 2*r.Float64(),
			Noise: 0.5,
			Depth: 4 + 6*r.Float64(),
			Seed:  r.Uint64(),
		},
	}
}

// wave is one part of the noise.
type wave struct {
	hours float64
	phase float64
}

// weather is a climate that is asked minute by minute.
type weather struct {
	*Climate
	cold  flex.Span
	waves []wave
}

// newWeather works out the waves of a climate's noise.
func newWeather(c *Climate, cold flex.Span) *weather {
	r := stream(c.Seed, 1)

	var waves []wave
	for range 4 {
		hours := 5 * math.Pow(12, r.Float64()) // five hours to sixty
		waves = append(waves, wave{hours: hours, phase: r.Float64()})
	}

	return &weather{Climate: c, cold: cold, waves: waves}
}

// air is what the weather is at an instant.
type air struct {
	outdoor float64 // degrees Celsius
	sun     float64 // W that fall on a square metre of a window
}

// Hours of the day, by Greenwich: a day is warmest after noon, and the sun is up from dawn to dusk.
const (
	warmestAt = 14.5
	dawn      = 8.0
	dusk      = 16.0
	brightest = 250.0 // W a square metre, under a clear sky
)

// at is the weather at an instant.
func (w *weather) at(t time.Time) air {
	hours := float64(t.Unix()) / 3600
	ofDay := math.Mod(hours, 24)
	noise := 0.0
	for _, p := range w.waves {
		noise += math.Sin(2 * math.Pi * (hours/p.hours + p.phase))
	}

	a := air{outdoor: w.Mean + w.Noise*noise - w.spell(t)}
	a.outdoor += w.Swing * math.Cos((ofDay-warmestAt)/24*2*math.Pi)

	if ofDay > dawn && ofDay < dusk {
		up := math.Sin((ofDay - dawn) / (dusk - dawn) * math.Pi)
		clear := 0.5 + noise/float64(2*len(w.waves))
		a.sun = brightest * up * clear
	}

	return a
}

// spell is by how much the cold spell is felt at an instant: it comes and goes without a step.
func (w *weather) spell(t time.Time) float64 {
	if !w.cold.Contains(t) {
		return 0
	}

	part := float64(t.Sub(w.cold.From)) / float64(w.cold.Len())

	return w.Depth * math.Sqrt(math.Sin(part*math.Pi))
}
