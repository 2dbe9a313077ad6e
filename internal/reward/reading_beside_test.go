package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// lateReading keeps an energy of one half-hour, as another process does.
func (y *fixture) lateReading(p flex.Period, kwh float64) error {
	ctx := context.Background()
	r := flex.Reading{AssetID: y.asset, Span: p.Span(), Label: flex.ChargerEnergy, Value: flex.Micro(kwh * 1e6)}

	return y.db.Write(
		ctx,
		y.org,
		func(tx *store.Tx) error { return tx.PutReadings(ctx, []flex.Reading{r}) },
	)
}

// settleEvents is one run of the job.
func (y *fixture) settleEvents(ctx context.Context) error {
	_, err := y.service.SettleEvents(ctx)
	return err
}

// The half-hour that an event waited for is there, and another process settles it. A half-hour
// that is corrected meanwhile has it settled again.
func TestSettleEvents_ReadBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, v := pausedMonday(t, url)
		y.now = monday.Period(36).End()
		y.events(t)

		last := v.Metered["36"]
		delete(v.Metered, "36")
		y.kwh(t, monday, v.Metered)
		if got := y.events(t); got != "2025-02-03 35-36 est 1850000 missing 1" {
			t.Fatalf("with a reading missing: %s", got)
		}

		y.now = y.now.Add(time.Hour)
		y.kwh(t, monday, map[string]string{"36": last})
		err := y.meanwhile(
			t,
			"settlement",
			y.settleEvents,
			func() error { return y.lateReading(monday.Period(35), 0.220) },
		)
		if err != nil {
			t.Fatal(err)
		}

		y.now = y.now.Add(time.Minute)
		if got := y.events(t); got != "2025-02-03 35-36 -1532 Wh est 383000" {
			t.Errorf("corrected while it was settled: %s", got)
		}
		y.sound(t)
	})
}

// A corrected reading has an event settled again by another process, on the prices that are
// known. Those that are revised meanwhile count too.
func TestSettleEvents_PricedBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url)
		y.now = y.now.Add(time.Hour)
		y.kwh(t, monday, map[string]string{"36": "0.190"})

		var revised []flex.PricedPeriod
		for p := flex.PeriodAt(monday.Span().From); p.Start().Before(monday.Span().To); p = p.Add(1) {
			revised = append(revised, flex.PricedPeriod{Period: p, Price: flex.FromGBPPerMWh(300), Known: true})
		}

		err := y.meanwhile(t, "settlement", y.settleEvents, func() error {
			ctx := context.Background()
			return y.db.WriteAll(ctx, func(all *store.All) error {
				_, err := all.AddPublication(
					ctx,
					store.Publication{Source: "test", PublishedAt: y.now, Span: monday.Span()},
					revised,
				)
				return err
			})
		})
		if err != nil {
			t.Fatal(err)
		}

		y.now = y.now.Add(time.Minute)
		if got := y.events(t); got != "2025-02-03 35-36 -1532 Wh est 459600" {
			t.Errorf("revised while it was settled: %s", got)
		}
		y.sound(t)
	})
}

// A session that ended a moment ago has all its readings, and another process credits it. What
// is corrected meanwhile counts.
func TestSettleSessions_ReadBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.set(t, "credit_pence_per_kwh=2.5")
		y.charge(t, "2026-01-14 22:10", "2026-01-15 00:20")
		y.round(t)
		y.read(t, "2026-01-14 21:30", 9, 1, 3.5, 3.5, 2, 0.5, 9)

		settle := func(ctx context.Context) error {
			_, err := y.service.SettleSessions(ctx)
			return err
		}

		corrected := flex.PeriodAt(clock("2026-01-14 23:30"))
		err := y.meanwhile(
			t,
			"ledger",
			settle,
			func() error { return y.lateReading(corrected, 4) },
		)
		if err != nil {
			t.Fatal(err)
		}

		if got := y.history(t); got != "flex event 26p for 10500 Wh, flex period top-up 5p for 2000 Wh" {
			t.Errorf("corrected while it was credited: %s", got)
		}
		y.sound(t)
	})
}
