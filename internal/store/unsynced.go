package store

import (
	"context"
	"errors"
	"fmt"
	"os"
)

type unsyncedKey struct{}

// WithoutSync has writes under the context committed on SQLite without bringing each to the
// disk. A power cut may take the last of them away, but none without all that came after it,
// and no other write: any other brings all before it to the disk. Who writes so calls Sync
// before it answers for what it wrote. On PostgreSQL nothing changes.
func WithoutSync(ctx context.Context) context.Context {
	return context.WithValue(ctx, unsyncedKey{}, true)
}

// WithSync is the context as it was before WithoutSync.
func WithSync(ctx context.Context) context.Context {
	return context.WithValue(ctx, unsyncedKey{}, false)
}

func unsynced(ctx context.Context) bool {
	without, _ := ctx.Value(unsyncedKey{}).(bool)
	return without
}

// Sync brings to the disk what was committed without.
func (db *DB) Sync() error {
	if db.sqlite == nil || db.disposable {
		return nil
	}

	f, err := os.OpenFile(db.sqlite.wal, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) { // all of it is in the database's file
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}

	defer f.Close()

	if err := f.Sync(); err != nil {
		return fmt.Errorf("bring the log to the disk: %w", err)
	}

	return nil
}

// setSync has the writer's next commits brought to the disk, or not.
func (db *DB) setSync(ctx context.Context, sync bool) error {
	s := db.sqlite
	if db.disposable || s.lazy == !sync {
		return nil
	}

	mode := "NORMAL"
	if sync {
		mode = "FULL"
	}

	// It takes effect as it is prepared, and never again.
	if _, err := s.writer.c.ExecContext(ctx, "PRAGMA synchronous="+mode); err != nil {
		return fmt.Errorf("set what commits wait for: %w", err)
	}

	s.lazy = !sync

	return nil
}

// syncFor syncs a group that was committed without a sync, if one of its writes asks for it.
func (db *DB) syncFor(group []*queuedWrite) error {
	if !db.sqlite.lazy {
		return nil
	}

	for _, w := range group {
		if w.err == nil && !unsynced(w.ctx) {
			return db.Sync()
		}
	}

	return nil
}
