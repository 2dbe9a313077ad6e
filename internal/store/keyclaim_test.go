package store_test

import (
	"context"
	"errors"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A request of two transactions whose process ends after the first is repeated: what was
// committed is not done again, what was not is.
func TestKeyClaim_Repeated(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		org, err := db.AddOrg(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		request := [32]byte{1}
		claim := func() *store.KeyClaim {
			t.Helper()
			k, cl, err := db.ClaimKey(t.Context(), org.ID, "k", request)
			if k != nil || err != nil {
				t.Fatalf("claimed as %+v, %v", k, err)
			}
			return cl
		}
		set := func(ctx context.Context, value flex.Watts) {
			t.Helper()
			err := db.Write(ctx, org.ID, func(tx *store.Tx) error { return tx.SetSettings(ctx, flex.OrgSettings{FleetCap: value}) })
			if err != nil {
				t.Fatal(err)
			}
		}

		get := func() (value flex.Watts) {
			t.Helper()
			err := db.Read(t.Context(), org.ID, func(tx *store.Tx) error {
				o, err := tx.OrgRecord(t.Context())
				value = o.Settings.FleetCap
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return value
		}

		set(claim().Context(t.Context()), 1)
		if err := db.FreeKey(t.Context(), org.ID, "k", request); err != nil { // it failed half-way
			t.Fatal(err)
		}
		set(t.Context(), 2)
		again := claim().Context(t.Context())
		set(again, 1)
		if got := get(); got != 2 {
			t.Errorf("what had been committed was done again: %v", got)
		}
		set(again, 3)
		if got := get(); got != 3 {
			t.Errorf("what had not been committed was not done: %v", got)
		}

		set(store.Undoing(t.Context()), 4)
		if got := get(); got != 3 {
			t.Errorf("what was to be undone was done: %v", got)
		}
		failed := errors.New("failed")
		if err := db.Write(store.Undoing(t.Context()), org.ID, func(*store.Tx) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("a transaction that fails is answered with %v", err)
		}
	})
}
