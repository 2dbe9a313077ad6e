package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"flexd/street"
)

const certifySecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// A receiver that does all that is asked passes; one that takes anything, and one that is
// down, do not.
func TestCertify(t *testing.T) {
	endpoint := street.NewEndpoint(certifySecret, &street.Charger{ExternalID: "flexd-certify", Power: 7400})
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
	for _, g := range (&certify{Endpoint: credulous.URL, Secret: certifySecret}).try(t.Context(), time.Now()) {
		if g.Passed {
			t.Errorf("an endpoint that is not there passed %+v", g)
		}
	}
}
