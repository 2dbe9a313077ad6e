package sums_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// otherTerms is another value of every term; a new term has to be added here.
var otherTerms = map[string]string{
	"credit_pence_per_kwh": "7", "user_share": "0.1", "min_withdrawal_pence": "5", "min_wait_days": "30", "baseline": "nominated",
	"in_day": "true", "in_day_cap_wh": "10", "paid_early": "0.2", "loss_factor": "1.3", "rounding": "half_even", "crediting": "event", "claw_back": "true",
	"certainty": "1", "carry_months": "3",
}

// change is a setting, and what sets it to something else.
type change struct {
	name string
	set  func(t *testing.T, f *fleet, now time.Time)
}

func changes() (all []change) {
	for _, term := range reward.TermSettings() {
		all = append(all, change{"term " + term.Name, func(t *testing.T, f *fleet, _ time.Time) {
			value, known := otherTerms[term.Name]
			if !known {
				t.Fatalf("no other value of the term %s", term.Name)
			}
			if _, err := f.service.SetTerms(t.Context(), f.seed.Org, map[string]string{term.Name: value}, flex.Day{}, "test"); err != nil {
				t.Fatal(err)
			}
		}})
	}

	exec := func(name, statement string) {
		all = append(all, change{name, func(_ *testing.T, f *fleet, _ time.Time) { f.seed.Exec(statement) }})
	}
	power := func(name string, power *flex.Watts) {
		all = append(all, change{name, func(t *testing.T, f *fleet, _ time.Time) { f.rate(t, power) }})
	}

	power("power of the assets", new(flex.Watts(1000)))
	power("power of the assets is not known", nil)
	exec("battery of the assets", `UPDATE asset SET capacity_wh = 1`)
	exec("all meters are qualified", `UPDATE asset SET model = 'm', installed_on = '2025-01-01'`)
	exec("no meter is", `UPDATE model SET cop11 = FALSE`)

	site := func(name string, edit func(s *flex.Site)) {
		all = append(all, change{name, func(t *testing.T, f *fleet, _ time.Time) {
			f.write(t, func(ctx context.Context, tx *store.Tx) error {
				for _, id := range f.sites {
					s, err := tx.Site(ctx, id)
					if err != nil {
						return err
					}

					edit(&s)
					if err := tx.UpdateSite(ctx, s, ""); err != nil {
						return err
					}
				}

				return nil
			})
		}})
	}

	for _, role := range []pricing.Role{pricing.Planning, pricing.Settlement, pricing.Contract} {
		all = append(all, change{"source of the " + string(role) + " price", func(t *testing.T, f *fleet, now time.Time) {
			f.write(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.ChoosePriceSource(ctx, pricing.Choice{Role: role, Source: "other", From: now, SetAt: now})
			})
		}})
	}
	all = append(all, change{"settings of the organisation", func(t *testing.T, f *fleet, _ time.Time) {
		f.write(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.SetSettings(ctx, flex.OrgSettings{
				DefaultNeed: 5000, FleetCap: 1_000_000, StartsPerMinute: 3,
				Books: flex.BooksSettings{Counterparty: "Grid Ltd", PayerName: "Acme", GiftLimit: 1, UnclaimedDays: 9},
			})
		})
	}})
	site("consent to the boundary meters", func(s *flex.Site) { s.ConsentAt = time.Time{} })
	site("capacity of the connections", func(s *flex.Site) { s.Supply = flex.Supply{Import: 1500, Export: 1000} })
	return all
}

// After a change of any setting, one after the other, all events as they were known at earlier
// instants have the hashes that they had, and neither the background jobs nor a repair change a
// penny that was credited. PostgreSQL has each third setting, or all with FLEXD_LONG.
func TestSettings_ChangeNothingBefore(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		day := dateOf(2025, 6, 11)
		now := instant((day + 3).begin())
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		seed.Exec(`INSERT INTO model (key, name, type, cop11) VALUES ('m', 'm', 'charger', TRUE)`)
		publish(t, db, day)
		f := newFleet(t, db, url, "mean", day, 5, seed)
		now = now.Add(48 * time.Hour)
		untilIdle(t, f.service)

		at := []time.Time{now, now.Add(2 * time.Hour)}
		now = now.Add(time.Hour)
		f.late(t)
		untilIdle(t, f.service)
		now = now.Add(24 * time.Hour)
		var before []store.Run
		for _, known := range at {
			before = append(before, f.asKnown(t, known))
		}

		balances := f.balances(t)
		if before[0].Hash == before[1].Hash || before[1].Events < 15 || balances == f.nothing() {
			t.Fatalf("%d events that late readings do not change, %s: the test tries too little", before[1].Events, balances)
		}

		for i, c := range changes() {
			if storetest.LeftOut(url, i) {
				continue
			}

			c.set(t, f, now)
			now = now.Add(time.Hour)
			untilIdle(t, f.service)
			for i, known := range at {
				if run := f.asKnown(t, known); run.Hash != before[i].Hash || run.Events != before[i].Events {
					t.Errorf("%s: as known at %s %d events with other inputs than the %d before", c.name, known, run.Events, before[i].Events)
				}
			}

			r, err := f.service.Repair(t.Context(), f.seed.Org, reward.Resettlement{From: dayOf(f.day - 40), To: dayOf(f.day)})
			if err != nil || r.Transactions != 0 {
				t.Errorf("%s: a repair says %+v, %v", c.name, r, err)
			}
			if now := f.balances(t); now != balances {
				t.Errorf("%s: balances %s, before %s", c.name, now, balances)
				balances = now
			}
		}

		seed.QueueEnded()
		resets(seed)
		fmt.Fprintf(t.Output(), "%d events, %d settings\n", before[1].Events, len(changes()))
	})
}

// rate gives every asset another power, or none.
func (f *fleet) rate(t *testing.T, power *flex.Watts) {
	t.Helper()
	f.write(t, func(ctx context.Context, tx *store.Tx) error {
		for _, site := range f.sites {
			assets, err := tx.AssetsOf(ctx, site)
			if err != nil {
				return err
			}

			for _, a := range assets {
				a.Power = power
				if err := tx.UpdateAsset(ctx, a); err != nil {
					return err
				}
			}
		}

		return nil
	})
}

// asKnown settles all events as they were known at an instant.
func (f *fleet) asKnown(t *testing.T, known time.Time) store.Run {
	t.Helper()
	run, err := f.service.Resettle(t.Context(), f.seed.Org, reward.Resettlement{From: dayOf(f.day - 40), To: dayOf(f.day), KnownAt: known})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func (f *fleet) balances(t *testing.T) string {
	t.Helper()
	var all []int64
	for _, id := range f.sites {
		info, err := f.service.Info(t.Context(), f.seed.Org, id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, int64(info.Balance))
	}
	return fmt.Sprint(all)
}

func (f *fleet) nothing() string { return fmt.Sprint(slices.Repeat([]int64{0}, len(f.sites))) }
