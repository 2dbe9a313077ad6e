package reward_test

import (
	"flag"
	"syscall"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

var siteDays = flag.Int("days", 20_000, "site-days that BenchmarkSettleAgain settles again; 1,000,000 need 4 GB of disk")

// BenchmarkSettleAgain settles site-days again: sites whose charger held an event of four
// half-hours on every fifth of 100 days, after 60 days without. All half-hours of all days are
// kept, as a fleet has them. At first every result is new; again, each is the same as before.
func BenchmarkSettleAgain(b *testing.B) {
	storetest.EachBench(b, benchAgain)
}

func benchAgain(b *testing.B, url string) {
	const back, days, every = 60, 100, 5
	sites := *siteDays / days
	now := clock("2026-03-20 12:00")
	db := storetest.Open(b, url, store.Options{Now: func() time.Time { return now }})
	seed := storetest.NewSeed(b, db, url)
	first := flex.DayAt(now).Add(-back - days)
	seed.Exec(`INSERT INTO model (key, name, type, cop11) VALUES ('m', 'm', 'charger', TRUE)`)
	for range sites {
		site := seed.Site()
		seed.Exec(`UPDATE asset SET model = 'm', installed_on = '2025-01-01' WHERE id = $1`, seed.Asset(site, flex.Charger, 0).Bytes())
	}

	seed.Consent(time.UnixMicro(1))
	seed.Readings(flex.PeriodAt(first.Start()), 48*(back+days)+2)
	events := 0
	for d := back; d < back+days; d += every {
		seed.Events(first.Add(d), 35, 38)
		events += sites
	}
	span := flex.Span{From: first.Start(), To: flex.DayAt(now).Start()}
	var prices []flex.PricedPeriod
	for p := flex.PeriodAt(span.From); p.Start().Before(span.To); p = p.Add(1) {
		prices = append(prices, flex.PricedPeriod{Period: p, Price: flex.FromGBPPerMWh(100), Known: true})
	}

	err := db.WriteAll(b.Context(), func(all *store.All) error {
		_, err := all.AddPublication(b.Context(), store.Publication{Source: "bench", PublishedAt: span.From, Span: span}, prices)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}

	service := &reward.Service{DB: db}
	again := func(b *testing.B) {
		used := processor()
		for b.Loop() {
			run, err := service.Resettle(b.Context(), seed.Org, reward.Resettlement{From: first, To: flex.DayAt(now)})
			if err != nil || run.Events != events {
				b.Fatal(run, err)
			}
		}

		n := float64(b.N * events)
		b.ReportMetric(n/b.Elapsed().Seconds(), "events/s")
		b.ReportMetric(n*every/b.Elapsed().Seconds(), "site-days/s")
		b.ReportMetric(float64((processor()-used).Microseconds())/n, "cpu-µs/event")
	}

	b.Run("new", again)
	seed.Exec(`UPDATE flex_event SET version = 1, hash = (SELECT s.hash FROM settlement s WHERE s.flex_event_id = flex_event.id LIMIT 1)`)
	seed.Exec(`UPDATE settlement SET version = 1`)
	b.Run("same", again)

	// Nothing of it was posted: the books are left without the settlements.
	seed.Exec(`UPDATE settlement SET version = 0`)
	seed.Exec(`UPDATE flex_event SET version = 0`)
}

// processor returns the processor time that this process has used.
func processor() time.Duration {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
