package instruct

import (
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// habit is how a simulated charger takes a plan.
type habit int

const (
	prompt  habit = iota // follows within seconds
	late                 // follows within a minute
	liar                 // accepts, and does not follow
	refuser              // refuses
	offline              // does not answer
)

// charger is one of the simulated fleet: fake seconds, in memory.
type charger struct {
	habit   habit
	delay   int // seconds from a plan to its acceptance
	problem charge.Problem
	offer   Offer
	steps   []flex.Step // of the schedule in force without
	base    flex.Watts  // what it draws without

	called   bool
	out      bool // was released: not called again
	sent     int  // second of its last plan
	draws    flex.Watts
	accepted bool
	failed   bool
	metered  bool
	changes  int
}

const chargers = 10_000

// newChargers makes chargers that all charge now. One in twenty is late, one in forty refuses,
// and one in forty is offline. Of each thousand, as many as liars says accept and then do
// nothing.
func newChargers(liars int) []charger {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]charger, chargers)
	order := Order{Window: flex.Span{From: evening, To: evening.Add(time.Hour)}}
	var prices []flex.PricedPeriod
	for i := range 30 {
		prices = append(prices, flex.PricedPeriod{Period: flex.PeriodAt(evening).Add(i), Price: flex.Price(10*i+r.IntN(9)) * 1e6, Known: true})
	}

	for i := range all {
		c := &all[i]
		c.delay = 1 + r.IntN(8)
		switch n := r.IntN(1000); {
		case n < 50:
			c.habit, c.delay = late, 10+r.IntN(50)

		case n < 75:
			c.habit = refuser

		case n < 100:
			c.habit = offline

		case n < 100+liars:
			c.habit = liar
		}

		c.problem = charge.Problem{
			From: evening, ReadyBy: evening.Add(time.Duration(90+r.IntN(720)) * time.Minute), Prices: prices,
			Need: flex.WattHours(8_000 + r.IntN(30_000)), Power: []flex.Watts{3680, 7400}[r.IntN(2)], AllOffPeak: true, PauseAbove: 400e6,
			Mode: []flex.ChargingMode{flex.Minimise, flex.Maximise}[i%2],
		}

		c.base, c.draws = c.problem.Power, c.problem.Power
		c.steps = charge.Solve(c.problem).Steps
		c.offer = Call(order, c.problem, c.steps)
	}

	return all
}

// step lets a second go by: chargers take their plans, and say so.
func (c *charger) step(second int) {
	if second < c.sent+c.delay {
		return
	}

	switch c.habit {
	case refuser:
		c.failed = c.called

	case offline:
	case liar:
		c.accepted = true

	default:
		c.accepted = true
		c.draws = c.base
		if c.called {
			c.draws = c.base - watts(&c.offer)
		}
	}
}

// watts is the power that a charger gives up, in the first slot.
func watts(f *Offer) flex.Watts { return flex.Watts(f.Change[0] / 1200) }

func (c *charger) send(second int, called bool) {
	c.called, c.sent, c.accepted = called, second, false
	c.out = c.out || !called
	c.changes++
}

// checked is one look of the loop: who is called and who is released.
func checked(all []charger, target []charge.Joules, second int, back *Rebound) {
	var called, others []Candidate
	var calledAt, othersAt []int
	for i := range all {
		c := &all[i]
		candidate := Candidate{Change: c.offer.Change[:1], Cost: c.offer.Cost, Quality: 100}
		switch {
		case c.called:
			candidate.Quality = Followed{
				Since: time.Duration(second-c.sent) * time.Second, Accepted: c.accepted, Failed: c.failed, Metered: c.metered, Share: c.share(),
			}.Counts()

			called, calledAt = append(called, candidate), append(calledAt, i)

		case !c.out:
			others, othersAt = append(others, candidate), append(othersAt, i)
		}
	}

	var call, release []int
	if missing, short := Missing(target, called); short {
		for t := range missing {
			missing[t] = max(0, missing[t])
		}
		call = ChooseApart(missing, others, true,
			func(i int) time.Time { return all[othersAt[i]].problem.ReadyBy },
			func(i int, over bool) bool { return all[othersAt[i]].comesBack(back, over) })
	} else {
		_, release = Correct(target, called, others, true)
	}

	for _, i := range call {
		all[othersAt[i]].send(second, true)
	}

	for _, i := range release {
		all[calledAt[i]].send(second, false)
	}
}

// comesBack plans a charger again so that it does not return together with many others, and
// reports whether that is possible.
func (c *charger) comesBack(back *Rebound, over bool) bool {
	order := Order{Window: flex.Span{From: evening, To: evening.Add(time.Hour)}, Rebound: back, Over: over}
	offer := Call(order, c.problem, c.steps)
	if !over && (!offer.Whole || offer.Less > c.offer.Less) {
		return false
	}

	c.offer = offer
	back.Add(c.offer.Plan.Steps, c.steps, c.problem.Power)

	return true
}

// share is what a meter shows of a charger's change.
func (c *charger) share() Percent {
	return Percent(100 * (c.base - c.draws) / max(1, watts(&c.offer)))
}

// run instructs a fleet for 20 minutes. It returns the reduction in each second, as a fraction
// of the target. The choice is corrected every five seconds; meters are read every minute.
func run(all []charger, target flex.Watts) (given [1200]float64) {
	slot := []charge.Joules{charge.Joules(target) * 1200}
	back := NewRebound(evening.Add(time.Hour), target)
	for second := range len(given) {
		if second%60 == 59 {
			for i := range all {
				all[i].metered = all[i].called && second-all[i].sent >= 60
			}
		}
		if second%5 == 0 {
			checked(all, slot, second, back)
		}

		sum := flex.Watts(0)
		for i := range all {
			all[i].step(second)
			sum += all[i].base - all[i].draws
		}
		given[second] = float64(sum) / float64(target)
	}
	return given
}

// rebounds returns the most that called chargers draw above their plans in the hour after an
// instant, and later, as fractions of a power.
func rebounds(all []charger, end time.Time, power flex.Watts) (hour, later float64) {
	for minute := 0; minute < 12*60; minute += 5 {
		at := flex.Span{From: end.Add(time.Duration(minute) * time.Minute), To: end.Add(time.Duration(minute+1) * time.Minute)}
		more := charge.Joules(0)
		for i := range all {
			if c := &all[i]; c.called && c.draws < c.base { // one that did not follow has nothing to make up for
				more += Drawn(c.offer.Plan.Steps, c.base, at) - Drawn(c.steps, c.base, at)
			}
		}

		part := float64(more) / 60 / float64(power)
		if minute < 60 {
			hour = max(hour, part)
		} else {
			later = max(later, part)
		}
	}
	return hour, later
}

// TestFleet instructs 10,000 chargers to draw 15 MW less.
func TestFleet(t *testing.T) {
	for name, c := range map[string]struct {
		liars  int
		first  int     // second by which 95 % must be given
		within float64 // how far from the target the 15 minutes after 20 s may be
	}{
		"late, refusing, offline":                   {0, 20, 0.025},
		"and one in a hundred that does not follow": {10, 20, 0.025},
	} {
		t.Run(name, func(t *testing.T) {
			all := newChargers(c.liars)
			given := run(all, 15_000_000)
			first, worst, changes := 0, 0.0, 0
			for given[first] < 0.95 {
				first++
			}

			for _, g := range given[20:920] {
				worst = max(worst, g-1, 1-g)
			}

			for i := range all {
				changes = max(changes, all[i].changes)
				if err := checkCall(all[i].problem, &all[i].offer); err != nil {
					t.Fatal(err)
				}
			}

			hour, later := rebounds(all, evening.Add(time.Hour), 15_000_000)
			if hour > 0.1 || later > 0.1 {
				t.Errorf("a rebound of %.1f %% in the hour after the end, %.1f %% later", 100*hour, 100*later)
			}
			t.Logf("rebound: %.1f %% in the hour after the end, %.1f %% later", 100*hour, 100*later)
			t.Logf("95 %% after %d s; from 20 s on for 15 minutes within %.2f %%; %d changes of a charger at most", first, 100*worst, changes)
			if first > c.first || worst > c.within || changes > 2 {
				t.Errorf("%d s, %.2f %%, %d changes", first, 100*worst, changes)
			}
		})
	}
}

// TestFleet_PlantedFault shows that chargers that never follow are found.
func TestFleet_PlantedFault(t *testing.T) {
	all := newChargers(0)
	for i := range all {
		all[i].habit = offline
	}
	given := run(all, 15_000_000)
	if given[1199] != 0 {
		t.Error("nothing is given by chargers that are offline")
	}
}
