package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

func TestPrices_LatestPublicationHolds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		org, err := db.AddOrg(ctx, "acme")
		if err != nil {
			t.Fatal(err)
		}

		first := flex.PeriodAt(db.Now()).Add(4)
		span := flex.Span{From: first.Start(), To: first.Add(2).Start()}
		publish := func(at time.Time, a, b flex.PricedPeriod) {
			a.Period, b.Period = first, first.Add(1)
			err := db.WriteAll(ctx, func(all *store.All) error {
				_, err := all.AddPublication(ctx, store.Publication{Source: "test", PublishedAt: at, Span: span}, []flex.PricedPeriod{a, b})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		known := func(p flex.Price) flex.PricedPeriod { return flex.PricedPeriod{Price: p, Known: true} }
		publish(db.Now().Add(-2*time.Hour), known(10), known(20))
		publish(db.Now().Add(-time.Hour), known(-30), flex.PricedPeriod{})
		publish(db.Now().Add(time.Hour), known(50), known(60)) // not out yet

		err = db.Read(ctx, org.ID, func(tx *store.Tx) error {
			got, err := tx.Prices(ctx, flex.Span{From: span.From.Add(time.Second), To: span.To.Add(time.Second)})
			if err != nil {
				return err
			}
			if len(got) != 3 || !got[0].Known || got[0].Price != -30 || got[1].Known || got[2].Known {
				t.Errorf("got %v", got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A failed write leaves nothing, and does not take its neighbours in the group with it.
func TestWrite_FailsAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		odd := errors.New("odd")
		var wg sync.WaitGroup

		for i := range 100 {
			wg.Go(func() {
				name := string(rune('a'+i%26)) + string(rune('a'+i/26))
				err := db.WriteAll(ctx, func(all *store.All) error {
					if _, err := all.AddOrg(ctx, name); err != nil {
						return err
					}
					if i%2 == 1 {
						return odd
					}
					return nil
				})

				if want := map[bool]error{true: odd}[i%2 == 1]; !errors.Is(err, want) {
					t.Errorf("write %d: %v", i, err)
				}
			})
		}

		wg.Wait()
		err := db.ReadAll(ctx, func(all *store.All) error {
			orgs, err := all.Orgs(ctx)
			if len(orgs) != 50 {
				t.Errorf("%d organisations, want 50", len(orgs))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestWrite_Cancelled(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := db.WriteAll(ctx, func(*store.All) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestClose shows that what comes after the end is refused, and does not wait for ever.
func TestClose(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}

		if err := db.Ping(t.Context()); err == nil {
			t.Error("a closed store answers")
		}
		if _, err := db.AddOrg(t.Context(), "late"); err == nil {
			t.Error("a closed store keeps")
		}
		if err := db.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	})
}

func TestWrite_Panics(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	err := db.WriteAll(t.Context(), func(*store.All) error { panic("odd") })
	if err == nil || !strings.Contains(err.Error(), "odd") || !strings.Contains(err.Error(), "TestWrite_Panics") {
		t.Errorf("the failure does not say where: %v", err)
	}
	if _, err := db.AddOrg(t.Context(), "acme"); err != nil {
		t.Errorf("the writer goes on: %v", err)
	}
}

func TestSandboxClock(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		org, err := db.AddOrg(ctx, "acme")
		if err != nil {
			t.Fatal(err)
		}
		ahead := func() (d time.Duration) {
			if err := db.Read(ctx, org.ID, func(tx *store.Tx) error { d = tx.Now().Sub(db.Now()); return nil }); err != nil {
				t.Fatal(err)
			}
			return d.Round(time.Second)
		}

		if got := ahead(); got != 0 {
			t.Errorf("a new organisation's clock is %v ahead", got)
		}
		if err := db.Write(ctx, org.ID, func(tx *store.Tx) error { return tx.SetClock(ctx, 8*time.Hour) }); err != nil {
			t.Fatal(err)
		}
		if got := ahead(); got != 8*time.Hour {
			t.Errorf("the clock is %v ahead, want 8h", got)
		}
	})
}

func TestOpen_OddPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a#b?c%23d e.db")
	db := storetest.Open(t, "sqlite:"+path, store.Options{})
	if _, err := db.AddOrg(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
