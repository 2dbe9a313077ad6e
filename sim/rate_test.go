package sim_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/flex"
	"flexd/sim"
)

// slowCar is a car that does not draw what its charger is rated at.
type slowCar struct {
	name    string
	charger float64 // kW
	draws   float64 // kW
	need    float64 // kWh
	room    float64 // kWh
	late    time.Duration
	taper   float64       // kWh
	lost    time.Duration // after midnight UTC, when two phases of three are lost; 0 for never
	first   int           // pushes on the first night at most, if they are more than 3
}

// Whatever a car draws, its need is there in the morning: nearly all of it on the first night,
// when its half-hours teach what it draws, and all of it from the second. No peak energy is
// drawn that off-peak time could have given, and no more than two pushes come a night beside
// the one that perfect knowledge would send.
func TestRates(t *testing.T) {
	for _, car := range []slowCar{
		{name: "all that is nominal", charger: 7.4, draws: 7.4, need: 16, room: 30},
		{name: "three quarters", charger: 7.4, draws: 5.55, need: 20, room: 30},
		{name: "half", charger: 7.4, draws: 3.6, need: 16, room: 30},
		{name: "a quarter", charger: 7.4, draws: 1.85, need: 8, room: 30},
		{name: "a late start", charger: 7.4, draws: 3.6, need: 14, room: 30, late: 12 * time.Minute},
		{name: "a taper", charger: 7.4, draws: 7.4, need: 14, room: 15, taper: 4},
		{name: "half, late and with a taper", charger: 7.4, draws: 3.6, need: 12, room: 13, late: 5 * time.Minute, taper: 2, first: 4},
		{name: "two phases lost", charger: 11, draws: 11, need: 25, room: 60, lost: 2 * time.Hour},
	} {
		t.Run(car.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { car.play(t) })
		})
	}
}

func (car *slowCar) play(t *testing.T) {
	start := time.Date(2026, 1, 12, 15, 0, 0, 0, time.UTC)
	lines, err := sim.ParseStory(fmt.Sprintf("at %s\nsite home\ncharger leaf at home %gkW\n", start.Format("2006-01-02T15:04Z"), car.charger))
	if err != nil {
		t.Fatal(err)
	}

	playWith(t, lines, func(p *player) {
		p.step = stepLength
		for night := range 3 {
			car.night(p, night, start.AddDate(0, 0, night))
		}
	})
}

func (car *slowCar) night(p *player, night int, start time.Time) {
	p.until(start)
	p.publish("100", "00:30-05:30 60")
	p.until(start.Add(3 * time.Hour))
	c := p.chargers["leaf"]
	midnight := start.Truncate(24*time.Hour).AddDate(0, 0, 1)
	made := &sim.Car{Rate: flex.FromKW(car.draws), Room: car.room * 1000, Late: car.late, Taper: car.taper * 1000}

	if car.lost > 0 {
		made.OnePhase = flex.Span{From: midnight.Add(car.lost), To: midnight.AddDate(0, 0, 1)}
	}

	c.Plug(made, p.now)
	before := p.heard["leaf"]
	p.must(p.client.PlugIn(p.Context(), p.assets["leaf"], p.wish(fmt.Sprintf("need %gkWh by 07:00 tariff 00:30-05:30 Europe/London peak allowed", car.need))))
	p.runUntilIdle()
	p.until(midnight.Add(7 * time.Hour))

	got, pushes := c.Car().Got/1000, p.heard["leaf"]-before
	peak := 0.0

	for period, wh := range p.drawn["leaf"] {
		if at := period.Start().Sub(midnight); at >= -7*time.Hour && at < 30*time.Minute || at >= 5*time.Hour+30*time.Minute && at < 7*time.Hour {
			peak += wh / 1000
		}
	}

	p.Logf("night %d: %.3f of %g kWh, %.3f at peak, %d pushes", night+1, got, car.need, peak, pushes)
	least := 0.999

	if night > 0 {
		least = 1
	}

	most := 3
	if night == 0 {
		most = max(most, car.first)
	}
	if got < least*car.need || peak > 0.001 || pushes > most {
		p.Errorf("night %d: %.3f of %g kWh, %.3f at peak, %d pushes", night+1, got, car.need, peak, pushes)
	}

	c.Plug(nil, p.now)
	p.must(p.client.PlugOut(p.Context(), p.assets["leaf"]))
}
