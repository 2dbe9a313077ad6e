package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
)

// Debug answers profiles of the running process under /debug/pprof/ until the context ends. It asks for
// no password: the listener must be one that operators alone can reach.
func Debug(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: DebugMux(), ReadHeaderTimeout: headerTime}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()

	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}

// DebugMux answers the profiles.
func DebugMux() *Mux {
	mux := NewMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)

	return mux
}
