package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// keyed is an organisation that uses one idempotency key, and its cap, which its requests set.
type keyed struct {
	*testing.T
	db  *store.DB
	org flex.OrgID
}

// claim claims the key for a request that was not answered.
func (k keyed) claim() *store.KeyClaim {
	k.Helper()
	kept, cl, err := k.db.ClaimKey(k.Context(), k.org, "k", [32]byte{1})
	if kept != nil || err != nil {
		k.Fatalf("claimed as %+v, %v", kept, err)
	}

	return cl
}

// set sets the cap in one transaction, which fails with that kind, unless it is 0.
func (k keyed) set(ctx context.Context, cap flex.Watts, want flex.Kind) {
	k.Helper()
	err := k.db.Write(ctx, k.org, func(tx *store.Tx) error {
		return tx.SetSettings(ctx, flex.OrgSettings{FleetCap: cap})
	})
	if (err != nil || want != 0) && flex.KindOf(err) != want {
		k.Fatalf("setting %v: %v", cap, err)
	}
}

func (k keyed) get() (cap flex.Watts) {
	k.Helper()
	err := k.db.Read(k.Context(), k.org, func(tx *store.Tx) error {
		o, err := tx.OrgRecord(k.Context())
		cap = o.Settings.FleetCap
		return err
	})
	if err != nil {
		k.Fatal(err)
	}

	return cap
}

func (k keyed) keep(cl *store.KeyClaim, answer string) {
	k.Helper()
	if err := k.db.StoreAnswer(k.Context(), cl, flex.StoredAnswer{Status: 200, Answer: []byte(answer)}); err != nil {
		k.Fatal(err)
	}
}

// A request of two transactions whose process ends after the first is repeated: what was
// committed is not done again, what was not is.
func TestKeyClaim_Repeated(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		org, err := db.AddOrg(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		k := keyed{t, db, org.ID}

		first := k.claim()
		k.set(first.Context(t.Context()), 1, 0)
		if err := db.FreeKey(t.Context(), first); err != nil { // it failed half-way
			t.Fatal(err)
		}

		k.set(t.Context(), 2, 0)
		again := k.claim().Context(t.Context())
		k.set(again, 1, 0)
		if got := k.get(); got != 2 {
			t.Errorf("what had been committed was done again: %v", got)
		}
		k.set(again, 3, 0)
		if got := k.get(); got != 3 {
			t.Errorf("what had not been committed was not done: %v", got)
		}

		k.set(store.Undoing(t.Context()), 4, 0)
		if got := k.get(); got != 3 {
			t.Errorf("what was to be undone was done: %v", got)
		}
		failed := errors.New("failed")
		if err := db.Write(store.Undoing(t.Context()), org.ID, func(*store.Tx) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("a transaction that fails is answered with %v", err)
		}
	})
}

// A request whose process was stopped past its lease, and whose key another has claimed meanwhile,
// commits nothing, keeps no answer and gives up no key.
func TestKeyClaim_StoppedProcess(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})

		for name, begun := range map[string]int{"before its first transaction": 0, "between two": 1} {
			for _, answered := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, answered %t", name, answered), func(t *testing.T) {
					org, err := db.AddOrg(t.Context(), fmt.Sprint(name, answered))
					if err != nil {
						t.Fatal(err)
					}

					k := keyed{t, db, org.ID}
					mine := k.claim()
					for range begun {
						k.set(mine.Context(t.Context()), 1, 0)
					}

					now = now.Add(store.IdempotencyLife) // past every lease
					theirs := k.claim()
					k.set(theirs.Context(t.Context()), 2, 0)
					if answered {
						k.keep(theirs, "theirs")
					}

					k.set(mine.Context(t.Context()), 3, flex.Unavailable)
					k.keep(mine, "mine")
					if err := db.FreeKey(t.Context(), mine); err != nil {
						t.Fatal(err)
					}
					if got := k.get(); got != 2 {
						t.Errorf("the cap is %v, want that of who has the key, 2", got)
					}

					kept, _, err := db.ClaimKey(t.Context(), org.ID, "k", [32]byte{1})
					theirsKept := kept != nil && string(kept.Answer) == "theirs"
					if answered && !theirsKept {
						t.Errorf("whoever repeats the request gets %+v, %v", kept, err)
					}
					if !answered && flex.KindOf(err) != flex.Conflict {
						t.Errorf("the key under way is given to another: %+v, %v", kept, err)
					}
				})
			}
		}
	})
}

// A key that is given up late, as the database did not answer before, is not taken from the
// request that has claimed it since.
func TestKeyClaim_GivenUpLate(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		org, err := db.AddOrg(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}

		k := keyed{t, db, org.ID}

		first := k.claim()
		if err := db.FreeKey(t.Context(), first); err != nil {
			t.Fatal(err)
		}

		second := k.claim()
		db.FreeLate(t.Context(), first)
		if !db.Answering(org.ID, "k") {
			t.Error("a third request may take the key from the second, which is under way")
		}
		k.keep(second, "done")
		if db.Answering(org.ID, "k") {
			t.Error("the key counts as under way after its answer was kept")
		}
	})
}
