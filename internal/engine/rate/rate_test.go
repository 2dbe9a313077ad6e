package rate_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"flexd/internal/engine/rate"
	"flexd/internal/flex"
)

const nominal = flex.Watts(7400)

var night = time.Date(2026, 11, 22, 0, 30, 0, 0, time.UTC)

// drew is half-hours in which full power was allowed, with what was drawn in kW; the first
// began the charge.
func drew(day int, kw ...float64) (hs []rate.HalfHour) {
	first := flex.PeriodAt(night.AddDate(0, 0, day))
	for i, v := range kw {
		hs = append(hs, rate.HalfHour{Period: first.Add(i), Energy: flex.FromKWh(v / 2), Allowed: flex.NoLimit, Open: flex.HalfHour, Nominal: nominal, Began: i == 0})
	}
	return hs
}

// held is half-hours under a limit.
func held(day int, limit flex.Watts, kw ...float64) []rate.HalfHour {
	hs := drew(day, kw...)
	for i := range hs {
		hs[i].Allowed, hs[i].Open = limit, 0
	}
	return hs
}

// part has only the first minutes of the last half-hour allowed.
func part(hs []rate.HalfHour, open time.Duration) []rate.HalfHour {
	last := &hs[len(hs)-1]
	last.Allowed, last.Open = 0, open
	return hs
}

func TestSummarise(t *testing.T) {
	for _, test := range []struct {
		name string
		hs   []rate.HalfHour
		want rate.Session // without its times
	}{
		{"nothing", nil, rate.Session{}},
		{"a slow car", drew(0, 3.6, 3.6, 3.6), rate.Session{HalfHours: 2, Power: 3600}},
		{"all that is nominal", drew(0, 7.4, 7.4, 7.35), rate.Session{HalfHours: 2, Power: flex.NoLimit}},
		{"only a first half-hour", drew(0, 2.4), rate.Session{HalfHours: 1, Power: 2400}},
		{"a late start", drew(0, 1.8, 3.6, 3.6), rate.Session{HalfHours: 2, Power: 3600, Delay: 15 * time.Minute}},
		{"a shared supply at first", drew(0, 3.6, 3.6, 7.4, 7.4), rate.Session{HalfHours: 3, Power: flex.NoLimit, Delay: 15*time.Minute + 24*time.Second}},
		{"one slow, one fast", drew(0, 7.4, 3.6, 7.4), rate.Session{HalfHours: 2, Power: flex.NoLimit}},
		{"full at the end", drew(0, 3.6, 3.6, 3.6, 1.2, 0, 0), rate.Session{HalfHours: 2, Power: 3600}},
		{"a tail", drew(0, 3.6, 3.6, 3.6, 3, 2, 1), rate.Session{HalfHours: 2, Power: 3600, Tail: 300 + 800 + 1300}},
		{"phases lost", drew(0, 7.4, 7.4, 2.4, 2.4), rate.Session{HalfHours: 1, Power: flex.NoLimit, Tail: 5000}},
		{"a tail in a part of a half-hour", part(drew(0, 7.4, 7.4, 2.4), 20*time.Minute), rate.Session{HalfHours: 1, Power: flex.NoLimit, Tail: 1266}},
		{"all that a cap allows", held(0, 3000, 3, 3, 2.99), rate.Session{AtLeast: 3000, Minimum: 3000}},
		{"about what a cap allows", held(0, 3000, 2.8, 2.8), rate.Session{Minimum: 3000}},
		{"less than a cap allows", held(0, 3000, 2, 2, 2), rate.Session{HalfHours: 2, Power: 2000, Minimum: 3000}},
		{"less than it accepts", held(0, 1000, 0, 0, 0), rate.Session{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := rate.Summarise(test.hs)
			got.From, got.To = time.Time{}, time.Time{}
			if got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestLearn(t *testing.T) {
	slow, fast := []float64{3.6, 3.6, 3.6, 3.6, 3.6}, []float64{7.4, 7.4, 7.4, 7.4}
	for _, test := range []struct {
		name      string
		sessions  [][]rate.HalfHour
		want      flex.Watts // planned
		certainty rate.Certainty
	}{
		{"nothing", nil, nominal, rate.None},
		{"one slow session", [][]rate.HalfHour{drew(0, slow...)}, 3600, rate.Medium},
		{"one fast session", [][]rate.HalfHour{drew(0, fast...)}, nominal, rate.Medium},
		{"slow, then fast", [][]rate.HalfHour{drew(0, slow...), drew(1, fast...)}, 3600, rate.Medium},
		{"slow once, fast twice", [][]rate.HalfHour{drew(0, slow...), drew(1, fast...), drew(2, fast...)}, nominal, rate.Medium},
		{"always slow", [][]rate.HalfHour{drew(0, slow...), drew(1, slow...), drew(2, slow...)}, 3600, rate.High},
		{"one half-hour", [][]rate.HalfHour{drew(0, 3.6, 3.61)}, 3610, rate.Low},
		{"held to what was known", [][]rate.HalfHour{drew(0, slow...), held(1, 3600, slow...)}, 3960, rate.Medium},
		{"held to less than was known", [][]rate.HalfHour{drew(0, slow...), held(1, 2000, 2, 2, 2)}, 3600, rate.Medium},
		{"older than five sessions", [][]rate.HalfHour{drew(0, slow...), drew(1, slow...), drew(2, slow...), drew(3, fast...), drew(4, fast...), drew(5, fast...), drew(6, fast...), drew(7, fast...)}, nominal, rate.High},
	} {
		t.Run(test.name, func(t *testing.T) {
			var past []rate.Session
			for _, hs := range test.sessions {
				past = append(past, rate.Summarise(hs))
			}

			r := rate.Learn(past)
			if p, _ := r.Planned(nominal); p != test.want || r.Certainty != test.certainty {
				t.Errorf("planned %d (%s), want %d (%s): %+v", p, r.Certainty, test.want, test.certainty, r)
			}
		})
	}
}

func TestWithin(t *testing.T) {
	slow := rate.Learn([]rate.Session{rate.Summarise(drew(0, 3.6, 3.6, 3.6))})

	fast := rate.Learn([]rate.Session{rate.Summarise(drew(0, 7.4, 7.4, 7.4))})
	for _, test := range []struct {
		name  string
		known rate.Rate
		kw    []float64
		want  flex.Watts
	}{
		{"nothing yet", slow, nil, 3600},
		{"a car is full", slow, []float64{0, 0}, 3600},
		{"the first is believed", rate.Rate{}, []float64{3.6}, 3600},
		{"lower at once, and still falling", fast, []float64{7.4, 3.6}, 1800},
		{"lower, and no longer falling", fast, []float64{7.4, 3.6, 3.6}, 3600},
		{"a late start of a known car", fast, []float64{3.6}, nominal},
		{"higher not at once", slow, []float64{3.6, 7.4}, 3600},
		{"higher twice", slow, []float64{3.6, 7.4, 7.4}, nominal},
		{"a dip passes", fast, []float64{7.4, 3.6, 7.4, 7.4}, nominal},
		{"the start does not count once more is known", rate.Rate{}, []float64{1, 3.6}, 3600},
	} {
		t.Run(test.name, func(t *testing.T) {
			if p, _ := rate.Within(test.known, drew(1, test.kw...)).Planned(nominal); p != test.want {
				t.Errorf("planned %d, want %d", p, test.want)
			}
		})
	}
}

// A late start is distinguished from a slow car as soon as a second half-hour shows the power.
func TestWithin_Delay(t *testing.T) {
	for _, test := range []struct {
		name  string
		known rate.Rate
		kw    []float64
		want  time.Duration
	}{
		{"one half-hour", rate.Rate{}, []float64{1.8}, 0},
		{"two", rate.Rate{}, []float64{1.8, 3.6}, 15 * time.Minute},
		{"two alike", rate.Rate{}, []float64{3.6, 3.6}, 0},
		{"of a car that is known", rate.Learn([]rate.Session{rate.Summarise(drew(0, 3.6, 3.6, 3.6))}), []float64{1.8, 3.6}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := rate.Within(test.known, drew(1, test.kw...)).Delay; got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// Of a half-hour that was allowed but for a few minutes what those show counts, if it was no start.
func TestWithin_NearlyWhole(t *testing.T) {
	for _, test := range []struct {
		name string
		open time.Duration
		kw   []float64 // the mean of the last half-hour
		want flex.Watts
	}{
		{"long enough", 20 * time.Minute, []float64{1.8, 2.4}, 3600},
		{"too short", 20*time.Minute - time.Second, []float64{1.8, 2.4}, 1800},
		{"a start", 29 * time.Minute, []float64{1.8}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rate.Within(rate.Rate{}, part(drew(1, test.kw...), test.open))
			if r.Power != test.want {
				t.Errorf("%d W, want %d", r.Power, test.want)
			}
		})
	}
}

func TestSteady(t *testing.T) {
	for _, test := range []struct{ current, next, want flex.Watts }{
		{3600, 3600, 3600}, {3600, 3492, 3600}, {3600, 3491, 3491}, {3600, 3708, 3600}, {3600, 3709, 3709}, {7400, 3600, 3600},
	} {
		if got := rate.Steady(test.current, test.next); got != test.want {
			t.Errorf("%d to %d: %d, want %d", test.current, test.next, got, test.want)
		}
	}
}

func TestAllowance(t *testing.T) {
	r := rate.Rate{Power: 3600, Delay: 10 * time.Minute, Tail: 1000}
	for _, test := range []struct {
		need  flex.WattHours
		state rate.State
		want  flex.WattHours
	}{
		{0, rate.Waiting, 0}, {-5, rate.Stopped, 0}, {10_000, rate.Waiting, 100 + 60 + 1000 + 600}, {10_000, rate.Running, 100 + 60 + 1000},
		{10_000, rate.Stopped, 100 + 60 + 1000 + 600}, {1000, rate.Running, 10 + 60 + 1000},
	} {
		if got := r.Allowance(test.need, 10_000, 3600, test.state); got != test.want {
			t.Errorf("%d Wh: %d, want %d", test.need, got, test.want)
		}
	}
}

// However readings come, and however often, the same is learned; and it lies within what was
// drawn.
func TestAnyOrder(t *testing.T) {
	draw := rand.New(rand.NewPCG(13, 1))
	for range 2000 {
		var past, mixed []rate.Session
		lowest, highest := flex.NoLimit, flex.Watts(0)

		for day := range 1 + draw.IntN(7) {
			kw := make([]float64, 1+draw.IntN(12))
			for i := range kw {
				kw[i] = 0.1 + 7.3*draw.Float64()
				w := flex.Watts(2 * flex.FromKWh(kw[i]/2))
				lowest, highest = min(lowest, w), max(highest, w)
			}

			hs := drew(day, kw...)
			past = append(past, rate.Summarise(hs))
			again := append(append([]rate.HalfHour{}, hs...), hs[:draw.IntN(len(hs))]...)
			draw.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
			mixed = append(mixed, rate.Summarise(again))
		}

		draw.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })

		a, b := rate.Learn(past), rate.Learn(mixed)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("in order %+v, in another %+v", a, b)
		}

		if a.Power < lowest || a.Power > highest && a.Power != flex.NoLimit {
			t.Fatalf("%d W was learned from %d to %d W", a.Power, lowest, highest)
		}
	}
}

// The tail is bounded by a share of the whole need.
func TestAllowance_Tail(t *testing.T) {
	r := rate.Rate{Tail: 5000}
	if got := r.Allowance(1000, 10_000, 3600, rate.Running); got != 10+60+3000 {
		t.Errorf("%d Wh", got)
	}
}

// The tail of an asset that drew all that is nominal counts until it draws clearly less, and not at two percent less.
func TestWithin_TailStays(t *testing.T) {
	known := rate.Rate{Power: flex.FullLimit(nominal), Tail: 1500}
	if r := rate.Within(known, drew(0, 7.4, 7.25, 7.25)); r.Tail != 1500 {
		t.Errorf("a tail of %d Wh is left at %d W", r.Tail, r.Power)
	}

	if r := rate.Within(known, drew(0, 7.4, 7.4, 3.6)); r.Tail != 0 {
		t.Errorf("a tail of %d Wh is left at %d W", r.Tail, r.Power)
	}
}
