package sums_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A pause of which the home withdraws its consent before it begins is no event and earns
// nothing; one that has begun is settled.
func TestPause_ConsentWithdrawn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // when the consent is withdrawn; 0: never
		want  string
	}{
		{"never", 0, "1 events, 67 p"},
		{"before it begins", 15 * time.Minute, "0 events, 0 p"},
		{"after it has begun", 45 * time.Minute, "1 events, 67 p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				day := flex.Day{Year: 2025, Month: 2, Dom: 3}

				pause := day.Period(37)
				now := pause.Start().Add(-30 * time.Minute)
				db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
				seed := storetest.NewSeed(t, db, url)
				publish(t, db, dateOf(2025, 2, 3))

				seed.Exec(`UPDATE price SET price = 180000000`)
				site := seed.Site(flex.LimitedPauseMethod)
				charger := seed.Asset(site, flex.Charger, 7400)
				seed.Consent(time.UnixMicro(1))
				service := &reward.Service{DB: db}
				if _, err := service.SetTerms(t.Context(), seed.Org, map[string]string{"user_share": "1"}, flex.Day{}, "test"); err != nil {
					t.Fatal(err)
				}

				write := func(do func(ctx context.Context, tx *store.Tx) error) {
					t.Helper()
					if err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error { return do(t.Context(), tx) }); err != nil {
						t.Fatal(err)
					}
				}

				write(func(ctx context.Context, tx *store.Tx) error {
					var rs []flex.Reading
					for back := range 20 {
						kwh := flex.Micro(4_000_000)
						if back == 0 {
							kwh = 300_000
						}
						rs = append(rs, flex.Reading{AssetID: charger, Label: flex.ProvisionalConsumption, Span: day.Add(-back).Period(37).Span(), Value: kwh})
					}
					return tx.PutReadings(ctx, rs)
				})

				write(func(ctx context.Context, tx *store.Tx) error {
					a, err := tx.Asset(ctx, charger)
					if err != nil {
						return err
					}
					return tx.SetPause(ctx, a, pause.Span(), 0)
				})

				if tt.after > 0 {
					now = now.Add(tt.after)
					sites := registry.Service{DB: db}
					if _, err := sites.TakeDispatchConsent(t.Context(), seed.Org, site, []flex.DispatchMethod{flex.LimitedPauseMethod}); err != nil {
						t.Fatal(err)
					}
				}

				now = pause.End().Add(time.Hour)
				untilIdle(t, service)
				events, _, err := service.FlexEvents(t.Context(), seed.Org, site)
				if err != nil {
					t.Fatal(err)
				}
				info, err := service.Info(t.Context(), seed.Org, site)
				if got := fmt.Sprintf("%d events, %d p", len(events), int64(info.Balance)); err != nil || got != tt.want {
					t.Errorf("%s, %v, want %s", got, err, tt.want)
				}
			})
		})
	}
}
