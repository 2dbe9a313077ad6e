package pause_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/engine/check"
	"flexd/internal/engine/pause"
	"flexd/internal/flex"
)

// wireBlocks is a schedule as the vectors write it.
type wireBlocks []struct {
	Start time.Time `json:"start_timestamp"`
	End   time.Time `json:"end_timestamp"`
}

func (w wireBlocks) spans() (s []flex.Span) {
	for _, b := range w {
		s = append(s, flex.Span{From: b.Start.UTC(), To: b.End.UTC()})
	}
	return s
}

func TestPause_Vectors(t *testing.T) {
	for _, c := range []struct {
		name  string
		pause time.Duration
		peak  int // the hour whose price is high, negative for none
	}{
		{"plug-in-schedule-30-minute", 30 * time.Minute, 1},
		{"plug-in-schedule-docs-one-hour", time.Hour, 1},
		{"plug-in-schedule-no-opportunity", 30 * time.Minute, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v struct {
				Request struct {
					Blocks wireBlocks `json:"charging_schedule"`
				} `json:"request"`
				Want struct {
					Blocks wireBlocks `json:"modified_charging_schedule"`
				} `json:"expected_response"`
			}

			raw, err := os.ReadFile("testdata/" + c.name + ".json")
			if err != nil {
				t.Fatal(err)
			}

			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			p := pause.Problem{Blocks: v.Request.Blocks.spans(), Power: 7400, Pause: c.pause, Worth: 1000}
			for q := flex.PeriodAt(p.Blocks[0].From); q.Start().Before(p.Blocks[0].To); q = q.Add(1) {
				price := flex.Price(0)
				if q.Start().Hour() == c.peak && (c.pause > flex.HalfHour || q.Start().Minute() == 0) {
					price = flex.FromGBPPerMWh(100)
				}
				p.Prices = append(p.Prices, flex.PricedPeriod{Period: q, Price: price, Known: true})
			}

			got := pause.Solve(p)
			if !slices.Equal(got.Blocks, v.Want.Blocks.spans()) {
				t.Errorf("blocks %v, want %v", got.Blocks, v.Want.Blocks.spans())
			}
			if err := check.Pause(p, got); err != nil {
				t.Error(err)
			}
		})
	}
}

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

// drawPause draws a schedule of up to three blocks on minutes within eight hours.
func drawPause(t *rapid.T) pause.Problem {
	origin := flex.PeriodAt(time.Unix(1_790_000_000, 0))
	p := pause.Problem{
		Power:  7200,
		Pause:  time.Duration(rapid.SampledFrom([]int{5, 30, 40}).Draw(t, "pause")) * time.Minute,
		MakeUp: rapid.SampledFrom([]pause.MakeUp{pause.MakeUpNone, pause.MakeUpEarliest, pause.MakeUpAppend}).Draw(t, "make up"),
		Blocks: drawSpans(t, origin.Start(), 8*3600, 60, 3, "blocks"),
	}
	p.ReadyBy = origin.Start().Add(time.Duration(rapid.IntRange(400, 600).Draw(t, "ready by")) * time.Minute)
	if rapid.Bool().Draw(t, "under way") {
		p.NotBefore = origin.Start().Add(time.Duration(rapid.IntRange(0, 480).Draw(t, "not before")) * time.Minute)
	}
	for i := range 20 {
		p.Prices = append(p.Prices, flex.PricedPeriod{
			Period: origin.Add(i), Known: rapid.IntRange(0, 9).Draw(t, "known") > 0,
			Price: flex.FromGBPPerMWh(float64(rapid.IntRange(-3, 9).Draw(t, "price") * 10)),
		})
	}
	return p
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

// TestPause_Exhaustive tries a pause at every minute, and every way of making it up.
func TestPause_Exhaustive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPause(t)
		got := pause.Solve(p)
		if err := check.Pause(p, got); err != nil {
			t.Fatalf("%v\n%+v\n%+v", err, p, got)
		}
		if want := bestPause(p); got.Saved != want {
			t.Fatalf("saved %d, the best is %d: %+v", got.Saved, want, p)
		}
	})
}

// bestPause is the most that a pause on whole minutes can save.
func bestPause(p pause.Problem) (best flex.MicroPounds) {
	start := p.Prices[0].Period.Start()
	on := minutes(p.Blocks, start)
	var sum, busy [len(on) + 1]float64 // of prices and of charging minutes before each minute
	price := func(k int) float64 {
		if i := k / 30; i < len(p.Prices) && p.Prices[i].Known {
			return float64(p.Prices[i].Price)
		}
		return math.NaN()
	}

	var missing [len(on) + 1]int
	for k := range on {
		sum[k+1], busy[k+1], missing[k+1] = sum[k], busy[k], missing[k]
		if v := price(k); math.IsNaN(v) {
			missing[k+1]++
		} else {
			sum[k+1] += v
		}
		if on[k] {
			busy[k+1]++
		}
	}

	n, ready := int(p.Pause/time.Minute), int(p.ReadyBy.Sub(start)/time.Minute)
	over := func(k int) float64 { // n minutes from k
		if missing[k+n] > missing[k] {
			return math.NaN()
		}
		return sum[k+n] - sum[k]
	}

	for _, b := range p.Blocks {
		first := int(max(b.From.Sub(start), p.NotBefore.Sub(start)) / time.Minute)
		last := int(b.To.Sub(start)/time.Minute) - n
		if first > last {
			continue
		}

		cost := 0.0 // of making up after the block: the same wherever in it the pause lies
		switch p.MakeUp {
		case pause.MakeUpEarliest:
			left := n
			for k := last + n; k < ready && left > 0; k++ {
				if !on[k] {
					cost, left = cost+price(k), left-1
				}
			}

			if left > 0 {
				continue
			}
		case pause.MakeUpAppend:
			cost = math.NaN()
			for a := last + n; a+n <= ready; a++ {
				if c := over(a); busy[a+n] == busy[a] && (c < cost || math.IsNaN(cost)) {
					cost = c
				}
			}
		}

		for s := first; s <= last; s++ {
			if net := (over(s) - cost) * float64(p.Power) / 60 / 1e6; net > float64(best) {
				best = flex.MicroPounds(math.Round(net))
			}
		}
	}
	return best
}
