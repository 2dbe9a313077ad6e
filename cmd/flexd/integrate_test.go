package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"flexd/sim"
)

const certifySecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// A receiver that does everything as required passes. One that accepts anything, and one that
// is down, do not.
func TestCertify(t *testing.T) {
	endpoint := sim.NewEndpoint(certifySecret, &sim.Charger{ExternalID: "flexd-certify", Power: 7400})
	good := httptest.NewServer(endpoint)
	defer good.Close()
	for _, g := range (&certify{Endpoint: good.URL + "/{external_id}", Secret: certifySecret}).try(t.Context(), time.Now()) {
		if !g.Passed {
			t.Errorf("the street's endpoint failed at %+v", g)
		}
	}

	credulous := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	failed := 0
	for _, g := range (&certify{Endpoint: credulous.URL, Secret: certifySecret}).try(t.Context(), time.Now()) {
		if !g.Passed {
			failed++
		}
	}
	if failed != 4 {
		t.Errorf("an endpoint that takes anything failed %d, want the 4 forgeries", failed)
	}
	credulous.Close()

	gone := (&certify{Endpoint: credulous.URL, Secret: certifySecret}).try(t.Context(), time.Now())
	if len(gone) != 1 || gone[0].Passed || !strings.Contains(gone[0].Advice, "Nothing answers") {
		t.Errorf("an endpoint that is not there got %+v, want one failure with advice", gone)
	}
}

// Pushes follow no redirect, so an endpoint that only points to a good one fails.
func TestCertify_FollowsNoRedirect(t *testing.T) {
	good := httptest.NewServer(sim.NewEndpoint(certifySecret, &sim.Charger{ExternalID: "flexd-certify", Power: 7400}))
	defer good.Close()
	pointer := httptest.NewServer(http.RedirectHandler(good.URL+"/flexd-certify", http.StatusTemporaryRedirect))
	defer pointer.Close()

	for _, g := range (&certify{Endpoint: pointer.URL, Secret: certifySecret}).try(t.Context(), time.Now()) {
		if g.Passed || !strings.Contains(g.Advice, "no redirect") {
			t.Errorf("an endpoint that redirects got %+v", g)
		}
	}
}

// What a newcomer does wrong is said with what would be right.
func TestIntegrate_Advice(t *testing.T) {
	at := func(args ...string) []string {
		return append(args, "--url", "http://127.0.0.1:1", "--username", "me", "--password", "x")
	}

	for _, v := range []struct {
		args []string
		code int
		want string
	}{
		{at("listen"), exitFailed, "no flexd answers at http://127.0.0.1:1"},
		{at("trigger", "plug_in", "x"), exitFailed, "start one with flexd serve"},
		{[]string{"listen"}, exitUsage, "(try flexd listen --help)"},
		{at("trigger", "plugin", "x"), exitUsage, "plug_in"},
		{[]string{"certify", "--endpoint", "http://127.0.0.1:1", "--secret", "abc"}, exitUsage, "--secret: the secret is not whsec_"},
		{[]string{"certify", "--endpoint", "localhost:1", "--secret", certifySecret}, exitUsage, "is no URL like"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var said strings.Builder
		if code := run(ctx, v.args, console{strings.NewReader(""), &said, &said}); code != v.code || !strings.Contains(said.String(), v.want) {
			t.Errorf("%v: exit %d, want %d with %q:\n%s", v.args, code, v.code, v.want, said.String())
		}
		cancel()
	}
}
