package sim

import (
	"testing"
)

// BenchmarkHistory plays fifty homes over four days, and reports home-days a second.
func BenchmarkHistory(b *testing.B) {
	const homes, days = 50, 4
	for b.Loop() {
		o, err := PlayHistory(b.Context(), DrawHistory(0, autumnDay, homes, days))
		if err != nil || len(o.Broken) > 0 {
			b.Fatal(o.Broken, err)
		}
	}

	b.ReportMetric(homes*days*float64(b.N)/b.Elapsed().Seconds(), "home-days/s")
}
