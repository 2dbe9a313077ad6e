package forecast

import (
	"math"
	"slices"
	"testing"
)

// hindsight is a family of forecasts that look at the judged days themselves: the mean of the same time of the day on
// the days before and after of the same kind, less a part of it to some power.
type hindsight struct {
	days, slots int     // on each side
	energy      bool    // what the fleet draws in all on the day, too
	power       float64 // scatter grows with the mean to this power
}

// means are what the family expects on each judged day.
func (f hindsight) means(came [][]float64, judged []Judged) [][]float64 {
	first := len(came) - len(judged)
	out := make([][]float64, len(judged))

	for n := range judged {
		out[n] = make([]float64, len(came[first+n]))
		var all, drawn float64

		for t := range out[n] {
			sum, weight := 0.0, 0.0
			for d := -f.days; d <= f.days; d++ {
				at := first + n + d
				if d == 0 || at < 0 || at >= len(came) || dayClass(judged[n].Day.Add(d)) != dayClass(judged[n].Day) {
					continue
				}

				for s := max(0, t-f.slots); s <= min(len(came[at])-1, t+f.slots); s++ {
					sum, weight = sum+came[at][s], weight+1
				}
			}
			out[n][t] = sum / max(1, weight)
			all, drawn = all+out[n][t], drawn+judged[n].Came[t]
		}

		for t := range out[n] {
			if f.energy && all > 0 {
				out[n][t] *= drawn / all
			}
		}
	}
	return out
}

// volume is the part of what came that the family forecasts where it keeps so many of 100 windows, at each time of the
// day by itself: the scatter of each is fitted on the judged days too.
func (f hindsight) volume(came [][]float64, judged []Judged, kept float64) float64 {
	means := f.means(came, judged)
	var forecast, sum float64
	for t := range means[0] {
		var errors []float64 // how far below the mean it came, in units of the scatter
		for n, d := range judged {
			errors = append(errors, (means[n][t]-d.Came[t])/max(1e-9, math.Pow(means[n][t], f.power)))
			sum += d.Came[t]
		}

		slices.Sort(errors)
		k := errors[min(len(errors)-1, int(math.Ceil(kept/100*float64(len(errors))))-1)]
		for n := range judged {
			forecast += max(0, means[n][t]-k*math.Pow(means[n][t], f.power))
		}
	}
	return forecast / sum
}

// best is the family's member with the most volume, each fitted on the days that it is judged on.
func best(came [][]float64, judged []Judged, kept float64, energy bool) (volume float64, of hindsight) {
	for _, days := range []int{7, 10, 14, 21, 28, 45} {
		for slots := range 3 {
			for _, power := range []float64{0, 0.3, 0.5, 0.7, 0.85, 1} {
				f := hindsight{days, slots, energy, power}
				if v := f.volume(came, judged, kept); v > volume {
					volume, of = v, f
				}
			}
		}
	}
	return volume, of
}

// logHindsight prints how much of what came is forecast by who knows the judged days.
func logHindsight(t *testing.T, h *FleetHistory, judged Reliability) {
	t.Helper()
	came := h.values(FleetLoad)
	for _, energy := range []bool{false, true} {
		v, of := best(came, judged.Past, 90, energy)
		t.Logf("  in hindsight, P90 at each time of the day: volume %.1f %% (%+v)", 100*v, of)
	}
}
