package reward_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// BenchmarkSettleAgain settles site-days again: 500 assets with an event of four half-hours
// on every fifth of 100 days, on 60 days of readings each. A whole day of readings is kept,
// as a fleet has it.
func BenchmarkSettleAgain(b *testing.B) {
	const assets, days, every = 500, 160, 5
	url := storetest.SQLite(b)
	now := clock("2026-03-20 12:00")
	db := storetest.Open(b, url, store.Options{Now: func() time.Time { return now }})
	org, err := db.AddOrg(b.Context(), "acme")
	if err != nil {
		b.Fatal(err)
	}
	site := flex.SiteID{9}
	exec := func(statement string, args ...any) {
		if err := storetest.Exec(b, url, statement, args...); err != nil {
			b.Fatal(err)
		}
	}
	exec(`INSERT INTO site (id, org_id, consent_at, created_at) VALUES ($1, $2, 1, 0)`, site.Bytes(), org.ID.Bytes())
	exec(`INSERT INTO model (key, name, type, cop11) VALUES ('m', 'm', 'charger', TRUE)`)
	first := flex.DayAt(now).Add(-days)
	id := func(n int) flex.AssetID { return flex.AssetID{1, byte(n >> 8), byte(n)} }
	for n := range assets {
		exec(`INSERT INTO asset (id, org_id, site_id, external_id, type, model, installed_on, created_at) VALUES ($1, $2, $3, $4, 'charger', 'm', '2025-01-01', 0)`,
			id(n).Bytes(), org.ID.Bytes(), site.Bytes(), fmt.Sprint(n))
	}
	for d := range days {
		var rs []flex.Reading
		for n := range assets {
			for p := 1; p <= 48; p++ {
				rs = append(rs, flex.Reading{AssetID: id(n), Span: first.Add(d).Period(p).Span(), Label: flex.ChargerEnergy, Value: flex.Micro(1000 * (n + d + p))})
			}
		}
		err := db.Write(b.Context(), org.ID, func(tx *store.Tx) error { return tx.PutReadings(b.Context(), rs) })
		if err != nil {
			b.Fatal(err)
		}
	}
	events := 0
	for d := 60; d < days; d += every {
		day := first.Add(d)
		var rows []string
		for n := range assets {
			events++
			rows = append(rows, fmt.Sprintf(`(x'%032x', x'%x', x'%x', x'%x', '%s', 35, 38, %d, %d, '-1 -1 -1 -1', '1 1 1 1', 0, 0)`,
				events, org.ID.Bytes(), site.Bytes(), id(n).Bytes(), day, day.Period(35).Start().UnixMicro(), day.Period(38).End().UnixMicro()))
		}
		exec(`INSERT INTO flex_event (id, org_id, site_id, asset_id, day, first, last, from_at, to_at, meant, nominated, detected_at, estimated) VALUES ` + strings.Join(rows, ","))
	}
	desk := &reward.Desk{DB: db}
	var used syscall.Rusage
	cpu := func() float64 {
		syscall.Getrusage(syscall.RUSAGE_SELF, &used)
		return float64(used.Utime.Nano() + used.Stime.Nano())
	}
	before := cpu()
	b.ResetTimer()
	for range b.N {
		run, err := desk.SettleAgain(context.Background(), org.ID, reward.Again{From: first.Add(60), To: flex.DayAt(now)})
		if err != nil || run.Events != events {
			b.Fatal(run, err)
		}
	}
	b.StopTimer()
	n := float64(b.N * events)
	b.ReportMetric(n/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(n*every/b.Elapsed().Seconds(), "site-days/s")
	b.ReportMetric((cpu()-before)/1000/n, "cpu-µs/event")
}
