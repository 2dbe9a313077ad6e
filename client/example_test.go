package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"flexd/client"
)

// service stands for flexd: it hands out a token and answers as the interface says.
func service() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /auth/token-form", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"access_token": "token", "token_type": "bearer"}`)
	})

	mux.HandleFunc("GET /users/me", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"username": "acme"}`)
	})

	mux.HandleFunc("POST /entities/asset/{id}/event/plug-in", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != charger.String() {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"detail": "asset not found or not authorized"}`)
			return
		}

		fmt.Println("plugged in, with an Idempotency-Key:", r.Header.Get("Idempotency-Key") != "")
		fmt.Fprint(w, `{}`)
	})

	return httptest.NewServer(mux)
}

var charger = client.AssetID{15: 1}

// A car is plugged in that needs 20 kWh by seven in the morning.
func ExampleClient_PlugIn() {
	flexd := service()
	defer flexd.Close()

	c := client.New(flexd.URL, "acme", "secret")
	ready := time.Date(2026, time.March, 5, 7, 0, 0, 0, time.UTC)
	err := c.PlugIn(context.Background(), charger, client.PlugInEventRequest{
		Intent: &client.Intent{EnergyRequiredKWh: 20, ReadyBy: client.At(ready)},
	})

	fmt.Println("error:", err)
	// Output:
	// plugged in, with an Idempotency-Key: true
	// error: <nil>
}

// An answer that says no is an *Error, which says what was wrong in words.
func ExampleError() {
	flexd := service()
	defer flexd.Close()

	c := client.New(flexd.URL, "acme", "secret")
	err := c.PlugIn(context.Background(), client.AssetID{15: 2}, client.PlugInEventRequest{})

	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Detail)
	}
	// Output: 404 asset not found or not authorized
}

// A push is taken only if it was signed with the endpoint's secret a short time ago.
func ExampleVerifyWebhook() {
	secret := "whsec_c2VjcmV0IG9mIHRoZSBlbmRwb2ludA=="
	now := time.Date(2026, time.March, 4, 18, 0, 0, 0, time.UTC)
	body := []byte(`{"connectorId": 1}`)

	header, err := client.SignWebhook(secret, "018f3c2a", now, body)
	fmt.Println("signed:", err)

	id, err := client.VerifyWebhook(secret, header, body, now.Add(time.Second))
	fmt.Println(id, err)

	_, err = client.VerifyWebhook(secret, header, body, now.Add(time.Hour))
	fmt.Println(err)
	// Output:
	// signed: <nil>
	// 018f3c2a <nil>
	// webhook-timestamp is more than five minutes away
}
