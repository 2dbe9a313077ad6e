package store

import (
	"context"
	"fmt"
	"io"
)

// Key returns the house's 256-bit key of that name, and makes it if there is none yet.
func (db *DB) Key(ctx context.Context, name string) (key [32]byte, err error) {
	var fresh [32]byte
	if _, err := io.ReadFull(db.Random(), fresh[:]); err != nil {
		return key, fmt.Errorf("make the key %s: %w", name, err)
	}
	err = db.WriteAll(ctx, func(all *All) error {
		if _, err := all.exec(ctx, `INSERT INTO secret (name, key, made_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`,
			name, fresh[:], all.now.UnixMicro()); err != nil {
			return err
		}
		var kept []byte
		if err := all.row(ctx, `SELECT key FROM secret WHERE name = $1`, name).Scan(&kept); err != nil {
			return err
		}
		if copy(key[:], kept) != len(key) || len(kept) != len(key) {
			return fmt.Errorf("the key %s has %d bytes, not %d", name, len(kept), len(key))
		}
		return nil
	})
	return key, err
}

// Random returns the store's source of randomness, for many to read from at once.
func (db *DB) Random() io.Reader { return randomness{db} }

type randomness struct{ db *DB }

func (r randomness) Read(b []byte) (int, error) {
	r.db.mu.Lock()
	defer r.db.mu.Unlock()
	return io.ReadFull(r.db.random, b)
}
