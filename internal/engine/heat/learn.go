package heat

import (
	"math"
	"slices"
)

// Sample is a time with the temperatures of the rooms at both ends, the temperature outdoors, in degrees Celsius, and the heat
// of the heat pump. Samples are in the order of time.
type Sample struct {
	Hours   float64
	Before  float64 // degrees indoors at its beginning
	After   float64 // and at its end
	Outdoor float64 // degrees
	Heat    float64 // Wh that the heat pump gave
	Gap     bool    // it does not follow the sample before it
}

// Learned is a building as its readings show it.
type Learned struct {
	Building
	Error float64 // of the loss, as a part of it: one standard deviation
	Miss  float64 // degrees that the temperature after Window hours was off, as a root mean square
	Dip   float64 // degrees that it was colder after one sample than expected, on one of twenty
	Stop  float64 // the same in samples in which the heat pump stopped, on one of twenty; 0 if there are too few
	Used  int     // windows that it was learned from
	// no building that is believed explains the samples: what they show lies beyond the bounds, or is missed by more than mostMiss
	Doubtful bool
}

// Window is how many hours are looked at as one: shorter ones show the radiators and the air, and not the building.
const Window = 3.0

const (
	// priorPart is how far a building may be from what it is assumed to be: one standard deviation, as a part of it.
	priorPart = 0.7
	// priorGain is the same of what people and the sun give, in W.
	priorGain = 300.0
	// windowError is what one window may be off for all that is not in the model, in degrees.
	windowError = 0.25
	// leastPart and mostPart are how small and how large a learned value may be, as a part of the assumed one.
	leastPart, mostPart = 1.0 / 4, 4.0
	// dipShare is the part of the samples that may be colder still than the dip that is learned.
	dipShare = 0.05
	// stopShare is the same of the samples in which it stopped, of which there must be stopLeast: those with no more than stopPart of the
	// heat of the one before.
	stopShare, stopLeast, stopPart = 0.05, 4, 0.1
	// mostMiss is by how many degrees a building may miss its windows, as a root mean square, to be believed.
	mostMiss = 1.0
	// gainMost is how much of the loss at 20 degrees of difference people and the sun may make up for.
	gainMost = 0.5
)

// regression is a weighted least-squares fit of three parts: 1/(hours to lose the difference), 1/capacity, and what is
// gained over the capacity; each as a multiple of its scale.
type regression struct {
	scale  [3]float64
	normal [3][3]float64
	right  [3]float64
}

// row is one window: what each part moves the temperature by, and by how much it moved.
type row struct {
	parts [3]float64
	moved float64
}

// add adds a row to the sums of the fit, with a weight from 0 to 1.
func (r *regression) add(w row, weight float64) {
	weight /= windowError * windowError
	for i := range 3 {
		x := w.parts[i] * r.scale[i]
		r.right[i] += weight * x * w.moved
		for j := range 3 {
			r.normal[i][j] += weight * x * w.parts[j] * r.scale[j]
		}
	}
}

// assume adds an assumed value of a part to the sums, as an observation with a standard deviation; both are in the part's scale.
func (r *regression) assume(
	i int,
	value, deviation float64,
) {
	r.normal[i][i] += 1 / (deviation * deviation)
	r.right[i] += value / (deviation * deviation)
}

// Learn fits a building to samples by least squares. The assumed building is a first observation, so few samples, or
// samples in which nothing changes, move the result little. Used is 0 if the samples have no window, and the building is then
// the assumed one.
//
// The heat is what electricity is assumed to give: where a heat pump gives less than that, the building counts as one that
// loses so much more and stores so much more, which comes to the same electricity.
func Learn(assumed Building, samples []Sample) Learned {
	first := regression{scale: [3]float64{
		assumed.Loss / assumed.Capacity,
		1 / assumed.Capacity,
		priorGain / assumed.Capacity,
	}}

	first.assume(0, 1, priorPart)
	first.assume(1, 1, priorPart)
	first.assume(2, assumed.Gain/priorGain, 1)

	windows, weight := windowsOf(samples)
	for _, w := range windows {
		first.add(w, weight)
	}

	l := Learned{Building: assumed, Used: len(windows)}
	if len(windows) == 0 {
		return l
	}

	inverse := invert(first.normal)
	var x [3]float64
	for i := range 3 {
		for j := range 3 {
			x[i] += inverse[i][j] * first.right[j]
		}
	}

	l.set(&assumed, first.scale, x)
	l.Error = lossError(x, inverse)
	l.Miss = l.missOf(windows)
	l.Doubtful = l.Doubtful || l.Miss > mostMiss
	l.Dip = coldest(l.colder(samples), dipShare)
	l.Stop = l.stopOf(samples)

	return l
}

// set sets the building to what was fitted, within leastPart and mostPart of the assumed one.
func (l *Learned) set(
	assumed *Building,
	scale, x [3]float64,
) {
	within := func(value, usual float64) float64 {
		return max(leastPart*usual, min(mostPart*usual, value))
	}

	a := max(x[0], leastPart/mostPart) * scale[0]
	b := max(x[1], leastPart/mostPart) * scale[1]
	l.Loss = within(a/b, assumed.Loss)
	l.Capacity = within(1/b, assumed.Capacity)

	most := gainMost * l.Loss * 20
	gain := x[2] * scale[2] / b
	l.Gain = max(-most, min(most, gain))
	l.Doubtful = l.Gain != gain || l.Loss != a/b || l.Capacity != 1/b
}

// lossError is the standard deviation of the loss, which is one part over another, as a part of it.
func lossError(x [3]float64, inverse [3][3]float64) float64 {
	a, b := max(x[0], 0.1), max(x[1], 0.1)
	variance := inverse[0][0]/(a*a) + inverse[1][1]/(b*b) - 2*inverse[0][1]/(a*b)

	return math.Sqrt(max(0, variance))
}

// missOf is the root mean square of the error over the windows, in degrees.
func (l *Learned) missOf(windows []row) float64 {
	parts := [3]float64{l.Loss / l.Capacity, 1 / l.Capacity, l.Gain / l.Capacity}
	sum := 0.0
	for _, w := range windows {
		off := w.moved
		for i := range 3 {
			off -= parts[i] * w.parts[i]
		}
		sum += off * off
	}

	return math.Sqrt(sum / float64(len(windows)))
}

// coldest is by how many degrees it was colder after a sample than expected, at most, on all samples but a share that were
// coldest. The air cools down in minutes when the heat pump stops, the building in hours.
func coldest(colder []float64, share float64) float64 {
	sorted := slices.Clone(colder)
	slices.Sort(sorted)
	last := len(sorted) - 1

	return max(0, sorted[last-int(share*float64(len(sorted)))])
}

// stopOf is the dip of the samples in which the heat pump stopped.
func (l *Learned) stopOf(samples []Sample) float64 {
	var stops []float64
	for i, by := range l.colder(samples) {
		if i > 0 && !samples[i].Gap && samples[i].Heat < stopPart*samples[i-1].Heat {
			stops = append(stops, by)
		}
	}

	if len(stops) < stopLeast {
		return 0
	}

	return coldest(stops, stopShare)
}

// colder is by how many degrees it was colder after each sample than expected.
func (l *Learned) colder(samples []Sample) []float64 {
	colder := make([]float64, len(samples))
	for i, s := range samples {
		losses := l.Loss * ((s.Before+s.After)/2 - s.Outdoor)
		change := (s.Heat + s.Hours*(l.Gain-losses)) / l.Capacity
		colder[i] = s.Before + change - s.After
	}

	return colder
}

// windowsOf returns a window from each sample on that is followed without a gap for Window hours, and the weight of one: as
// windows overlap, each counts for one over the mean number of samples in a window.
func windowsOf(samples []Sample) ([]row, float64) {
	var windows []row
	spans := 0
	for i := range samples {
		w, n := windowFrom(samples[i:])
		if n > 0 {
			windows = append(windows, w)
			spans += n
		}
	}

	if len(windows) == 0 {
		return nil, 0
	}

	return windows, float64(len(windows)) / float64(spans)
}

// windowFrom returns the window that begins with the first of some samples, and its number of samples; 0 if a gap or the end
// comes before Window hours.
func windowFrom(samples []Sample) (row, int) {
	var w row
	hours := 0.0
	for n, s := range samples {
		if n > 0 && s.Gap {
			break
		}

		hours += s.Hours
		w.parts[0] += s.Hours * (s.Outdoor - (s.Before+s.After)/2)
		w.parts[1] += s.Heat
		w.parts[2] += s.Hours
		w.moved = s.After - samples[0].Before

		if hours >= Window {
			return w, n + 1
		}
	}

	return row{}, 0
}

// invert returns the inverse of a symmetric positive definite matrix.
func invert(m [3][3]float64) [3][3]float64 {
	var inverse [3][3]float64
	for i := range 3 {
		inverse[i][i] = 1
	}

	for i := range 3 {
		pivot := m[i][i]
		for j := range 3 {
			m[i][j] /= pivot
			inverse[i][j] /= pivot
		}

		for k := range 3 {
			if k == i {
				continue
			}

			factor := m[k][i]
			for j := range 3 {
				m[k][j] -= factor * m[i][j]
				inverse[k][j] -= factor * inverse[i][j]
			}
		}
	}

	return inverse
}
