package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/egress"
	"flexd/internal/flex"
)

// Each limit at its edge: the last that is taken and the first that is not.
func TestSetEndpoint_Limits(t *testing.T) {
	one(t, func(h *fixture) {
		ctx := context.Background()
		const url = "https://client.example/"
		headers := func(n int) (hs []flex.EndpointHeader) {
			for i := range n {
				hs = append(hs, flex.EndpointHeader{Name: fmt.Sprintf("X-%d", i), Value: "v"})
			}

			return hs
		}

		header := func(name, value string) []flex.EndpointHeader {
			return []flex.EndpointHeader{{Name: name, Value: flex.Secret(value)}}
		}

		long := func(n int) string { return url + strings.Repeat("a", n-len(url)) }
		for name, c := range map[string]struct {
			set  delivery.Settings
			good bool
		}{
			"a URL as long as may be": {delivery.Settings{URL: long(egress.URLMax / 2)}, true},
			"a longer one":            {delivery.Settings{URL: long(egress.URLMax/2 + 1)}, false},
			"the highest rate":        {delivery.Settings{URL: url, Rate: delivery.RateMax}, true},
			"a higher one":            {delivery.Settings{URL: url, Rate: delivery.RateMax + 1}, false},
			"a negative rate":         {delivery.Settings{URL: url, Rate: -1}, false},
			"most at once":            {delivery.Settings{URL: url, Concurrency: delivery.ConcurrencyMax}, true},
			"more at once":            {delivery.Settings{URL: url, Concurrency: delivery.ConcurrencyMax + 1}, false},
			"negative at once":        {delivery.Settings{URL: url, Concurrency: -1}, false},
			"most headers":            {delivery.Settings{URL: url, Headers: headers(delivery.HeadersMax)}, true},
			"more headers":            {delivery.Settings{URL: url, Headers: headers(delivery.HeadersMax + 1)}, false},
			"the longest value":       {delivery.Settings{URL: url, Headers: header("A", strings.Repeat("v", delivery.HeaderValueMax))}, true},
			"a longer value":          {delivery.Settings{URL: url, Headers: header("A", strings.Repeat("v", delivery.HeaderValueMax+1))}, false},
			"a line break":            {delivery.Settings{URL: url, Headers: header("A", "v\nB: w")}, false},
			"a scheme's header":       {delivery.Settings{URL: url, Headers: header("webhook-signature", "v1,x")}, false},
			"our header":              {delivery.Settings{URL: url, Headers: header("FLEXD-kind", "x")}, false},
			"the host":                {delivery.Settings{URL: url, Headers: header("Host", "x")}, false},
			"a credential":            {delivery.Settings{URL: url, Headers: header("Authorization", "Bearer x")}, true},
			"placeholders":            {delivery.Settings{URL: url + "{asset_id}/{site_id}?x={external_id}"}, true},
			"an unknown one":          {delivery.Settings{URL: url + "{id}"}, false},
			"an open brace":           {delivery.Settings{URL: url + "{"}, false},
			"one in the host":         {delivery.Settings{URL: "https://{asset_id}.example/"}, false},
			"one in the port":         {delivery.Settings{URL: "https://a.example:{asset_id}/"}, false},
			"a loopback host":         {delivery.Settings{URL: "https://localhost/"}, false},
			"a private host":          {delivery.Settings{URL: "https://[fd00::1]/"}, false},
			"no host":                 {delivery.Settings{URL: "https:///x"}, false},
			"nothing":                 {delivery.Settings{}, false},
		} {
			_, _, err := h.service.SetEndpoint(ctx, h.Org, flex.ScheduleEndpoint, c.set)
			if (err == nil) != c.good || err != nil && flex.KindOf(err) != flex.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// The message says that an operator may open an address only where that is so.
func TestSetEndpoint_NeverOpened(t *testing.T) {
	one(t, func(h *fixture) {
		const mayBe = "(--allow-private-endpoints)"

		for url, opened := range map[string]bool{
			"https://10.0.0.1/":           true,
			"https://localhost/":          true,
			"https://169.254.169.254/":    false,
			"https://[fd00:ec2::254]/":    false,
			"https://[fe80::1]/":          false,
			"https://100.100.100.200/":    false,
			"https://[::ffff:a9fe:a9fe]/": false,
		} {
			_, _, err := h.service.SetEndpoint(context.Background(), h.Org, flex.ScheduleEndpoint, delivery.Settings{URL: url})
			if err == nil || strings.Contains(err.Error(), mayBe) != opened || strings.Contains(err.Error(), "whatever an operator allows") == opened {
				t.Errorf("%s: %v", url, err)
			}
		}
	})
}

// All faults of one request come at once, each with its place.
func TestSetEndpoint_AllFaults(t *testing.T) {
	one(t, func(h *fixture) {
		_, _, err := h.service.SetEndpoint(context.Background(), h.Org, flex.ScheduleEndpoint, delivery.Settings{
			URL: "ftp://x", Secret: "x", Rate: -1, Concurrency: -1, Headers: []flex.EndpointHeader{{Name: "ok"}, {Name: "not ok"}},
		})

		f, ok := errors.AsType[*flex.Error](err)
		if !ok {
			t.Fatal(err)
		}

		var places []string
		for _, fault := range f.Faults {
			places = append(places, strings.Join(fault.Loc, "."))
		}

		if got := strings.Join(places, " "); got != "body.url body.headers.1 body.secret body.rate body.concurrency" {
			t.Errorf("faults at %s", got)
		}
	})
}

// What is not said stays, and another secret takes over with a day's grace.
func TestSetEndpoint_Keeps(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		first, made, err := h.service.SetEndpoint(ctx, h.Org, flex.ScheduleEndpoint, delivery.Settings{
			URL: "http://a.example/", Headers: []flex.EndpointHeader{{Name: "K", Value: "v"}}, Rate: 7, Concurrency: 3,
		})

		if err != nil || !made || !first.Enabled {
			h.Fatalf("%+v, %v", first, err)
		}

		second, made, err := h.service.SetEndpoint(ctx, h.Org, flex.ScheduleEndpoint, delivery.Settings{URL: "http://b.example/"})
		if err != nil || made || second.ID != first.ID || second.Secret != first.Secret || second.Rate != 7 || second.Concurrency != 3 ||
			len(second.Headers) != 1 || second.Headers[0].Value != "v" || !second.OldUntil.IsZero() {
			h.Errorf("%+v, %v", second, err)
		}

		third, made, err := h.service.SetEndpoint(ctx, h.Org, flex.ScheduleEndpoint, delivery.Settings{
			URL: "http://b.example/", Headers: []flex.EndpointHeader{}, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", Enabled: new(bool),
		})

		if err != nil || made || third.OldSecret != first.Secret || !third.OldUntil.Equal(time.Now().Add(delivery.RotationTime)) ||
			len(third.Headers) != 0 || third.Enabled || third.Reason == "" {
			h.Errorf("%+v, %v", third, err)
		}

		for _, text := range []string{fmt.Sprint(third), fmt.Sprintf("%#v", third)} {
			if strings.Contains(text, "MfKQ9r8") {
				h.Errorf("the secret is printed: %s", text)
			}
		}

		if _, err := h.service.Endpoint(ctx, h.tenant("other").Org, flex.ScheduleEndpoint); flex.KindOf(err) != flex.NotFound {
			h.Errorf("another organisation's endpoint: %v", err)
		}
	})
}
