package fleet_test

import (
	"fmt"
	"runtime"
	"testing"

	"flexd/internal/engine/fleet"
	"flexd/internal/engine/random"
	"flexd/internal/lab/sample"
	"flexd/internal/lab/verify"
)

// benchFleet plans a sample fleet again and again and reports the gap.
func benchFleet(b *testing.B, shape sample.Shape, warm bool) {
	d := random.Source(1)
	p := sample.Fleet(&d, shape)
	if warm {
		a, err := fleet.Solve(p)
		if err != nil {
			b.Fatal(err)
		}
		p.Start = a.Prices
		p.Price[20] += 3
	}

	var a fleet.Plan
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		a, _ = fleet.Solve(p)
		n++
	}

	runtime.ReadMemStats(&after)
	if err := verify.Fleet(p, &a); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(n)/1e6, "MB/op")
	b.ReportMetric(100*(a.Cost-a.Bound)/a.Turnover, "%gap")
}

func BenchmarkFleet_100000(b *testing.B) {
	benchFleet(b, sample.Shape{EVs: 100_000, Cap: 0.35, Groups: 20, GroupCap: 0.45}, false)
}

func BenchmarkFleet_100000Warm(b *testing.B) {
	benchFleet(b, sample.Shape{EVs: 100_000, Cap: 0.35, Groups: 20, GroupCap: 0.45}, true)
}

// BenchmarkFleet_Nested plans 100,000 assets in 960 groups, which lie in 40 others.
func BenchmarkFleet_Nested(b *testing.B) {
	nested := sample.Shape{EVs: 100_000, Cap: 0.35, Groups: 1000, Outer: 40, GroupCap: 0.45}
	for _, batteries := range []int{0, 2_000, 20_000} {
		b.Run(fmt.Sprintf("batteries=%d", batteries), func(b *testing.B) {
			shape := nested
			shape.EVs -= batteries
			shape.Batteries = batteries
			benchFleet(b, shape, false)
		})
	}
}

func BenchmarkFleet_1000000(b *testing.B) {
	benchFleet(b, sample.Shape{EVs: 1_000_000, Cap: 0.35, Groups: 20, GroupCap: 0.45}, false)
}

func BenchmarkFleet_5000(b *testing.B) {
	benchFleet(b, sample.Shape{EVs: 5_000, Cap: 0.35}, false)
}

func BenchmarkFleet_Traded(b *testing.B) {
	benchFleet(b, sample.Shape{EVs: 2_000, Batteries: 300, Cap: 0.4, Groups: 5, GroupCap: 0.5, Traded: true}, false)
}
