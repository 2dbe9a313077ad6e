package grid_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// BenchmarkService is 100,000 plugged-in cars in a store, from the request to the bounds of all
// windows, and to the parts of a profile.
func BenchmarkService(b *testing.B) {
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			evening := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
			at := url(b)
			db := storetest.Open(b, at, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return evening }})
			seed := storetest.NewSeed(b, db, at)
			plugFleet(seed, 100_000, evening)
			service := &grid.Service{DB: db}

			b.Run("envelope", func(b *testing.B) {
				for b.Loop() {
					if e, err := service.Envelope(b.Context(), seed.Org, flex.Scope{}, grid.HalfHours); err != nil || e.Controlled != 100_000 {
						b.Fatal(err)
					}
				}
			})

			quiet := []grid.Asked{{Period: flex.PeriodAt(evening.Add(7 * time.Hour))}}
			b.Run("follow", func(b *testing.B) {
				for b.Loop() {
					if f, err := service.Follow(b.Context(), seed.Org, flex.Scope{}, quiet); err != nil || !f.Yes {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// plugFleet plugs n cars in by writing what events would have left.
func plugFleet(seed *storetest.Seed, n int, now time.Time) {
	site := seed.Site(flex.FullScheduleMethod)
	id := func(kind byte, i int) []byte {
		v := flex.MakeID[struct{}](time.UnixMilli(int64(kind)<<32), [10]byte{6: byte(i >> 24), 7: byte(i >> 16), 8: byte(i >> 8), 9: byte(i)})
		return v[:]
	}
	start := now.UnixMicro()
	ready := func(i int) int64 { return now.Add(12*time.Hour + time.Duration(i%8)*15*time.Minute).UnixMicro() }

	seed.Rows("asset", strings.Fields("id org_id site_id external_id type power_w created_at"), n, func(i int) []any {
		return []any{id(1, i), seed.Org.Bytes(), site.Bytes(), fmt.Sprint("ev", i), "charger", 7400, 0}
	})

	seed.Rows("session", strings.Fields("id org_id asset_id site_id number plugged_in_at ready_by generation event_id"), n, func(i int) []any {
		return []any{id(2, i), seed.Org.Bytes(), id(1, i), site.Bytes(), 1, start, ready(i), 1, id(3, i)}
	})

	seed.Rows("schedule", strings.Fields(`event_id org_id asset_id session_id generation cause made_at from_at to_at steps ready_by
		need_wh delivered_wh count_from power_w running may_charge_peak mode off_peak zone tariff_type origins value`), n, func(i int) []any {
		need := 5000 + i%17*1000
		steps := fmt.Sprintf("21600x0 %dx99999", (need*3600/7400+59)/60*60)
		return []any{id(3, i), seed.Org.Bytes(), id(1, i), id(2, i), 1, "plug-in", start, start, ready(i), steps, ready(i),
			need, 0, start, 7400, false, false, "minimise_charging_time", []string{"00:00-05:30", "23:30-05:30"}[i%2], "Europe/London", "dual_rate", "event asset event", 0}
	})

	seed.Rows("outbox", strings.Fields("subject org_id endpoint kind asset_id event_id generation queued_at expires_at accepted"), n, func(i int) []any {
		return []any{id(1, i), seed.Org.Bytes(), "schedule", "schedule", id(1, i), id(3, i), 1, start, ready(i), 1}
	})
}
