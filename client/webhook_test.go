package client_test

import (
	"net/http"
	"testing"
	"time"

	"flexd/client"
)

// The example of the Standard Webhooks libraries' own tests.
func TestVerifyWebhook(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	const body = `{"test": 2432232314}`
	at := time.Unix(1614265330, 0)
	header := func(id, stamp, signature string) http.Header {
		h := http.Header{}
		h.Set("Webhook-Id", id)
		h.Set("Webhook-Timestamp", stamp)
		h.Set("Webhook-Signature", signature)

		return h
	}

	const good = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	for name, c := range map[string]struct {
		h    http.Header
		body string
		at   time.Time
		ok   bool
	}{
		"good":              {header("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", good), body, at, true},
		"one of several":    {header("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "v1,bm90aGluZw== "+good), body, at, true},
		"another body":      {header("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", good), body + " ", at, false},
		"another id":        {header("msg_other", "1614265330", good), body, at, false},
		"another version":   {header("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "v2"+good[2:]), body, at, false},
		"at the limit":      {header("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", good), body, at.Add(5 * time.Minute), true},
		"past the limit":    {header("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", good), body, at.Add(5*time.Minute + time.Second), false},
		"from the future":   {header("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", good), body, at.Add(-6 * time.Minute), false},
		"without a header":  {http.Header{}, body, at, false},
		"empty signature":   {header("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", ""), body, at, false},
		"another timestamp": {header("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265331", good), body, at, false},
	} {
		id, err := client.VerifyWebhook(secret, c.h, []byte(c.body), c.at)
		if (err == nil) != c.ok || c.ok && id != "msg_p5jXN8AQM9LWM0D4loKWxJek" {
			t.Errorf("%s: got %q, %v", name, id, err)
		}
	}
}

// FuzzVerifyWebhook sends a receiver what nobody signed.
func FuzzVerifyWebhook(f *testing.F) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	at := time.Unix(1614265330, 0)
	f.Add("msg", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", []byte(`{}`))
	f.Add("msg", "1614265330", "v1,", []byte{})
	f.Add("msg", "99999999999999999999", "v1, v1,====", []byte("{"))
	f.Fuzz(func(t *testing.T, id, stamp, signature string, body []byte) {
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signature}}
		if _, err := client.VerifyWebhook(secret, h, body, at); err == nil {
			t.Errorf("%q %q %q %q was believed", id, stamp, signature, body)
		}

		signed, err := client.SignWebhook(secret, "msg", at, body)
		if err != nil {
			t.Fatal(err)
		}

		if got, err := client.VerifyWebhook(secret, signed, body, at); err != nil || got != "msg" {
			t.Errorf("%q signed: %q %v", body, got, err)
		}

		if _, err := client.VerifyWebhook("whsec_", signed, body, at); err == nil {
			t.Error("an empty secret believes")
		}
	})
}
