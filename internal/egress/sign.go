package egress

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

// secretPrefix begins every secret, by Standard Webhooks 1.0.
const secretPrefix = "whsec_"

// A secret is whsec_ and the base64 of a key of 24 to 64 bytes; those that flexd makes have 32.
const SecretMin, SecretMade, SecretMax = 24, 32, 64

// NewSecret writes a key as a secret.
func NewSecret(key []byte) flex.Secret {
	return flex.Secret(secretPrefix + base64.StdEncoding.EncodeToString(key))
}

// SecretKey reads a secret. The error may be shown: it does not hold the secret.
func SecretKey(s flex.Secret) ([]byte, error) {
	text, ok := strings.CutPrefix(s.Reveal(), secretPrefix)
	if !ok {
		return nil, fmt.Errorf(
			"a secret begins with %q; leave it out and one is made",
			secretPrefix,
		)
	}

	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf(
			"after %q a secret is base64 with its padding; leave it out and one is made",
			secretPrefix,
		)
	}

	if len(key) < SecretMin || len(key) > SecretMax {
		return nil, fmt.Errorf(
			"a secret stands for %d to %d bytes, this one for %d",
			SecretMin,
			SecretMax,
			len(key),
		)
	}

	return key, nil
}

// Signature returns the webhook-signature of a message: one for each key, so that during a
// rotation the old secret and the new both verify it.
func Signature(keys [][]byte, id string, at time.Time, body []byte) string {
	var b strings.Builder
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)

		if i > 0 {
			b.WriteByte(' ')
		}

		b.WriteString("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}

	return b.String()
}
