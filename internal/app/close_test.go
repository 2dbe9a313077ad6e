package app_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"flexd/internal/app"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// An endpoint keeps no connection of a flexd that was closed, whichever of its services made it.
func TestClose_Connections(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		ended := make(chan struct{}, 8)
		endpoint := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		endpoint.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				ended <- struct{}{}
			}
		}
		endpoint.Start()
		defer endpoint.Close()

		h, err := app.Open(t.Context(), app.Settings{
			Database:              database,
			Keys:                  storetest.Keys(t),
			Environment:           flex.Sandbox,
			Log:                   slog.New(slog.NewTextHandler(io.Discard, nil)),
			AllowPrivateEndpoints: true,
		})
		if err != nil {
			t.Fatal(err)
		}

		clients := []*egress.Client{h.Push.Out, h.Reward.Web}
		for _, c := range clients {
			r := egress.Request{Method: http.MethodPost, URL: endpoint.URL}
			if _, err := c.Do(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}

		if err := h.Close(); err != nil {
			t.Fatal(err)
		}

		limit := time.After(time.Minute)
		for i := range clients {
			select {
			case <-ended:
			case <-limit:
				t.Fatalf("%d of %d connections were closed", i, len(clients))
			}
		}
	})
}
