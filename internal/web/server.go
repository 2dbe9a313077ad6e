package web

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The times and sizes that every connection is held to.
const (
	headerTime  = 10 * time.Second
	idleTime    = 2 * time.Minute
	headerBytes = 64 << 10
	// for requests under way when the server is stopped
	stopTime = 30 * time.Second

	readTime = 30 * time.Second // for a request with its body
	// for an answer, beside the time that its length takes
	writeTime = 30 * time.Second
	// bytes a second that a client must read at least
	writeRate = 8 << 10
)

// Limits bound what clients can hold. The zero value stands for the defaults.
type Limits struct {
	Connections int // at once; DefaultConnections if 0
	// at once of one client address; a quarter of Connections if 0
	PerAddress int
	Read       time.Duration // for a request with its body; readTime if 0
	Write      time.Duration // for a client to read its answer; writeTime if 0
}

// perAddressShare is the part of all connections that one address may hold.
const perAddressShare = 4

func (l Limits) orDefaults() Limits {
	if l.Connections == 0 {
		l.Connections = DefaultConnections()
	}

	if l.PerAddress == 0 {
		l.PerAddress = max(1, l.Connections/perAddressShare)
	}

	if l.Read == 0 {
		l.Read = readTime
	}

	if l.Write == 0 {
		l.Write = writeTime
	}

	return l
}

// Server answers on a listener within limits.
type Server struct {
	Handler http.Handler
	Proxies Proxies
	Limits  Limits
	TLS     *tls.Config  // nil for plain HTTP
	Log     *slog.Logger // nil means the default logger
}

// Serve answers on the listener until the context ends; then it takes no more connections
// and returns when the requests under way are answered.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	log := s.Log
	if log == nil {
		log = slog.Default()
	}

	limits := s.Limits.orDefaults()
	server := &http.Server{
		Handler: timed(plainPaths(s.Handler), limits.Write), MaxHeaderBytes: headerBytes,
		ReadHeaderTimeout: min(headerTime, limits.Read), ReadTimeout: limits.Read, IdleTimeout: idleTime,
		// of what the server answers by itself; timed sets it for handlers
		WriteTimeout: limits.Write,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		late, cancel := context.WithTimeout(
			context.WithoutCancel(ctx),
			stopTime,
		)

		defer cancel()

		err := server.Shutdown(late)
		if err != nil {
			err = errors.Join(err, server.Close())
		}

		stopped <- err
	}()

	err := server.Serve(s.listener(l, limits, log))
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return <-stopped
}

// listener takes connections within the limits, over TLS where it is to be.
func (s *Server) listener(
	l net.Listener,
	limits Limits,
	log *slog.Logger,
) net.Listener {
	bounded := &boundedListener{
		Listener: l,
		proxies:  s.Proxies,
		limits:   limits,
		log:      log,
		held:     map[string]int{},
	}

	if s.TLS == nil {
		return bounded
	}

	return tls.NewListener(bounded, s.TLS)
}
