package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"flexd/client"
)

// Who ends a stream in its midst gets the error, as who ends it between two streams.
func TestFollowSite_Ended(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /auth/token-form", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"access_token": "token", "token_type": "bearer"}`)
	})
	mux.HandleFunc("GET /entities/site/{id}/live", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "data: {}\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})

	server := httptest.NewServer(mux)
	defer server.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := client.New(server.URL, "acme", "secret").FollowSite(ctx, client.SiteID{15: 1}, func(client.SiteNow) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}
