package sim

import (
	"math/rand/v2"
	"time"

	"flexd/internal/flex"
)

// Water is a hot-water tank with the household that draws from it.
type Water struct {
	Litres float64 `json:"litres"`
	Leak   float64 `json:"leak_w_per_k"` // to the cupboard that it is in
	Low    float64 `json:"low_c"`        // the comfort band
	High   float64 `json:"high_c"`
	People int     `json:"people"`
	Seed   uint64  `json:"seed"` // of what they draw
}

// drawWater draws a tank, for one to four people.
func drawWater(r *rand.Rand) *Water {
	people := 1 + r.IntN(4)

	return &Water{
		Litres: 120 + 45*float64(people) + 30*r.Float64(),
		Leak:   1.2 + r.Float64(),
		Low:    45,
		High:   60,
		People: people,
		Seed:   r.Uint64(),
	}
}

// What a household draws, in Wh of heat above the mains, and the minutes that it takes.
const (
	showerHeat, showerTakes = 1500.0, 8
	basinHeat, basinTakes   = 120.0, 2
	dishesHeat, dishesTakes = 500.0, 6
	bathHeat, bathTakes     = 3200.0, 12

	basinsADay = 6
	mains      = 9.0  // degrees
	cupboard   = 19.0 // degrees
	perLitre   = 1.163
)

// drawsOf are the Wh that are drawn in each minute of a day. Everybody has a usual hour to shower, in the
// morning or in the evening, and keeps to it by half an hour or so on six days of seven.
func (w *Water) drawsOf(day flex.Day) *[24 * 60]float64 {
	var minutes [24 * 60]float64
	take := func(at, takes int, heat float64) {
		for i := range takes {
			minutes[max(0, min(len(minutes)-1, at+i))] += heat / float64(takes)
		}
	}

	habits := stream(w.Seed, 1)
	today := stream(w.Seed, 2+uint64(day.Start().Unix()/86400))
	for range w.People {
		usual := 6*60 + habits.IntN(150)
		if habits.IntN(3) == 0 {
			usual = 18*60 + habits.IntN(240)
		}

		at := usual + today.IntN(61) - 30
		if today.IntN(7) > 0 {
			take(at, showerTakes, showerHeat*(0.7+0.6*today.Float64()))
		}
	}

	for range basinsADay {
		take(6*60+30+today.IntN(16*60), basinTakes, basinHeat)
	}
	take(19*60+today.IntN(90), dishesTakes, dishesHeat)
	if w.People > 2 && today.IntN(7) == 0 {
		take(18*60+30+today.IntN(90), bathTakes, bathHeat)
	}

	return &minutes
}

// water is a tank at an instant.
type water struct {
	*Water
	power   float64 // W
	temp    float64 // degrees
	runs    bool
	draws   float64 // W of electricity in the last minute
	day     flex.Day
	taken   *[24 * 60]float64 // in each minute of the day
	metered float64           // Wh since it was last metered
	record
}

// newWater is a tank that is warm.
func newWater(w *Water, power float64) *water {
	return &water{Water: w, power: power, temp: w.High - reheats}
}

// reheats is how many degrees below the top of its band the thermostat of a tank starts.
const reheats = 4.0

// step lets a minute pass. The element draws nothing while it is off, whatever the thermostat says.
func (w *water) step(
	at time.Time,
	off, dead bool,
) {
	const hours = 1.0 / 60
	if day := flex.DayAt(at); w.taken == nil || day != w.day {
		w.day, w.taken = day, w.drawsOf(day)
	}

	if w.temp < w.High-reheats {
		w.runs = true
	}
	if w.temp >= w.High {
		w.runs = false
	}

	w.draws = 0
	if w.runs && !off && !dead {
		w.draws = w.power
	}

	holds := perLitre * w.Litres
	local := at.In(flex.London)
	minute := 60*local.Hour() + local.Minute()
	lost := w.Leak * (w.temp - cupboard) * hours
	w.temp += (w.draws*hours - lost - w.taken[minute]) / holds
	w.temp = max(mains, w.temp)
	w.metered += w.draws * hours
}

// note has the last minute count.
func (w *water) note(at time.Time) {
	w.judge(w.temp, w.Low, w.High+1, w.draws > 0)
	w.count(at, w.draws)
}
