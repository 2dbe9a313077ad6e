package backtest

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
)

// evenHome is the month of even days with a car that is plugged in at 18:10 each evening until 07:00 and needs 10 kWh.
func evenHome(days int) *HomeCase {
	c := &HomeCase{Case: *evenDays(), Cars: make([][]CarStay, 1)}
	c.To = c.From.Add(days - 1)
	c.Known = func(at time.Time) time.Time { return flex.DayAt(at).Add(2).Start() }
	for n := range days - 1 {
		evening := c.From.Add(n).Period(1).Start().Add(18*time.Hour + 10*time.Minute)
		c.Cars[0] = append(c.Cars[0], CarStay{
			Span:   flex.Span{From: evening, To: evening.Add(12*time.Hour + 50*time.Minute)},
			Energy: 10_000,
			Power:  7_400,
		})
	}
	return c
}

// missed is how many stays came short in any of the ways.
func (r *HomeResult) missed() int {
	return r.Lacks.Unsteered.Stays + r.Lacks.Alone.Stays + r.Lacks.Together.Stays
}

// carAlone is the least that the car's energy can cost by itself, in pence: the cheapest half-hours of each stay.
func carAlone(c *HomeCase) float64 {
	type part struct{ price, kWh float64 }
	pence := 0.0
	for _, s := range c.Cars[0] {
		var parts []part
		for at := s.From.Truncate(flex.HalfHour); at.Before(s.To); at = at.Add(flex.HalfHour) {
			p := flex.PeriodAt(at)
			price, _ := c.Buy(p)
			parts = append(parts, part{price, p.Span().Meet(s.Span).Len().Hours() * s.Power.KW()})
		}

		slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.price, b.price) })
		left := s.Energy.KWh()
		for _, q := range parts {
			pence += min(left, q.kWh) * q.price
			left -= min(left, q.kWh)
		}
	}
	return pence
}

// TestHomeWithoutBattery: three days cost what is counted here.
func TestHomeWithoutBattery(t *testing.T) {
	c := evenHome(3)
	c.Battery.Power, c.Battery.Capacity = 0, 0
	r := RunHome(c, nil)
	loads := 3 * (12*150*8 + 24*150*30 + 12*600*30) / 1000.0 // as in TestEvenDays
	// Two stays of 10 kWh: at once all of it is charged at 30 p, steered at 8 p.
	want := HomeBills{Unsteered: loads + 20*30, Alone: loads + 20*8, Together: loads + 20*8}
	if diff := math.Abs(r.Total.Unsteered-want.Unsteered) + math.Abs(r.Total.Alone-want.Alone) +
		math.Abs(r.Total.Together-want.Together); diff > 1e-6 {
		t.Errorf("%+v, want %+v", r.Total, want)
	}

	if math.Abs(r.Bound-want.Together) > 1e-3 {
		t.Errorf("nothing costs less than %.4f p, want %.4f", r.Bound, want.Together)
	}
	if r.Counted != 2 || r.Dropped != 0 || r.missed() != 0 || r.CarCharged != 20_000 {
		t.Errorf(
			"%d stays, %d left out, %d missed, %d Wh charged",
			r.Counted,
			r.Dropped,
			r.missed(),
			r.CarCharged,
		)
	}
}

// TestHomeTogether: as one costs no more than each by itself where nothing is uncertain, and nothing beats the bound.
func TestHomeTogether(t *testing.T) {
	last, all := 0, 0
	r := RunHome(evenHome(5), func(done, total int) bool {
		if done < last || done > total {
			t.Errorf("%d of %d after %d", done, total, last)
		}
		last, all = done, total
		return true
	})
	if last != all || all < 5 || len(r.Bills) != 5 || r.missed() != 0 {
		t.Fatalf(
			"%d of %d days reported, %d bills, %d needs missed",
			last,
			all,
			len(r.Bills),
			r.missed(),
		)
	}

	b := r.Total
	if b.Together > b.Alone+1e-6 || b.Alone > b.Unsteered {
		t.Errorf(
			"unsteered %.2f p, each by itself %.2f, as one %.2f",
			b.Unsteered,
			b.Alone,
			b.Together,
		)
	}
	if r.Bound > b.Together || b.Together-r.Bound > 0.05*(b.Unsteered-r.Bound) {
		t.Errorf("as one %.6f p, the bound %.6f", b.Together, r.Bound)
	}
	if again := RunHome(evenHome(5), nil); again.Total != b || again.Bound != r.Bound {
		t.Errorf("%+v, then %+v", b, again.Total)
	}
}

// TestHomeRoof: a car that is there by day is to take what the roof gives, worth 4 p, and not wait for the night at 8 p,
// of which it knows nothing by itself.
func TestHomeRoof(t *testing.T) {
	c := evenHome(6)
	c.Battery.Capacity = 2000
	for d := c.From.Add(-30); d != c.To.Add(8); d = d.Add(1) {
		for n := 21; n <= 32; n++ {
			c.Roof[d.Period(n)] = 1_650
		}
	}

	for i := range c.Cars[0] {
		c.Cars[0][i].From = c.Cars[0][i].From.Add(-9 * time.Hour)
	}
	r := RunHome(c, nil)
	// All of 10 kWh in each of five stays; the battery's surplus is up to 2 kWh.
	if saved := r.Total.Alone - r.Total.Together; saved < 5*8*(8-4) || saved > 5*12*(8-4) {
		t.Errorf("as one saves %.2f p of %+v", saved, r.Total)
	}
	if r.Bound > r.Total.Together || r.missed() != 0 {
		t.Errorf(
			"as one %.2f p, the bound %.2f, %d missed",
			r.Total.Together,
			r.Bound,
			r.missed(),
		)
	}
}

// TestHomeBound: where buying and selling cost the same, battery and car have nothing to do with each other, and the
// bound is to come to the battery's optimum, worked out by its cost-to-go, and the car's cheapest half-hours. It may
// be lower by what the prices between its windows give away, and never higher.
func TestHomeBound(t *testing.T) {
	for seed := range uint64(2) {
		c := evenHome(6)
		random := rand.New(rand.NewPCG(seed, 1))
		price := map[flex.Period]float64{}
		c.Buy = func(p flex.Period) (float64, bool) {
			if _, there := price[p]; !there {
				price[p] = 5 + 30*random.Float64()
			}
			return price[p], true
		}

		for n := range 14 { // in one order, whatever asks first
			for _, p := range periodsOf(c.From.Add(n - 2)) {
				c.Buy(p)
			}
		}

		c.Sell = c.Buy
		r := RunHome(c, nil)
		var all actual
		for n := range 6 {
			past, _ := c.actual(periodsOf(c.From.Add(n)))
			all.append(past)
		}

		want := all.optimum(c.Battery) + carAlone(c)
		if r.Bound > want+1e-3 || want-r.Bound > 0.03*(r.Total.Unsteered-want) {
			t.Errorf(
				"seed %d: the bound is %.3f p, the optimum %.3f, unsteered %.3f",
				seed,
				r.Bound,
				want,
				r.Total.Unsteered,
			)
		}
		if r.Total.Together < want-1e-6 || r.missed() != 0 {
			t.Errorf(
				"seed %d: as one %.3f p, less than the optimum %.3f, or %d needs missed",
				seed,
				r.Total.Together,
				want,
				r.missed(),
			)
		}
	}
}

// TestHomeDrops: a stay that overlaps another, goes past the last day or touches a day that lacks something is left out.
func TestHomeDrops(t *testing.T) {
	c := evenHome(6)
	c.Cars[0] = append(c.Cars[0], c.Cars[0][0]) // twice
	last := c.Cars[0][4]
	last.From, last.To = last.From.Add(24*time.Hour), last.To.Add(24*time.Hour)
	c.Cars[0] = append(c.Cars[0], last)
	delete(c.Load, c.From.Add(3).Period(7))
	r := RunHome(c, nil)
	if r.Counted != 3 || r.Dropped != 4 || r.Skipped != 1 || r.missed() != 0 {
		t.Errorf(
			"%d stays, %d left out, %d days skipped, %d missed",
			r.Counted,
			r.Dropped,
			r.Skipped,
			r.missed(),
		)
	}
}

// TestHomeFuture: what comes after a day changes nothing that was planned in it, loads or prices or stays.
func TestHomeFuture(t *testing.T) {
	tillMidnight := evenDays().Known
	first := evenHome(6)
	first.Known = tillMidnight
	before := RunHome(first, nil)
	c := evenHome(6)
	c.Known = tillMidnight
	cut := c.From.Add(4)
	later := func(p flex.Period) bool { return !p.Start().Before(cut.Start()) }

	for p := range c.Load {
		if later(p) {
			c.Load[p] *= 3
		}
	}

	buy := c.Buy
	c.Buy = func(p flex.Period) (float64, bool) {
		b, ok := buy(p)
		if later(p) {
			b = 60 - b
		}
		return b, ok
	}

	c.Cars[0][4].Energy *= 2
	after := RunHome(c, nil)
	for i, b := range before.Bills {
		if b.Day.Start().Before(cut.Start()) && after.Bills[i] != b {
			t.Errorf("%s: %+v, and %+v with another future", b.Day, b, after.Bills[i])
		}
	}
}

// TestStopped: a test ends after the day for which progress is false, and a whole home's without its bound.
func TestStopped(t *testing.T) {
	stop := func(done, _ int) bool { return done < 2 }
	if r := Run(evenDays(), stop); len(r.Bills) != 2 {
		t.Errorf("a battery's has %d days, want 2", len(r.Bills))
	}
	if r := RunHome(evenHome(5), stop); len(r.Bills) != 2 || r.Bound != 0 {
		t.Errorf(
			"a home's has %d days and a bound of %.2f p, want 2 and none",
			len(r.Bills),
			r.Bound,
		)
	}
}
