package egress

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"flexd/client"
	"flexd/internal/flex"
	_ "flexd/test/seed" // so that each run draws the same
)

// The example that the scheme's specification and its libraries share.
func TestSignature_Published(t *testing.T) {
	key, err := SecretKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := Signature([][]byte{key}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Whatever we sign, the scheme's own library and our client's verify, by the old secret and
// by the new; and both refuse it once any byte is changed.
func TestSignature_Oracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), SecretMin, SecretMax), 1, 2).Draw(t, "keys")
		id := rapid.StringMatching(`[a-z0-9-]{1,36}`).Draw(t, "id")
		body := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "body")
		now := time.Now()
		h := http.Header{}
		h.Set("webhook-id", id)
		h.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))

		h.Set("webhook-signature", Signature(keys, id, now, body))
		verify := func(secret flex.Secret, h http.Header, body []byte) [2]bool {
			w, err := standard.NewWebhook(secret.Reveal())
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.VerifyWebhook(secret.Reveal(), h, body, now)
			return [2]bool{w.Verify(body, h) == nil, err == nil}
		}

		for _, key := range keys {
			if got := verify(NewSecret(key), h, body); got != [2]bool{true, true} {
				t.Fatalf("a right signature is refused: %v", got)
			}
		}
		other := append([]byte(nil), body...)
		if i := rapid.IntRange(0, len(body)).Draw(t, "changed"); i < len(other) {
			other[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		} else {
			other = append(other, 'x')
		}

		if got := verify(NewSecret(keys[0]), h, other); got != [2]bool{} {
			t.Fatalf("a changed body passes: %v", got)
		}
		h.Set("webhook-id", id+"x")
		if got := verify(NewSecret(keys[0]), h, body); got != [2]bool{} {
			t.Fatalf("a changed id passes: %v", got)
		}
	})
}

func TestKeyOf(t *testing.T) {
	secret := func(n int) flex.Secret { return NewSecret(make([]byte, n)) }
	for s, good := range map[flex.Secret]bool{
		secret(SecretMin): true, secret(SecretMin - 1): false, secret(SecretMax): true, secret(SecretMax + 1): false,
		"": false, "whsec_": false, "whsec_!": false, flex.Secret(base64.StdEncoding.EncodeToString(make([]byte, 32))): false,
		flex.Secret(strings.TrimRight(secret(32).Reveal(), "=")): false,
	} {
		_, err := SecretKey(s)
		if (err == nil) != good {
			t.Errorf("%q: %v", s.Reveal(), err)
		}
		if err != nil && len(s) > 10 && strings.Contains(err.Error(), s.Reveal()) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}
