package control_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// BenchmarkBatteries plans batteries that have been planned before, half an hour later.
func BenchmarkBatteries(b *testing.B) {
	h := open(b, storetest.SQLite(b), "2026-01-14T18:10:00Z")

	const fleet = 200
	for range fleet {
		id := h.battery()
		r := flex.Reading{AssetID: id, Span: flex.Span{From: at("2026-01-14T18:05:00Z"), To: at("2026-01-14T18:05:00Z")}, Label: flex.BatteryStateOfCharge, Value: 50e6}
		if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.PutReadings(h.Context(), []flex.Reading{r}) }); err != nil {
			b.Fatal(err)
		}
	}

	h.runBatteries()
	b.ResetTimer()

	for range b.N {
		h.wait(30 * time.Minute)
		if n := h.runBatteries(); n != fleet {
			b.Fatalf("%d plans", n)
		}
	}

	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*fleet), "µs/battery")
}
