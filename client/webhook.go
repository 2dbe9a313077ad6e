package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// webhookTolerance is how far a push's timestamp may lie from now (Standard Webhooks 1.0).
const webhookTolerance = 5 * time.Minute

// VerifyWebhook checks that a push came from the service: its signature by Standard
// Webhooks 1.0, made with the endpoint's secret ("whsec_…"), and its age at now. It returns
// the push's id, which is the event id for the callback and the same on every retry, so
// that a push seen before can be passed over.
func VerifyWebhook(
	secret string,
	h http.Header,
	body []byte,
	now time.Time,
) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 { // an empty one would verify what anybody signs
		return "", errors.New("the secret is not whsec_ followed by base64")
	}

	id, stamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || err != nil {
		return "", errors.New("webhook-id or webhook-timestamp is missing")
	}
	age := now.Sub(time.Unix(seconds, 0))
	if age > webhookTolerance || age < -webhookTolerance {
		return "", errors.New("webhook-timestamp is more than five minutes away")
	}

	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	want := mac.Sum(nil)

	for signature := range strings.FieldsSeq(h.Get("webhook-signature")) {
		version, text, _ := strings.Cut(signature, ",")
		got, err := base64.StdEncoding.DecodeString(text)
		if version == "v1" && err == nil && hmac.Equal(got, want) {
			return id, nil
		}
	}

	return "", errors.New("no signature of webhook-signature is right")
}

// SignWebhook returns the header fields of a push as the service sends it, for tests of a
// receiver.
func SignWebhook(
	secret, id string,
	at time.Time,
	body []byte,
) (http.Header, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return nil, errors.New("the secret is not whsec_ followed by base64")
	}

	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	h := http.Header{"Content-Type": {"application/json"}}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", stamp)
	h.Set(
		"webhook-signature",
		"v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	)

	return h, nil
}
