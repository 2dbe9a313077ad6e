package charge_test

import (
	"math/bits"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/flex"
	_ "flexd/test/seed"
)

// drawSpans draws sorted, disjoint spans with edges on a grid of seconds.
func drawSpans(t *rapid.T, from time.Time, length, grid, most int, label string) (spans []flex.Span) {
	edges := rapid.SliceOfNDistinct(rapid.IntRange(0, length/grid), 0, 2*most, rapid.ID[int]).Draw(t, label)
	slices.Sort(edges)
	for i := 1; i < len(edges); i += 2 {
		spans = append(spans, flex.Span{
			From: from.Add(time.Duration(edges[i-1]*grid) * time.Second),
			To:   from.Add(time.Duration(edges[i]*grid) * time.Second),
		})
	}
	return spans
}

// minutes writes spans as a set of minutes after the start.
func minutes(spans []flex.Span, start time.Time) (m [700]bool) {
	for _, s := range spans {
		for k := int(s.From.Sub(start) / time.Minute); k < int(s.To.Sub(start)/time.Minute); k++ {
			m[k] = true
		}
	}
	return m
}

// drawProblem draws a problem of up to twelve hours, cut anywhere, now and then with
// everything that a problem may have.
func drawProblem(t *rapid.T) charge.Problem {
	from := time.Unix(1_790_000_000+rapid.Int64Range(0, 86_400).Draw(t, "from"), 0).UTC()
	length := rapid.IntRange(0, 12*3600).Draw(t, "length")
	p := charge.Problem{
		From: from, ReadyBy: from.Add(time.Duration(length) * time.Second),
		Need:          flex.WattHours(rapid.IntRange(-1000, 60_000).Draw(t, "need")),
		Power:         flex.Watts(rapid.SampledFrom([]int{1400, 3600, 7000, 7400, 11_000, 22_000, 99_999, 150_000}).Draw(t, "power")),
		AllOffPeak:    rapid.Bool().Draw(t, "all off-peak"),
		MayChargePeak: rapid.Bool().Draw(t, "may charge peak"),
		Mode:          rapid.SampledFrom([]flex.ChargingMode{flex.Maximise, flex.Minimise}).Draw(t, "mode"),
		OffPeak:       drawSpans(t, from.Add(-time.Hour), length+7200, rapid.SampledFrom([]int{1, 60, 1800}).Draw(t, "grid"), 3, "off-peak"),
	}
	if now := drawSpans(t, from, length+3600, 60, 1, "charge-now"); len(now) > 0 && rapid.Bool().Draw(t, "now") {
		p.ChargeNow = now[0]
	}

	for i := range rapid.IntRange(0, 27).Draw(t, "prices") {
		p.Prices = append(p.Prices, flex.PricedPeriod{
			Period: flex.PeriodAt(from).Add(i), Known: rapid.IntRange(0, 9).Draw(t, "known") > 0,
			Price: flex.FromGBPPerMWh(float64(rapid.SampledFrom([]int{-50, -1, 0, 10, 10, 10, 80, 80, 81, 250, 4000}).Draw(t, "price"))),
		})
	}
	p.Unbroken = rapid.IntRange(0, 4).Draw(t, "unbroken") == 0
	if rapid.IntRange(0, 3).Draw(t, "pauses") == 0 {
		p.PauseAbove = flex.FromGBPPerMWh(100)
	}

	if rapid.IntRange(0, 3).Draw(t, "caps") == 0 {
		for _, s := range drawSpans(t, from, length, 60, 2, "capped") {
			p.Limits = append(p.Limits, flex.Step{Span: s, Limit: flex.Watts(rapid.SampledFrom([]int{0, 1400, 5000, 50_000}).Draw(t, "cap"))})
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "later") == 0 {
		p.Offset = time.Duration(rapid.IntRange(0, 1799).Draw(t, "offset")) * time.Second
	}
	return p
}

func TestCharge_KeepsTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		got := charge.Solve(p)
		if err := check.Charge(p, got); err != nil {
			t.Fatalf("%v\n%+v\n%+v", err, p, got)
		}
		if again := charge.Solve(p); !reflect.DeepEqual(got, again) {
			t.Fatal("the same problem, another plan")
		}
	})
}

// TestCharge_Exhaustive holds plans on whole ten minutes against every possible choice:
// first the cost, then the starts.
func TestCharge_Exhaustive(t *testing.T) {
	const cell = 1000 // Wh in ten minutes
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "half-hours")
		need := rapid.IntRange(0, 3*n+2).Draw(t, "need")
		from := flex.PeriodAt(time.Unix(1_790_000_000, 0))
		p := charge.Problem{
			From: from.Start(), ReadyBy: from.Add(n).Start(), Power: 6 * cell, Need: flex.WattHours(cell * need),
			Mode: flex.Minimise, MayChargePeak: rapid.Bool().Draw(t, "may charge peak"),
		}

		price, offPeak := make([]int, 3*n), uint(0)
		for i := range n {
			price[3*i] = rapid.IntRange(-1, 3).Draw(t, "price")
			price[3*i+1], price[3*i+2] = price[3*i], price[3*i]
			p.Prices = append(p.Prices, flex.PricedPeriod{Period: from.Add(i), Price: flex.Price(price[3*i] * 1e6), Known: true})
			if rapid.Bool().Draw(t, "off-peak") {
				p.OffPeak = append(p.OffPeak, from.Add(i).Span())
				offPeak |= 7 << (3 * i)
			}
		}

		inside := bits.OnesCount(offPeak)
		wantOff, wantPeak := min(need, inside), 0
		if p.MayChargePeak {
			wantPeak = min(need, 3*n) - wantOff
		}

		bestCost, bestStarts := 1<<30, 1<<30
		for on := range uint(1) << (3 * n) {
			if bits.OnesCount(on&offPeak) != wantOff || bits.OnesCount(on&^offPeak) != wantPeak {
				continue
			}

			cost, starts := 0, bits.OnesCount(on&^(on<<1))
			for i := range price {
				cost += price[i] * int(on>>i&1)
			}
			if cost < bestCost || cost == bestCost && starts < bestStarts {
				bestCost, bestStarts = cost, starts
			}
		}

		got, starts := charge.Solve(p), 0
		for _, s := range got.Steps {
			if s.Limit > 0 {
				starts++
			}
		}
		if got.Cost != flex.MicroPounds(bestCost*cell) || starts != bestStarts {
			t.Fatalf("cost %d in %d starts, the best is %d in %d: %v", got.Cost, starts, bestCost*cell, bestStarts, draw(got.Steps))
		}
	})
}

// TestCharge_Unbroken holds runs on whole minutes against every minute that one may begin
// at: first the energy missing, then peak energy, then cost, then the start.
func TestCharge_Unbroken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, need := rapid.IntRange(1, 6).Draw(t, "half-hours"), rapid.IntRange(1, 200).Draw(t, "minutes")
		from := flex.PeriodAt(time.Unix(1_790_000_000, 0))
		p := charge.Problem{
			From: from.Start(), ReadyBy: from.Add(n).Start(), Power: 6000, Need: flex.WattHours(100 * need), Unbroken: true,
			Mode: flex.Minimise, MayChargePeak: rapid.Bool().Draw(t, "may charge peak"),
			OffPeak: drawSpans(t, from.Start(), 1800*n, 60, 2, "off-peak"),
		}

		for i := range n {
			p.Prices = append(p.Prices, flex.PricedPeriod{Period: from.Add(i), Price: flex.Price(rapid.IntRange(-2, 3).Draw(t, "price") * 1e6), Known: true})
		}
		off := minutes(p.OffPeak, p.From)
		bestGot, bestPeak, bestCost, bestStart := 0, 0, 0, 0

		for s := range 30 * n {
			got, peak, cost := 0, 0, 0

			for k := s; k < 30*n && got < need && (off[k] || p.MayChargePeak); k++ {
				got++
				cost += int(p.Prices[k/30].Price) / 1e6
				if !off[k] {
					peak++
				}
			}
			if got > bestGot || got == bestGot && (peak < bestPeak || peak == bestPeak && cost < bestCost) {
				bestGot, bestPeak, bestCost, bestStart = got, peak, cost, s
			}
		}

		got, start := charge.Solve(p), 0
		for _, s := range got.Steps {
			if s.Limit > 0 {
				start = int(s.From.Sub(p.From) / time.Minute)
			}
		}
		if err := check.Charge(p, got); err != nil {
			t.Fatal(err)
		}
		if got.Energy != flex.WattHours(100*bestGot) || got.Cost != flex.MicroPounds(100*bestCost) || start != bestStart && bestGot > 0 {
			t.Fatalf("%d Wh for %d from minute %d, want %d for %d from %d: %+v", got.Energy, got.Cost, start, 100*bestGot, 100*bestCost, bestStart, p)
		}
	})
}

// TestCharge_MoreIsNeverWorse: more time, more power or less need never makes a plan
// dearer or leaves more of the need unmet (law S9), but for the minute that charging is
// rounded up to.
func TestCharge_MoreIsNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.Mode, p.ChargeNow, p.Limits, p.Unbroken = flex.Minimise, flex.Span{}, nil, false
		for i := range p.Prices {
			p.Prices[i].Price, p.Prices[i].Known = max(0, p.Prices[i].Price), true
		}

		for i := len(p.Prices); i < 40; i++ {
			p.Prices = append(p.Prices, flex.PricedPeriod{Period: flex.PeriodAt(p.From).Add(i), Price: 30e6, Known: true})
		}

		q := p
		switch rapid.IntRange(0, 3).Draw(t, "more") {
		case 0:
			q.ReadyBy = q.ReadyBy.Add(time.Duration(rapid.IntRange(1, 7200).Draw(t, "later")) * time.Second)
		case 1:
			q.Power += flex.Watts(rapid.IntRange(1, 10_000).Draw(t, "stronger"))
		case 2:
			q.Need -= flex.WattHours(rapid.IntRange(1, 10_000).Draw(t, "less"))
		case 3:
			q.MayChargePeak = true
		}

		a, b := charge.Solve(p), charge.Solve(q)
		if b.Shortfall > a.Shortfall {
			t.Fatalf("shortfall rose from %d to %d", a.Shortfall, b.Shortfall)
		}
		minute := q.Power.For(2 * time.Minute)
		if slack := flex.FromGBPPerMWh(4000).Of(minute); a.Shortfall == b.Shortfall && a.Shortfall == 0 && sameTiers(p, q) && b.Cost > a.Cost+slack {
			t.Fatalf("cost rose from %d to %d", a.Cost, b.Cost)
		}
	})
}

// sameTiers says whether two problems buy all of the need in off-peak time: else more
// time may move energy from cheap peak time to dear off-peak time, as it should.
func sameTiers(p, q charge.Problem) bool {
	p.MayChargePeak, q.MayChargePeak = false, false
	return charge.Solve(p).Shortfall == 0 && charge.Solve(q).Shortfall == 0
}

// TestCheck_Rejects: a plan changed in any one thing breaks a law.
func TestCheck_Rejects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		got := charge.Solve(p)
		if len(got.Steps) == 0 {
			t.Skip("no time, no steps")
		}
		what := mutate(t, &got)
		if err := check.Charge(p, got); err == nil {
			t.Fatalf("%s passed\n%+v\n%+v", what, p, got)
		}
	})
}

// mutate spoils one thing of a plan.
func mutate(t *rapid.T, m *charge.Plan) string {
	i := rapid.IntRange(0, len(m.Steps)-1).Draw(t, "step")
	s := &m.Steps[i]

	switch rapid.IntRange(0, 9).Draw(t, "mutation") {
	case 0:
		if s.Limit == 0 {
			s.Limit = flex.NoLimit
		} else {
			s.Limit = 0
		}

		return "a flipped step"
	case 1:
		s.From = s.From.Add(time.Minute)
		return "a gap"
	case 2:
		m.Steps[len(m.Steps)-1].To = m.Steps[len(m.Steps)-1].To.Add(time.Second)
		return "a step beyond the end"
	case 3:
		m.Steps = append(m.Steps, flex.Step{Span: flex.Span{From: m.Steps[len(m.Steps)-1].To, To: m.Steps[len(m.Steps)-1].To.Add(1 << 40)}})
		return "an endless zero"
	case 4:
		s.Limit = -1

		return "a negative limit"
	case 5:
		s.Limit = flex.Unbounded
		return "a limit above all"
	case 6:
		m.Energy++
		return "energy overstated"
	case 7:
		m.Shortfall++

		return "shortfall overstated"
	case 8:
		m.Cost -= 3
		return "cost understated"
	default:
		m.LowerBound += 4
		return "bound overstated"
	}
}

func TestCounterfactual(t *testing.T) {
	p := night(10_000)
	for i := range 18 {
		p.Prices = append(p.Prices, flex.PricedPeriod{Period: flex.PeriodAt(p.From).Add(i), Price: flex.FromGBPPerMWh(float64(100 - 5*i)), Known: true})
	}
	got := charge.Counterfactual(p)
	if s := draw(got.Steps); s != "0:0 5400:. 10320:0" {
		t.Errorf("steps %q", s)
	}
	// two half-hours at 85 and 80, then 22 minutes at 75 £/MWh, in watt-hours
	if want := flex.MicroPounds(85*3700 + 80*3700 + 75*7400*22/60); got.Cost != want {
		t.Errorf("cost %d, want %d", got.Cost, want)
	}
}
