package store_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A process that pauses in a transaction, stopped or cut off from PostgreSQL, keeps others from
// what it locked for seconds, and writes nothing when it goes on; what says that it may pause does.
func TestWrite_PausedProcess(t *testing.T) {
	url := storetest.Postgres(t)
	still := storetest.Open(t, url, store.Options{PauseMax: time.Second})
	other := storetest.Open(t, url, store.Options{})
	addOrg(t, still, "before")

	const lock = `UPDATE org SET name = name || '!'`
	let := func(pause bool, between func()) error {
		return still.WriteAll(t.Context(), func(all *store.All) error {
			if pause {
				if err := all.MayPause(t.Context(), 0); err != nil {
					return err
				}
			}
			if err := all.Run(t.Context(), lock); err != nil {
				return err
			}
			between()

			return all.Run(t.Context(), lock)
		})
	}

	err := let(false, func() { run(t, other, lock) }) // it has the lock once the other has none
	if flex.KindOf(err) != flex.Unavailable {
		t.Errorf("it stood still and wrote: %v", err)
	}

	if err := let(true, func() { time.Sleep(2 * time.Second) }); err != nil {
		t.Errorf("it may pause, and: %v", err)
	}

	var name string
	err = other.ReadAll(t.Context(), func(all *store.All) error {
		orgs, err := all.Orgs(t.Context())
		if err == nil {
			name = orgs[0].Name
		}
		return err
	})
	if err != nil || name != "before!!!" {
		t.Errorf("%q, %v", name, err)
	}
}

// A store that is opened without a limit has DefaultPauseMax, and another the one that is
// asked for.
func TestWrite_PauseByDefault(t *testing.T) {
	url := storetest.Postgres(t)
	for _, o := range []store.Options{
		{},
		{PauseMax: time.Hour},
	} {
		db, err := store.Open(t.Context(), url, o)
		if err != nil {
			t.Fatal(err)
		}

		defer db.Close()

		want := cmp.Or(o.PauseMax, store.DefaultPauseMax)
		err = db.WriteAll(t.Context(), func(all *store.All) error {
			return all.Run(t.Context(), fmt.Sprintf(
				`SELECT 1 / (current_setting('idle_in_transaction_session_timeout')::interval = interval '%d seconds')::int`,
				int(want.Seconds()),
			))
		})

		if err != nil {
			t.Errorf("the limit is not %s: %v", want, err)
		}
	}
}
