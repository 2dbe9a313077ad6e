package sim_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/flex"
	"flexd/sim"
)

// curve is how a car really charges, which nobody says, and what its nights ask of it.
type curve struct {
	name    string
	charger flex.Watts
	car     sim.Car
	peak    bool              // it may charge at peak
	needs   [2]flex.WattHours // by night
	came    [2]time.Duration  // after midnight of the day before
	rooms   [2]flex.WattHours // beyond the need
	pinned  bool              // planned at nominal power, whatever it draws
	lost    time.Duration     // after midnight, when two phases are lost; 0 for never
}

// curveCars is the number of cars of one set of prices.
var curveCars = 24

// curvesOf draws cars. Arrivals and needs are those of real sessions, moved into the evening, and no car draws less
// than its session needed on average. The share of nominal power, the late start and the taper are drawn.
func curvesOf(t testing.TB, n int, seed uint64) []*curve {
	t.Helper()
	real, err := sim.RealSessions()
	if err != nil {
		t.Fatal(err)
	}

	draw := rand.New(rand.NewPCG(seed, 13))
	var cars []*curve
	for i := range n {
		c := &curve{name: fmt.Sprint("car", i), charger: []flex.Watts{3700, 7400, 11000}[draw.IntN(3)], peak: draw.IntN(2) == 0}
		share, floor := 0.25+0.75*draw.Float64(), 0.0
		for night := range c.needs {
			r := real[draw.IntN(len(real))]
			c.needs[night] = max(2000, r.Received)
			c.came[night] = 17*time.Hour + time.Duration(r.Arrival)%(5*time.Hour)
			c.rooms[night] = flex.WattHours(300 + draw.IntN(3000))
			floor = max(floor, float64(r.Received)/r.Stay.Hours())
		}

		c.car.Rate = flex.Watts(min(float64(c.charger), max(floor, share*float64(c.charger))))
		c.car.Late = time.Duration(max(0, draw.IntN(30)-15)) * time.Minute
		if draw.IntN(2) == 0 {
			c.car.Taper = 500 + 3500*draw.Float64()
		}
		if c.charger == 11000 && draw.IntN(3) == 0 {
			c.lost = time.Duration(60+draw.IntN(240)) * time.Minute
		}

		cars = append(cars, c)
	}

	return cars
}

// made is the car as it comes on a night.
func (c *curve) made(night int, midnight time.Time) sim.Car {
	car := c.car
	car.Name = c.name
	car.Room = float64(c.needs[night] + c.rooms[night])
	if c.lost > 0 {
		car.OnePhase = flex.Span{From: midnight.Add(c.lost), To: midnight.AddDate(0, 0, 1)}
	}

	return car
}

// possible is the energy that the car would have by the end of some spans, had it been allowed all in them.
func possible(car sim.Car, power flex.Watts, open ...flex.Span) float64 {
	const step = 10 * time.Second
	got := 0.0

	for _, span := range open {
		for at := span.From; at.Before(span.To); at = at.Add(step) {
			w := float64(car.Rate)
			if car.OnePhase.Contains(at) {
				w /= 3
			}
			if car.Taper > 0 {
				w *= min(1, max(0.1, (car.Room-got)/car.Taper))
			}
			if at.Before(span.From.Add(car.Late)) {
				w = 0
			}

			got = min(car.Room, got+min(w, float64(power))*step.Hours())
		}
	}

	return got
}

// knowable is the energy that the car would have by the morning, were it read at every instant from the first off-peak half-hour on, in which
// it charges, and did it charge the rest where it is cheapest by the power that it drew last: a taper that has not begun and a phase that is not
// lost yet count for nothing. That is all that can be asked of a plan on a night of which nothing is known.
func (c *curve) knowable(car sim.Car, need float64, cheap flex.Span, leaves time.Time, prices string) float64 {
	const step = 10 * time.Second
	half := cheap.From.Truncate(24 * time.Hour).Add(3 * time.Hour)
	tier := func(at time.Time) int { // the lower is charged in first
		switch {
		case !at.Before(cheap.To):
			return 2
		case at.Before(half) && strings.Contains(prices, "03:00"):
			return 1
		}
		return 0
	}

	got, on, last := 0.0, time.Time{}, float64(c.charger)
	for at := cheap.From; at.Before(leaves); at = at.Add(step) {
		cheaper := 0.0 // hours
		for later := at; later.Before(leaves); later = later.Add(time.Minute) {
			if tier(later) < tier(at) {
				cheaper += time.Minute.Hours()
			}
		}

		if cheaper > 0 && got > 0 { // it began late before
			cheaper = max(0, cheaper-car.Late.Hours())
		}
		probes := at.Before(cheap.From.Add(flex.HalfHour))
		if !probes && need-got <= last*cheaper || need <= got || tier(at) == 2 && !c.peak {
			on = time.Time{}
			continue
		}

		if on.IsZero() {
			on = at
		}
		if at.Before(on.Add(car.Late)) {
			continue
		}

		w := float64(car.Rate)
		if car.OnePhase.Contains(at) {
			w /= 3
		}
		if car.Taper > 0 {
			w *= min(1, max(0.1, (car.Room-got)/car.Taper))
		}
		last = min(w, float64(c.charger))
		got = min(car.Room, got+last*step.Hours())
	}

	return min(need, got)
}

// curveNights counts what a night of some cars came to.
type curveNights struct {
	cars, met, offPeak, calm int     // cars; those that met the goal for energy, for peak time and for pushes
	want, inTime, got        float64 // Wh: possible of the needs, possible of them from 00:30 on, delivered of them
	gotInTime                float64 // Wh: delivered of what was possible from 00:30 on
	known, gotKnown          float64 // Wh: possible without knowing what comes, and delivered of that
	atPeak                   float64 // Wh at peak that off-peak time could have given
	pushes, most             int
}

func (s *curveNights) String() string {
	return fmt.Sprintf("%d cars: %.2f %% of what is possible, %.2f %% of what is from 00:30 on, %.2f %% of what is without knowing what comes (%d cars); %.2f kWh at peak without need (%d cars without); %.2f pushes, at most %d (%d cars with 3 or fewer)",
		s.cars, 100*s.share(), 100*s.shareInTime(), 100*s.gotKnown/s.known, s.met, s.atPeak/1000, s.offPeak, float64(s.pushes)/float64(s.cars), s.most, s.calm)
}

func (s *curveNights) share() float64       { return s.got / s.want }
func (s *curveNights) shareInTime() float64 { return s.gotInTime / s.inTime }

// within reports whether a night is as good as is shown: see docs/engine.md for what is missed of the goal.
func (s *curveNights) within(least float64) bool {
	n := float64(s.cars)
	energy := s.shareInTime() >= least && s.gotKnown >= 0.995*s.known
	peak := s.atPeak <= 0.015*s.want
	calm := float64(s.pushes) <= 3*n && float64(s.calm) >= 0.7*n

	return energy && peak && calm
}

// What cars draw that nobody says, by the prices of the off-peak hours: what is possible is there in the morning, and
// on the first night what is possible from the first off-peak hour on. A planner that takes nominal power for granted
// is found to miss that.
func TestRates_Curves(t *testing.T) {
	n := curveCars
	if os.Getenv("FLEXD_LONG") != "" {
		n = 200
	}

	for _, test := range []curveTest{
		{"00:30-05:30 60", [2]float64{0.999, 0.999}, false},
		{"00:30-05:30 60", [2]float64{0.999, 0.999}, true},
		{"00:30-03:00 90 03:00-05:30 50", [2]float64{0.97, 0.99}, false},
		{"00:30-03:00 90 03:00-05:30 50", [2]float64{0.97, 0.99}, true},
	} {
		t.Run(fmt.Sprintf("%s, nominal %t", test.prices, test.nominal), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test.play(t, curvesOf(t, n, 1)) })
		})
	}
}

// curveTest is two nights at some prices.
type curveTest struct {
	prices  string
	least   [2]float64 // by night, of what is possible from 00:30 on
	nominal bool       // all are planned at nominal power, and the goal is missed
}

// ownCase is the car of which planners at nominal power are complained of.
func ownCase() *curve {
	return &curve{
		name: "slow", charger: 7400, peak: true, car: sim.Car{Rate: 3600},
		needs: [2]flex.WattHours{16_000, 16_000}, came: [2]time.Duration{18 * time.Hour, 18 * time.Hour},
		rooms: [2]flex.WattHours{20_000, 20_000},
	}
}

// shortCase is a car that needs so little that a window for it at nominal power is hardly longer than its late start.
func shortCase() *curve {
	return &curve{
		name: "short", charger: 7400, car: sim.Car{Rate: 3500, Late: 12 * time.Minute},
		needs: [2]flex.WattHours{2_000, 2_000}, came: [2]time.Duration{18 * time.Hour, 18 * time.Hour},
		rooms: [2]flex.WattHours{3_000, 3_000},
	}
}

func (test *curveTest) play(t *testing.T, cars []*curve) {
	start := time.Date(2026, 1, 12, 15, 0, 0, 0, time.UTC)
	lines, err := sim.ParseStory(fmt.Sprintf("at %s\nsite home\n", start.Format("2006-01-02T15:04Z")))
	if err != nil {
		t.Fatal(err)
	}

	cars = append(cars, ownCase(), shortCase())
	playWith(t, lines, func(p *player) {
		p.step = flex.HalfHour
		for _, c := range cars {
			p.addCharger(c.name, "home", fmt.Sprint(c.charger.KW()))
			p.chargers[c.name].ShowsIdle = true
			c.pinned = test.nominal
			if test.nominal {
				p.must(p.app.Control.PinRate(p.Context(), p.org, flex.AssetID(p.assets[c.name]), c.charger))
			}
		}

		for night := range 2 {
			s := curveNight(p, cars, night, start.AddDate(0, 0, night), test.prices)
			t.Logf("night %d: %s", night+1, s)
			if s.within(test.least[night]) == test.nominal {
				t.Errorf("night %d: within the bounds: %t", night+1, !test.nominal)
			}
		}
	})
}

// curveNight plays one night and judges it.
func curveNight(p *player, cars []*curve, night int, start time.Time, prices string) *curveNights {
	midnight := start.Truncate(24*time.Hour).AddDate(0, 0, 1)
	p.until(start)
	p.publish("100", prices)
	before := map[string]int{}
	for at := start; at.Before(midnight.Add(7 * time.Hour)); at = at.Add(flex.HalfHour) {
		p.until(at) // what was metered is reported
		for _, c := range cars {
			if c.arrival(night, midnight).Equal(at) {
				before[c.name] = p.heard[c.name]
				c.plugIn(p, night, midnight)
			}
		}

		p.until(at.Add(time.Minute)) // and planned with
	}

	p.until(midnight.Add(7 * time.Hour))
	var s curveNights
	for _, c := range cars {
		s.judge(p, c, night, midnight, p.heard[c.name]-before[c.name], prices)
		p.chargers[c.name].Plug(nil, p.now)
		p.must(p.client.PlugOut(p.Context(), p.assets[c.name]))
	}

	return &s
}

// arrival is when the car comes, at the half-hour.
func (c *curve) arrival(night int, midnight time.Time) time.Time {
	return midnight.AddDate(0, 0, -1).Add(c.came[night]).Truncate(flex.HalfHour)
}

func (c *curve) plugIn(p *player, night int, midnight time.Time) {
	car := c.made(night, midnight)
	p.chargers[c.name].Plug(&car, p.now)
	words := fmt.Sprintf("need %gkWh by 07:00 tariff 00:30-05:30 Europe/London", c.needs[night].KWh())
	if c.peak {
		words += " peak allowed"
	}
	p.must(p.client.PlugIn(p.Context(), p.assets[c.name], p.wish(words)))
}

// bounds are the most of a need that is possible in off-peak time, with what is permitted of peak time, and with what
// is permitted from the beginning of off-peak time on.
func (c *curve) bounds(night int, midnight time.Time) (offPeak, all, inTime float64, cheap flex.Span) {
	cheap = flex.Span{From: midnight.Add(30 * time.Minute), To: midnight.Add(5*time.Hour + 30*time.Minute)}
	leaves := midnight.Add(7 * time.Hour)
	need, car := float64(c.needs[night]), c.made(night, midnight)
	offPeak = min(need, possible(car, c.charger, cheap))
	if !c.peak {
		return offPeak, offPeak, offPeak, cheap
	}

	all = min(need, possible(car, c.charger, flex.Span{From: c.arrival(night, midnight), To: leaves}))
	inTime = min(need, possible(car, c.charger, flex.Span{From: cheap.From, To: leaves}))

	return offPeak, all, inTime, cheap
}

func (s *curveNights) judge(p *player, c *curve, night int, midnight time.Time, pushes int, prices string) {
	offPeak, all, inTime, cheap := c.bounds(night, midnight)
	stay := flex.Span{From: c.arrival(night, midnight), To: midnight.Add(7 * time.Hour)}
	got, atPeak := p.chargers[c.name].Car().Got, 0.0
	for period, wh := range p.drawn[c.name] {
		if stay.Contains(period.Start()) && !cheap.Contains(period.Start()) {
			atPeak += wh
		}
	}

	least := 0.999
	if night > 0 {
		least = 0.9999
	}

	excess := max(0, atPeak-(all-offPeak))
	s.cars++
	s.want, s.got = s.want+all, s.got+min(all, got)
	known := min(inTime, c.knowable(c.made(night, midnight), float64(c.needs[night]), cheap, stay.To, prices))
	s.known, s.gotKnown = s.known+known, s.gotKnown+min(known, got)
	s.inTime, s.gotInTime = s.inTime+inTime, s.gotInTime+min(inTime, got)
	s.atPeak += excess
	s.pushes, s.most = s.pushes+pushes, max(s.most, pushes)

	ok := [3]bool{got >= least*all, excess <= 0.001*all, pushes <= 3}
	for i, n := range []*int{&s.met, &s.offPeak, &s.calm} {
		if ok[i] {
			*n++
		}
	}

	if ok != [3]bool{true, true, true} {
		p.Logf("night %d %s: %.3f of %.3f kWh (%.3f from 00:30 on, %.3f knowable), %.3f at peak without need, %d pushes: %+v", night+1, c.name, got/1000, all/1000, inTime/1000, known/1000, excess/1000, pushes, *c)
	}
	if c.name == shortCase().name && got < 0.97*all && !c.pinned {
		p.Errorf("night %d: a short charge has %.3f of %.3f kWh", night+1, got/1000, all/1000)
	}
	if own := c.name == ownCase().name; own && ok != [3]bool{true, true, true} && !c.pinned {
		p.Errorf("night %d: it has %.3f kWh, %.3f at peak, %d pushes", night+1, got/1000, excess/1000, pushes)
	}
}
