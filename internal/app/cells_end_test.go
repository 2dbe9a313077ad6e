package app

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// When flexd stops, the streams of every cell end: one that did not would hold it up until it
// is cut off.
func TestCells_StreamsEndAtOnce(t *testing.T) {
	var settings []CellSettings
	for _, name := range []string{"home", "north"} {
		settings = append(settings, CellSettings{Name: name, Settings: Settings{
			Database:    storetest.SQLite(t),
			Keys:        storetest.Keys(t),
			Log:         slog.New(slog.NewTextHandler(io.Discard, nil)),
			BaseURL:     "http://127.0.0.1:8080",
			Environment: flex.Sandbox,
		}})
	}

	c, err := OpenCells(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx, l) }()
	stop()

	for _, o := range c.cells {
		a := o.app.Load()
		for _, done := range []<-chan struct{}{a.API.Done, a.Console.Done} {
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Errorf("the streams of %s do not end", o.name)
			}
		}
	}

	if err := <-served; err != nil {
		t.Error(err)
	}
}
