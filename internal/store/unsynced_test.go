package store_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// What is written without bringing it to the disk is there with the next write that is, or by
// Sync. A write that is to be on the disk is never answered for without, even where it is
// committed with others that are not.
func TestWrite_WithoutSync(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t), store.Options{Environment: flex.Sandbox})
	ctx, without := t.Context(), store.WithoutSync(t.Context())
	org, err := db.AddOrg(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}

	mode := func() (mode int) {
		t.Helper()
		err := db.Write(ctx, org.ID, func(tx *store.Tx) (err error) {
			mode, err = store.SyncMode(ctx, tx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return mode
	}

	const normal, full = 1, 2
	for range 2 { // the mode is set anew each time
		ctx = t.Context()
		if got := mode(); got != full {
			t.Errorf("a write is committed with synchronous=%d, want %d", got, full)
		}

		ctx = without
		if got := mode(); got != normal {
			t.Errorf("a write without sync is committed with synchronous=%d, want %d", got, normal)
		}
	}

	ctx = store.WithSync(without)
	if got := mode(); got != full {
		t.Errorf("a write that is to be synced again is committed with synchronous=%d", got)
	}

	ctx = without
	mode()
	if err := db.Sync(); err != nil {
		t.Error(err)
	}

	store.LoseLog(db, t.TempDir()) // a folder can be opened by nobody
	if db.Sync() == nil || store.SyncGroup(db, without, t.Context()) == nil {
		t.Error("what cannot be brought to the disk is answered for")
	}
	if err := store.SyncGroup(db, without, without); err != nil {
		t.Errorf("what need not be on the disk is brought there: %v", err)
	}
}

// TestSync_Link: SQLite keeps its log beside the file that a link leads to, and there it is
// brought to the disk.
func TestSync_Link(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "records", "flexd.db"), filepath.Join(dir, "flexd.db")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}

	db := storetest.Open(t, "sqlite:"+link, store.Options{Environment: flex.Sandbox})
	if _, err := db.AddOrg(store.WithoutSync(t.Context()), "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(store.LogFile(db)); err != nil {
		t.Errorf("the log that is brought to the disk: %v", err)
	}
}

// TestWrite_Disposable: nothing that is written to a database that will be deleted waits for
// the disk.
func TestWrite_Disposable(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t), store.Options{Environment: flex.Sandbox, Disposable: true})
	org, err := db.AddOrg(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}

	without := store.WithoutSync(t.Context())
	for _, ctx := range []context.Context{t.Context(), without, store.WithSync(without)} {
		err := db.Write(ctx, org.ID, func(tx *store.Tx) error {
			const off = 0
			mode, err := store.SyncMode(ctx, tx)
			if mode != off {
				t.Errorf("a write is committed with synchronous=%d, want %d", mode, off)
			}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	store.LoseLog(db, t.TempDir()) // a folder can be opened by nobody
	if err := db.Sync(); err != nil {
		t.Errorf("what will be deleted is brought to the disk: %v", err)
	}
}
