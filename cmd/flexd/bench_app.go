package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"flexd/internal/app"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/keyring"
	records "flexd/internal/store"
)

// openBench opens a flexd to be measured, on the store at the URL, or on a temporary one if
// that is empty. The returned function closes flexd and removes temporary files.
func openBench(
	ctx context.Context,
	database string,
	c console,
) (h *app.App, done func(), err error) {
	remove := func() {}
	if database == "" {
		dir, err := os.MkdirTemp("", "flexd-bench-")
		if err != nil {
			return nil, nil, err
		}

		remove = func() { os.RemoveAll(dir) }
		database = "sqlite:" + filepath.Join(dir, "flexd.db")
	}

	keys, err := keyring.NewRing(
		[keyring.KeySize]byte{1},
	) // of a store that ends with the benchmark
	if err == nil {
		h, err = app.Open(ctx, app.Settings{
			Database:              database,
			Keys:                  keys,
			Environment:           flex.Sandbox,
			AllowPrivateEndpoints: true,
			RateLimit:             delivery.RateMax,
			Log: slog.New(slog.NewTextHandler(
				c.err,
				&slog.HandlerOptions{Level: slog.LevelWarn},
			)),
		})
	}

	if err != nil {
		remove()
		return nil, nil, err
	}

	return h, func() { h.Close(); remove() }, nil
}

// openEmptyBench is openBench for an empty store. A benchmark writes into the store, and would
// measure older contents too.
func openEmptyBench(
	ctx context.Context,
	database string,
	c console,
) (h *app.App, done func(), err error) {
	if database != "" {
		orgs, err := records.CountOrgs(ctx, database)
		if err != nil {
			return nil, nil, err
		}
		if orgs > 0 {
			return nil, nil, flex.Fail(
				flex.Conflict,
				"the store named with --database is not empty, it has %d organisations: a benchmark needs one of its own",
				orgs,
			)
		}
	}

	return openBench(ctx, database, c)
}
