package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The times and sizes that a connection is held to.
const (
	headerTime  = 10 * time.Second
	idleTime    = 2 * time.Minute
	headerBytes = 64 << 10
	stopTime    = 30 * time.Second // for requests under way when the server is stopped
)

// Serve answers on the listener until the context ends; then it takes no more connections
// and returns when the requests under way are answered.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return ServeHandler(ctx, l, s.Handler(), s.Log)
}

// ServeHandler is Serve for a handler that joins this one with other transports.
func ServeHandler(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	if log == nil {
		log = slog.Default()
	}

	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()

		err := server.Shutdown(late)
		if err != nil {
			err = errors.Join(err, server.Close())
		}

		stopped <- err
	}()

	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return <-stopped
}
