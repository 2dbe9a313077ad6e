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
)

// openBench opens a flexd to be measured, on the store at the URL, or on a temporary one if
// that is empty. What is returned closes flexd and removes what was temporary.
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
