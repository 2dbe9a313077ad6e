package api

import (
	"context"
	"net"

	"flexd/internal/web"
)

// Serve answers on the listener until the context ends; then it takes no more connections
// and returns when the requests under way are answered.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &web.Server{
		Handler: s.Handler(),
		Proxies: s.TrustedProxies,
		Log:     s.Log,
	}

	return server.Serve(ctx, l)
}
