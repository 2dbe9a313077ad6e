package app_test

import (
	"flexd/internal/access"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"flexd/internal/app"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestTrustedProxies_Console shows that the console knows its clients behind a trusted proxy:
// guesses from elsewhere lock no operator out, wherever an IPv6 network's guesses come from
// they count as one client's, and the audit log names the client.
func TestTrustedProxies_Console(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		h, err := app.Open(t.Context(), app.Settings{
			Database: database, Keys: storetest.Keys(t), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, BaseURL: "https://flexd.example",
		})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if _, err := h.Access.AddOperator(t.Context(), "ada", "correct horse battery", access.Admin); err != nil {
			t.Fatal(err)
		}

		handler := h.Handler()
		login := func(from, password string) *httptest.ResponseRecorder {
			form := url.Values{"name": {"ada"}, "password": {password}}
			r := httptest.NewRequest("POST", "http://127.0.0.1:8080/console/login", strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("X-Forwarded-For", from)
			r.RemoteAddr = "10.1.2.3:4000"
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w
		}

		refused := 0
		for i := range 30 {
			if login(fmt.Sprintf("2001:db8:0:7::%x", i+1), "a guess").Code == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused == 0 {
			t.Error("30 guesses from one IPv6 network are none too many")
		}

		for range 5 {
			if got := login("198.51.100.9", "correct horse battery"); got.Code != http.StatusSeeOther {
				t.Fatalf("ada from elsewhere, with her password: %d", got.Code)
			} else if c := got.Header().Get("Set-Cookie"); !strings.Contains(c, "__Host-") || !strings.Contains(c, "Secure") {
				t.Errorf("behind a proxy that asks for 127.0.0.1 the cookie is %q", c)
			}
		}

		sources := map[string]bool{}
		err = h.DB.ReadAll(t.Context(), func(all *store.All) error {
			acts, err := all.Acts(t.Context(), store.ActFilter{Limit: 100})
			for _, a := range acts {
				sources[a.Source] = true
			}
			return err
		})
		if err != nil || !sources["198.51.100.9"] || !sources["2001:db8:0:7::/64"] || len(sources) != 2 {
			t.Errorf("the audit log names %v, %v", sources, err)
		}
	})
}
