package plan

import (
	"runtime"
	"testing"
)

// benchFleet plans a sample fleet again and again and reports the gap.
func benchFleet(b *testing.B, shape FleetShape, warm bool) {
	d := FleetDice(1)
	p := FleetSample(&d, shape)
	if warm {
		a, err := Fleet(p)
		if err != nil {
			b.Fatal(err)
		}
		p.Start = a.Prices
		p.Price[20] += 3
	}
	var a FleetAnswer
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		a, _ = Fleet(p)
		n++
	}
	runtime.ReadMemStats(&after)
	if err := FleetCheck(p, &a); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(n)/1e6, "MB/op")
	b.ReportMetric(100*(a.Cost-a.Bound)/a.Turnover, "%gap")
}

func BenchmarkFleet_100000(b *testing.B) {
	benchFleet(b, FleetShape{EVs: 100_000, Cap: 0.35, Groups: 20, GroupCap: 0.45}, false)
}

func BenchmarkFleet_100000Warm(b *testing.B) {
	benchFleet(b, FleetShape{EVs: 100_000, Cap: 0.35, Groups: 20, GroupCap: 0.45}, true)
}

func BenchmarkFleet_1000000(b *testing.B) {
	benchFleet(b, FleetShape{EVs: 1_000_000, Cap: 0.35, Groups: 20, GroupCap: 0.45}, false)
}

func BenchmarkFleet_5000(b *testing.B) {
	benchFleet(b, FleetShape{EVs: 5_000, Cap: 0.35}, false)
}

func BenchmarkFleet_Traded(b *testing.B) {
	benchFleet(b, FleetShape{EVs: 2_000, Batteries: 300, Cap: 0.4, Groups: 5, GroupCap: 0.5, Traded: true}, false)
}
