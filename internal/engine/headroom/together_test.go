package headroom

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// TestShare_LeastPower has cars behind one fuse whose shares, if nothing were known of their least power, would leave one
// of them too little to charge with: all that is needed is met in the minutes that there are.
func TestShare_LeastPower(t *testing.T) {
	type car struct {
		phases int
		power  flex.Watts
		kwh    int64
	}

	for name, c := range map[string]struct {
		fuse  flex.Watts
		hours int
		cars  []car
		lacks int64 // Wh
	}{
		"two, one on three phases": {11_000, 6, []car{{3, 11_000, 30}, {1, 7_400, 36}}, 0},
		"two that must take turns": {5_000, 4, []car{{3, 11_000, 10}, {3, 11_000, 10}}, 0},
		"turns that waste a rest":  {8_000, 4, []car{{3, 4_140, 12}, {3, 4_140, 4}}, 0},
		"three":                    {15_000, 6, []car{{1, 7_400, 22}, {1, 3_680, 22}, {3, 11_000, 46}}, 0},
		"more than there is":       {11_000, 6, []car{{3, 11_000, 40}, {1, 7_400, 36}}, 10_000},
		"none can charge":          {1_000, 6, []car{{3, 11_000, 40}, {1, 7_400, 36}}, 76_000},
	} {
		t.Run(name, func(t *testing.T) {
			var cars []Car
			for _, k := range c.cars {
				cars = append(cars, Car{&charge.Problem{
					From: evening, ReadyBy: evening.Add(time.Duration(c.hours) * time.Hour),
					Need: flex.WattHours(k.kwh * 1000), Power: k.power, Least: flex.LeastPower(k.phases), AllOffPeak: true,
				}, 0})
			}

			r := New(evening, []flex.Cap{{Power: &c.fuse}})
			s, err := r.Share(cars, nil, nil)
			if err != nil {
				t.Fatal(err)
			}

			missing := int64(1000 * (&together{cars: cars, free: freeOf(cars), need: needOf(cars)}).missing(s.Cars))
			if most := c.lacks + 250; missing > most { // a minute of each car at the most
				t.Errorf("%d Wh are missing, want %d: %v", missing, c.lacks, s.Cars)
			}
			kept(t, r, cars, s.Cars)
		})
	}
}

func freeOf(cars []Car) (free []flex.Span) {
	for i := range cars {
		span, _ := cars[i].afterChargeNow()
		free = append(free, span)
	}
	return free
}

func needOf(cars []Car) (need []float64) {
	for i := range cars {
		_, joules := cars[i].afterChargeNow()
		need = append(need, max(0, float64(joules)/3.6e6))
	}
	return need
}

// kept looks whether shares keep the caps, and each car's least and most power.
func kept(t interface{ Errorf(string, ...any) }, r *Profile, cars []Car, shares [][]flex.Step) {
	if at, k, over := r.Exceeded(); over {
		t.Errorf("cap %d is exceeded at %v", k, at)
	}
	for i, steps := range shares {
		p := cars[i].Problem
		for _, s := range steps {
			if s.Limit < min(p.Power, leastOf(p)) || s.Limit > p.Power || s.Empty() {
				t.Errorf("car %d of %d to %d W is to have %v", i, leastOf(p), p.Power, s)
			}
		}
	}
}

// TestShare_LeastPowerRandom divides headroom among two or three random cars: no cap and no least power is ever broken.
func TestShare_LeastPowerRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, cars, prices := sharedFleet(t)
		if len(cars) < 2 {
			t.Skip("nothing is shared")
		}
		cars = cars[:min(3, len(cars))]
		for i := range cars {
			cars[i].Cap = 0
			cars[i].ChargeNow = flex.Span{}
		}

		fuse := flex.Watts(rapid.IntRange(1, 25).Draw(t, "fuse") * 1000)
		r := New(evening, []flex.Cap{{Power: &fuse}})
		s, err := r.Share(cars, prices, nil)
		if err != nil {
			t.Fatal(err)
		}

		kept(t, r, cars, s.Cars)
	})
}
