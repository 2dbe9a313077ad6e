package backtest

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/heat"
	"flexd/internal/flex"
	"flexd/internal/forecast"
)

// wholeHome is an even home with a roof, a tank, a heat pump, a main fuse and an export limit.
func wholeHome(days int) *HomeCase {
	c := evenHome(days)
	limit := flex.Watts(1500)
	c.Fuse, c.Export = 9000, &limit
	c.Tank = &Tank{Element: 3000, Litres: 200, Daily: 5845}
	c.Heat = &HeatPump{Power: 2500, Low: 19, High: 22, Outdoor: map[flex.Period]float64{}}

	for d := c.From.Add(-30); d != c.To.Add(8); d = d.Add(1) {
		for n, p := range periodsOf(d) {
			c.Heat.Outdoor[p] = 5 + 4*math.Sin(float64(n-18)/48*2*math.Pi)
			if n > 18 && n < 32 {
				c.Roof[p] = 1_200
			}
		}
	}
	return c
}

// TestHome_Whole: nothing beats the bound, no way leaves a need out that another one meets, and steering saves.
func TestHome_Whole(t *testing.T) {
	r := RunHome(wholeHome(2), nil)
	b := r.Total
	if r.Bound > min(b.Unsteered, b.Alone, b.Together) || b.Together > b.Alone+1 || b.Alone > b.Unsteered {
		t.Errorf("%+v, the bound %.2f", b, r.Bound)
	}
	if r.missed() != 0 || r.Lacks.Together.pence() > 1 || r.Passed != 0 {
		t.Errorf("%+v are left out, the fuse is passed in %d half-hours", r.Lacks, r.Passed)
	}
	if r.WaterUsed < 14_000 || r.HeatDrawn < 10_000 {
		t.Errorf("%d Wh of hot water, %d of the heat pump", r.WaterUsed, r.HeatDrawn)
	}
}

// TestHome_Limits: whatever is decided, a half-hour keeps fuse and export limit, but for what the home itself passes, and
// the battery serves the home alone while a car charges. A kWh costs £10 either way, so that what is paid says what flowed.
func TestHome_Limits(t *testing.T) {
	c := wholeHome(2)
	c.Buy = func(flex.Period) (float64, bool) { return 1000, true }
	c.Sell = c.Buy
	random := rand.New(rand.NewPCG(5, 5))
	up := func(most int) flex.WattHours { return flex.WattHours(random.IntN(most + 1)) }
	now := &moment{cars: make([]carSlot, 1), period: c.From.Period(1)}

	for k := range 5000 {
		w := newHomeTest(c)
		h := &w.states[together]
		h.stored, h.level = 800+up(6400), int(up(3000))
		h.temp = 17 + 6*random.Float64()
		now.cars[0] = carSlot{}
		if random.IntN(3) > 0 {
			now.cars[0] = carSlot{stay: &carStay{power: 7400, room: []flex.WattHours{3700, 3700, 3700}}, index: random.IntN(3)}
			h.left[0] = up(9000)
		}

		is := homePast{
			actual:  actual{buy: []float64{1000}, sell: []float64{1000}, load: []flex.WattHours{up(3000)}, roof: []flex.WattHours{up(2500)}},
			used:    []int{int(up(900))},
			outdoor: []float64{float64(random.IntN(20) - 5)},
		}
		before, left, lack := h.stored, h.left[0], h.lack
		pence := w.execute(together, now, &is, decision{
			mode: battery.Mode(random.IntN(int(battery.ModeCount))),
			cars: []flex.WattHours{up(3700)}, on: random.IntN(2) == 0, heat: up(1250),
		})
		pence -= h.lack.pence() - lack.pence()
		home := is.load[0] - is.roof[0]
		if most := max(c.Fuse.KW()/2, home.KWh()); pence/1000 > most+1e-6 || pence/1000 < -0.75-1e-6 {
			t.Fatalf("%d: %.4f kWh at the meter, at most %.4f, the home draws %d Wh", k, pence/1000, most, home)
		}

		charged := now.cars[0].stay != nil && h.left[0] < left
		if gave := float64(before-h.stored) * 0.95; charged && gave > float64(is.load[0])+1500+1250+1e-6 {
			t.Fatalf("%d: the battery gave %.0f Wh beside a car, the home uses %d", k, gave, is.load[0])
		}
	}
}

// TestHome_NotIntoCar: a battery that the roof has filled covers the home and no car: the car pays for all it takes.
func TestHome_NotIntoCar(t *testing.T) {
	c := evenHome(2)
	for p := range c.Load {
		c.Load[p] = 0
	}
	for _, p := range periodsOf(c.From)[20:30] {
		c.Roof[p] = 1500
	}
	r := RunHome(c, nil)

	// 8 kWh can be held, of which a tenth is the reserve, and what is left of 15 kWh is sold at 4 p.
	want := 10*30 - 4*(15-7.2/0.95)
	if math.Abs(r.Total.Unsteered-want) > 0.1 {
		t.Errorf("unsteered %.2f p, want %.2f", r.Total.Unsteered, want)
	}
	if r.Bound > r.Total.Together {
		t.Errorf("as one %.2f p, the bound %.2f", r.Total.Together, r.Bound)
	}
}

// justHome is a home with nothing but a device.
func justHome(days int) *HomeCase {
	c := evenHome(days)
	c.Cars, c.Battery.Power, c.Battery.Capacity = nil, 0, 0
	for p := range c.Load {
		c.Load[p] = 0
	}
	return c
}

// TestHome_TankBound: at two prices the least that a tank can cost is worked out by hand: by night it is heated for what is
// used by night and, as far as it holds that, by day; the rest is bought by day.
func TestHome_TankBound(t *testing.T) {
	for _, daily := range []flex.WattHours{1000, 12_000} {
		c := justHome(2)
		c.Tank = &Tank{Element: 3000, Litres: 200, Daily: daily}
		r := RunHome(c, nil)
		top, _ := c.Tank.levels()
		want := 0.0

		for n := range 2 {
			night, day := 0, 0
			for _, p := range periodsOf(c.From.Add(n)) {
				used, _ := c.Tank.used(p)
				if price, _ := c.Buy(p); price < 10 {
					night += used
				} else {
					day += used
				}
			}
			want += float64(night+min(top, day))*8/1000 + float64(max(0, day-top))*30/1000
		}

		if math.Abs(r.Bound-want) > 0.01 {
			t.Errorf("%d Wh a day: the bound is %.3f p, want %.3f", daily, r.Bound, want)
		}
		if r.Total.Together < want-1e-6 || r.Total.Together > want*1.2 || r.Lacks.Together.Cold > 0.2 {
			t.Errorf("%d Wh a day: as one %.3f p, the least is %.3f; %+v", daily, r.Total.Together, want, r.Lacks.Together)
		}
	}
}

// TestHome_HeatPump: a thermostat keeps the middle of the band at what the house loses, and steering is between that and
// the bound.
func TestHome_HeatPump(t *testing.T) {
	c := justHome(2)
	c.Heat = &HeatPump{Power: 2500, Low: 19, High: 22, Outdoor: map[flex.Period]float64{}}
	for d := c.From.Add(-30); d != c.To.Add(8); d = d.Add(1) {
		for _, p := range periodsOf(d) {
			c.Heat.Outdoor[p] = 2
		}
	}

	r := RunHome(c, nil)
	b := heat.Assumed(2500)
	perHour := b.Loss * (20.5 - 2) / heat.COP(2)
	want := 2 * (6*perHour*8 + 18*perHour*30) / 1000
	if math.Abs(r.Total.Unsteered-want) > 0.5 {
		t.Errorf("unsteered %.2f p, want %.2f", r.Total.Unsteered, want)
	}
	if r.Total.Together > 0.95*r.Total.Unsteered || r.Bound > r.Total.Together || r.Lacks.Together.Discomfort > 0.1 {
		t.Errorf("%+v, the bound %.2f, %+v", r.Total, r.Bound, r.Lacks.Together)
	}
}

// TestHome_Gaps: a day without hot water or temperature is left out, and named.
func TestHome_Gaps(t *testing.T) {
	c := wholeHome(3)
	c.Cars = nil
	c.Tank.Drawn = forecast.Series{}
	for n := range 3 {
		for _, p := range periodsOf(c.From.Add(n)) {
			c.Tank.Drawn[p] = 100
		}
	}

	delete(c.Tank.Drawn, c.From.Period(7))
	delete(c.Heat.Outdoor, c.From.Add(1).Period(9))
	delete(c.Load, c.From.Add(2).Period(11))
	r := RunHome(c, nil)
	want := []string{
		"2025-10-10: there is no hot_water_kwh at 03:00",
		"2025-10-11: there is no outdoor_c at 04:00",
		"2025-10-12: there is no load_kwh at 05:00",
	}
	if len(r.Notes) != 3 || r.Notes[0] != want[0] || r.Notes[1] != want[1] || r.Notes[2] != want[2] {
		t.Errorf("%q, want %q", r.Notes, want)
	}
}
