package forecast

import (
	"cmp"
	"math"
	"slices"

	"flexd/internal/flex"
)

// Confidences are how often, of 100 times, at least the forecast is to come.
var Confidences = [...]int{50, 80, 90, 95, 99}

const numConfidences = len(Confidences)

// The method's numbers, of fleets.
const (
	// days before the day that is forecast which are not over, and not looked at
	Unended   = 1
	FewDays   = 28   // with fewer days nothing is forecast
	JudgedMax = 90   // days at most that reliability is measured on
	warmUp    = 14   // days before the first that anything is said of
	shapeDays = 120  // looked back for the shape of a day
	shapeFade = 0.97 // of a day's weight with each day back
	// weight of a day of another class; squared between working days and others
	unlike    = 0.3
	levelFade = 0.8 // of a day's weight for the level, with each day back
	errorDays = 90  // looked back for errors
	errorFade = 0.96
	errorSize = 0.7 // errors grow with the mean to this power
	// that a confidence is corrected by, of a day's share of misses too many
	step   = 0.02
	beside = 4 // windows on each side of one, of which misses count
	about  = 2 // windows on each side of one, of which errors count
)

// Ahead is what a fleet will draw, or could leave out or draw more, on a day.
type Ahead struct {
	// by the slot that a window begins with; nil with too few days
	KW     [][numConfidences]float64
	Judged Reliability
}

// Reliability says how forecasts by the same rule, each made from the days before it alone,
// did on the last days of a history.
type Reliability struct {
	Days int
	// share of windows in which at least the forecast came
	Kept   [numConfidences]float64
	Volume [numConfidences]float64 // what was forecast of what came, in sum
	Past   []Judged                // each day, oldest first
}

// Judged is a day's forecast beside what came.
type Judged struct {
	Day  flex.Day
	KW   [][numConfidences]float64
	Came []float64
}

// Ahead forecasts a day from the history's days before the day before it: those of a kind of
// which the class is the same count most. A class is 0 for a working day, and another number
// for each kind of day that is none.
//
// The mean of a window is the shape of its day, a weighted mean of past days each divided by
// the level of its weeks, times the level of the last days. What is above it with a confidence
// comes from the errors of earlier forecasts about the same time of day, in units of the mean to
// the power of 0.7. A confidence that was missed too often or too rarely there is corrected day by day
// (adaptive conformal inference, Gibbs and Candès, 2021).
func (h *FleetHistory) Ahead(
	k Kind,
	day flex.Day,
	class func(flex.Day) int,
) Ahead {
	last := daysBetween(h.first, day)
	n := min(last-Unended, len(h.days)) // days that are over
	if n < FewDays {
		return Ahead{}
	}

	m := newMeans(h.values(k)[:n], func(i int) int {
		return class(h.first.Add(i))
	})
	var a Ahead
	q := newQuantiles(m)

	for i := warmUp; i <= last; i++ {
		// Nothing is said of a day that is not over, but what the days before it missed corrects what is said next.
		if i >= n && i < last {
			q.correct(min(i-Unended, n) - 1)
			continue
		}

		m.mean[i] = m.forecast(i)
		kw := q.at(i)

		if i == last {
			a.KW = kw
		} else if i >= max(2*warmUp, n-JudgedMax) {
			a.Judged.Past = append(a.Judged.Past, Judged{
				h.first.Add(i),
				kw,
				m.came[i],
			})
		}
	}

	a.Judged.sum()

	return a
}

// sum counts what was kept and how much was forecast.
func (r *Reliability) sum() {
	r.Days = len(r.Past)
	windows, came := 0.0, 0.0

	for _, d := range r.Past {
		for t, c := range d.Came {
			windows++
			came += c

			for i, kw := range d.KW[t] {
				r.Volume[i] += kw
				if c >= kw {
					r.Kept[i]++
				}
			}
		}
	}

	for i := range Confidences {
		r.Kept[i] /= max(1, windows)
		if came > 0 {
			r.Volume[i] /= came
		}
	}
}

// means guesses the mean of each window of a day from the days before.
type means struct {
	came  [][]float64
	total []float64 // of a day
	class func(day int) int
	mean  map[int][]float64 // of the days that were guessed
}

func newMeans(came [][]float64, class func(int) int) *means {
	m := &means{
		came:  came,
		total: make([]float64, len(came)),
		class: class,
		mean:  map[int][]float64{},
	}

	for i, day := range came {
		for _, v := range day {
			m.total[i] += v
		}
	}

	return m
}

// forecast is the mean of a day from those that are over when the day before it is not.
func (m *means) forecast(day int) []float64 {
	last := min(day-Unended, len(m.came)) - 1
	sum, weight := make([]float64, len(m.came[0])), make([]float64, len(m.came[0]))

	for i := max(0, last-shapeDays); i <= last; i++ {
		level := m.level(i-10, i, min(last, i+10), 0.9)
		if level <= 0 {
			continue
		}

		w := math.Pow(shapeFade, float64(last-i)) * m.likeness(day, i) / level
		for t := range sum {
			sum[t] += w * m.came[i][t]
			weight[t] += w * level
		}
	}

	level := m.level(last-60, last, last, levelFade)
	for t := range sum {
		if weight[t] > 0 {
			sum[t] *= level / weight[t]
		}
	}

	return sum
}

// level is the weighted mean of the totals of days, fading away from one.
func (m *means) level(from, centre, to int, fade float64) float64 {
	sum, weight := 0.0, 0.0
	for i := max(0, from); i <= to; i++ {
		w := math.Pow(fade, math.Abs(float64(i-centre)))
		sum += w * m.total[i]
		weight += w
	}

	return sum / max(weight, 1e-9)
}

// likeness is what a day counts for the shape of another.
func (m *means) likeness(a, b int) float64 {
	of, other := m.class(a), m.class(b)
	if of == other {
		return 1
	}

	if (of == 0) != (other == 0) {
		return unlike * unlike
	}

	return unlike
}

// quantiles turns means into what comes at least.
type quantiles struct {
	*means
	// share of misses that is aimed at, of each window
	level [][numConfidences]float64
	// share that there was on a day, about each window
	missed map[int][][numConfidences]float64
	// of a day's windows, in units of their size; nil where none was guessed
	error [][]float64
	// of an error's weight, by days back
	fade   [errorDays + 1]float64
	buffer []weighted
}

type weighted struct{ value, weight float64 }

func newQuantiles(m *means) *quantiles {
	q := &quantiles{
		means:  m,
		missed: map[int][][numConfidences]float64{},
		error:  make([][]float64, len(m.came)),
	}

	for back := range q.fade {
		q.fade[back] = math.Pow(errorFade, float64(back))
	}

	q.level = make([][numConfidences]float64, len(m.came[0]))
	for t := range q.level {
		for i, c := range Confidences {
			q.level[t][i] = 1 - float64(c)/100
		}
	}

	return q
}

// at forecasts a day whose mean was guessed. Days come in order.
func (q *quantiles) at(day int) [][numConfidences]float64 {
	last := min(day-Unended, len(q.came)) - 1
	q.correct(last)

	out := make([][numConfidences]float64, len(q.came[0]))
	for t, mean := range q.mean[day] {
		errors := q.errors(last, t)
		size := sizeOf(mean)
		for i, share := range quantilesOf(errors, q.level[t]) {
			out[t][i] = max(0, mean+share*size)
			if i > 0 {
				out[t][i] = min(out[t][i], out[t][i-1]) // surer is not more
			}
		}
	}

	q.keep(day, out)

	return out
}

// sizeOf is how large errors about a mean are, in relation to others.
func sizeOf(mean float64) float64 { return math.Pow(mean+1, errorSize) }

// correct moves what is aimed at by what a day missed.
func (q *quantiles) correct(day int) {
	for t, missed := range q.missed[day] {
		for i, c := range Confidences {
			moved := q.level[t][i] + step*(1-float64(c)/100-missed[i])
			q.level[t][i] = min(max(moved, 0.002), 0.7)
		}
	}

	delete(q.missed, day)
}

// errors are those of past forecasts about a time of day, in order, with what they count.
func (q *quantiles) errors(last, t int) []weighted {
	found := q.buffer[:0]
	for i := max(warmUp, last-errorDays); i <= last; i++ {
		errors := q.error[i]
		for _, e := range errors[max(0, t-about):min(t+about+1, len(errors))] {
			found = append(found, weighted{e, q.fade[last-i]})
		}
	}

	slices.SortFunc(found, func(a, b weighted) int {
		return cmp.Compare(a.value, b.value)
	})

	q.buffer = found

	return found
}

// quantilesOf returns the errors that a share of all is not above, for each share.
func quantilesOf(
	errors []weighted,
	shares [numConfidences]float64,
) [numConfidences]float64 {
	total := 0.0
	for _, e := range errors {
		total += e.weight
	}

	var picked [numConfidences]float64
	for i, share := range shares {
		sum := 0.0
		for _, e := range errors {
			sum += e.weight
			picked[i] = e.value
			if sum >= share*total {
				break
			}
		}
	}

	return picked
}

// keep notes how far off a day was and what it missed, when it is known what came.
func (q *quantiles) keep(day int, out [][numConfidences]float64) {
	if day >= len(q.came) {
		return
	}

	q.error[day] = make([]float64, len(out))
	for t, mean := range q.mean[day] {
		q.error[day][t] = (q.came[day][t] - mean) / sizeOf(mean)
	}

	missed := make([][numConfidences]float64, len(out))
	for t := range out {
		from, to := max(0, t-beside), min(t+beside+1, len(out))
		for near := from; near < to; near++ {
			for i, kw := range out[near] {
				if q.came[day][near] < kw {
					missed[t][i] += 1 / float64(to-from)
				}
			}
		}
	}

	q.missed[day] = missed
}
