package api

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
)

// What anybody may ask, and is looked up in the store, is held to the rate of an address that shows no valid token.
func TestLimit_OfAnAddress(t *testing.T) {
	var s Server
	back := Route{Role: Public, Pattern: oauthReturn, handle: (*Server).oauthCallback}
	lost := Route{Role: Public, handle: (*Server).methodNotAllowed}

	for _, c := range []struct {
		route  Route
		method string
		rate   int
	}{
		{back, http.MethodGet, addressRate},
		{lost, http.MethodOptions, addressRate},
		{lost, http.MethodGet, DefaultRate},
	} {
		h := http.Header{}
		r := &request{
			Request: httptest.NewRequest(c.method, "/x", http.NoBody),
			route:   c.route,
			from:    "192.0.2.1",
		}

		err := s.limit(r, h)
		want := strconv.Itoa(c.rate * windowSeconds)
		if err != nil || h.Get("RateLimit-Limit") != want {
			t.Errorf("%s %s: %v, %s of %s", c.method, c.route.Pattern, err, h.Get("RateLimit-Limit"), want)
		}
	}
}

// An address that sends many unknown tokens gets 429.
func TestLimit_OfBadTokens(t *testing.T) {
	s := &Server{Access: &access.Service{}} // a token of another form is looked up nowhere
	s.limits.due = map[string]time.Time{
		"address 192.0.2.1": time.Now().Add(2 * windowSeconds * time.Second),
	}

	hr := httptest.NewRequest(http.MethodGet, "/entities/site", http.NoBody)
	hr.Header.Set("Authorization", "Bearer nonsense")
	r := &request{
		Request: hr,
		route:   Route{Role: flex.EntityRead},
		from:    "192.0.2.1",
	}

	_, err := s.answer(r, httptest.NewRecorder())
	if flex.KindOf(err) != flex.TooMany {
		t.Errorf("beyond the rate: %v", err)
	}
}
