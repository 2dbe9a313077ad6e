package ramp_test

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/engine/ramp"
	"flexd/internal/flex"
	_ "flexd/test/seed"
)

// night is a fleet of one tariff: 00:30 to 05:30, all plugged in at 18:00, the same prices.
var (
	evening = time.Date(2026, 11, 2, 18, 0, 0, 0, time.UTC)
	cheap   = flex.Span{From: evening.Add(6*time.Hour + 30*time.Minute), To: evening.Add(11*time.Hour + 30*time.Minute)}
)

func curve() (ps []flex.PricedPeriod) {
	for i := range 26 {
		ps = append(ps, flex.PricedPeriod{Period: flex.PeriodAt(evening).Add(i), Price: flex.FromGBPPerMWh(float64(60 + (i*7)%19)), Known: true})
	}
	return ps
}

func id(n int) (id [16]byte) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// car is the n-th of a fleet: half need 12 kWh, the others between 5 and 30 of the 37 that the window holds.
func car(n int) charge.Problem {
	need := flex.WattHours(12_000)
	if n%2 == 1 {
		need = flex.WattHours(5000 + n*7919%25_000)
	}
	mode := flex.Minimise
	if n%5 == 0 {
		mode = flex.Maximise
	}
	return charge.Problem{
		From: evening, ReadyBy: evening.Add(13 * time.Hour), Need: need, Power: 7400,
		OffPeak: []flex.Span{cheap}, Mode: mode, Prices: curve(),
	}
}

// plan plans a fleet with offsets by a rule and returns what it is sent, and what a car that buys its need pays.
func plan(t testing.TB, cars int, spread time.Duration, offset func(n int) time.Duration) (sent []check.Sent, pence float64) {
	var cost flex.MicroPounds
	buyers := 0
	for n := range cars {
		p := ramp.Apply(car(n), offset(n), spread)
		got := charge.Solve(p)
		if got.Shortfall > 0 {
			t.Fatalf("car %d: %d Wh are missing", n, got.Shortfall)
		}

		sent = append(sent, check.Sent{Asset: id(n), At: evening, Power: p.Power, Steps: got.Steps})
		if p.Mode == flex.Minimise { // the others charge less where open time is taken away
			cost += got.Cost
			buyers++
		}
	}

	return sent, float64(cost) / float64(buyers) / 10_000
}

// TestRamp_AFleetOfOneTariff has 10,000 cars of one tariff, 74 MW, move by at most 5 MW a minute. The
// planted fault has them all in one place: they move by at least 40 MW in a second.
func TestRamp_AFleetOfOneTariff(t *testing.T) {
	const cars, most = 10_000, flex.Watts(5_000_000)
	var f ramp.Fleet
	for range cars {
		f.Add(7400)
	}
	spread, kept := ramp.Spread(f, most)
	if !kept || spread > ramp.SpreadMost {
		t.Fatalf("spread %v, kept %v", spread, kept)
	}

	herd, before := plan(t, cars, 0, func(int) time.Duration { return 0 })
	sent, cost := plan(t, cars, spread, func(n int) time.Duration { return ramp.Offset(id(n), spread) })
	t.Logf("spread over %v: %.1f MW in a minute, without %.1f; %.3f p a car, without %.3f", spread,
		check.LargestChange(sent).Power.KW()/1000, check.LargestChange(herd).Power.KW()/1000, cost, before)
	if got := check.LargestChange(sent); got.Power > most {
		t.Errorf("moves by %d W in the minute to %v", got.Power, got.At)
	}
	if got := check.LargestChange(herd); got.Power < 8*most {
		t.Errorf("without offsets it moves by %d W only: the checker does not see a herd", got.Power)
	}

	fault, _ := plan(t, cars, spread, func(int) time.Duration { return spread / 2 })
	if got := check.LargestChange(fault); got.Power < 8*most {
		t.Errorf("with one offset for all it moves by %d W only", got.Power)
	}
}

// TestApply_NeedFirst draws cars: with an offset no plan misses more, takes more from peak time or breaks a law.
func TestApply_NeedFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := car(rapid.IntRange(0, 9).Draw(t, "car"))
		p.Need = flex.WattHours(rapid.IntRange(0, 60_000).Draw(t, "need"))
		p.MayChargePeak = rapid.Bool().Draw(t, "may charge peak")
		p.AllOffPeak = rapid.IntRange(0, 4).Draw(t, "single rate") == 0
		p.From = p.From.Add(time.Duration(rapid.IntRange(0, 12*3600).Draw(t, "from")) * time.Second)
		if rapid.Bool().Draw(t, "two windows") {
			p.OffPeak = append([]flex.Span{{From: evening.Add(time.Hour), To: evening.Add(time.Duration(rapid.IntRange(61, 180).Draw(t, "first window")) * time.Minute)}}, p.OffPeak...)
		}

		if rapid.Bool().Draw(t, "now") {
			p.ChargeNow = flex.Span{From: p.From, To: p.From.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "minutes")) * time.Minute)}
		}

		p.Running = rapid.Bool().Draw(t, "running")
		if rapid.Bool().Draw(t, "maximise") {
			p.Mode = flex.Maximise
		}

		spread := time.Duration(rapid.IntRange(1, 30).Draw(t, "spread")) * time.Minute
		free := charge.Solve(p)
		offset := ramp.Offset(id(rapid.IntRange(0, 1_000_000).Draw(t, "id")), spread)
		later := ramp.Apply(p, offset, spread)
		if rapid.Bool().Draw(t, "planned anew") {
			later = ramp.Keep(later, offset, time.Time{})
		}
		got := charge.Solve(later)
		if err := check.Charge(later, got); err != nil {
			t.Fatalf("%v\n%+v", err, later)
		}

		if got.Shortfall > free.Shortfall {
			t.Fatalf("%d Wh are missing, without an offset %d", got.Shortfall, free.Shortfall)
		}

		if a, b := peak(&got), peak(&free); a > b+p.Power.For(time.Minute)+1 {
			t.Fatalf("%d Wh in peak time, without an offset %d", a, b)
		}
	})
}

func peak(p *charge.Plan) (sum flex.WattHours) {
	for _, q := range p.Periods {
		if !q.OffPeak {
			sum += q.Energy
		}
	}
	return sum
}

func TestSpread(t *testing.T) {
	fleet := func(cars int) (f ramp.Fleet) {
		for range cars {
			f.Add(7400)
		}

		return f
	}

	for _, c := range []struct {
		cars int
		most flex.Watts
		want time.Duration
		kept bool
	}{
		{6000, 50_000_000, 0, true}, // all at once is within it
		{100_000, 0, 0, true},       // no ramp is set
		{100_000, 50_000_000, 16 * time.Minute, true},
		{100_000, 20_000_000, ramp.SpreadMost, false},
	} {
		if got, kept := ramp.Spread(fleet(c.cars), c.most); got != c.want || kept != c.kept {
			t.Errorf("%d cars, %d W a minute: %v, %v", c.cars, c.most, got, kept)
		}
	}
}

// TestLargestChange_CountsWhatWasTaken replaces a schedule midway: the checker must see the end of the
// first and none of what it still said.
func TestLargestChange_CountsWhatWasTaken(t *testing.T) {
	at := func(minutes float64) time.Time { return evening.Add(time.Duration(minutes * float64(time.Minute))) }
	on := func(from, to float64) []flex.Step {
		return []flex.Step{{Span: flex.Span{From: at(from), To: at(to)}, Limit: flex.NoLimit}}
	}

	for _, c := range []struct {
		name string
		sent []check.Sent
		want check.Change
	}{
		{"one start", []check.Sent{{Asset: id(1), At: at(0), Power: 1000, Steps: on(5, 60)}}, check.Change{Power: 1000, At: at(5)}},
		{"two within a minute", []check.Sent{{Asset: id(1), Power: 1000, Steps: on(5, 60)}, {Asset: id(2), Power: 1000, Steps: on(5.9, 70)}}, check.Change{Power: 2000, At: at(5.9)}},
		{"two further apart", []check.Sent{{Asset: id(1), Power: 1000, Steps: on(5, 60)}, {Asset: id(2), Power: 1000, Steps: on(6, 70)}}, check.Change{Power: 1000, At: at(5)}},
		{"one for another", []check.Sent{{Asset: id(1), Power: 1000, Steps: on(5, 60)}, {Asset: id(2), Power: 1000, Steps: on(60, 70)}}, check.Change{Power: 1000, At: at(5)}},
		{"replaced while it charged", []check.Sent{{Asset: id(1), At: at(0), Power: 1000, Steps: on(5, 60)}, {Asset: id(1), At: at(30), Power: 1000}, {Asset: id(2), Power: 2000, Steps: on(30, 40)}}, check.Change{Power: 2000, At: at(40)}},
	} {
		if got := check.LargestChange(c.sent); got != c.want {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
}
