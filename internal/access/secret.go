package access

import (
	"bytes"
	"context"
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"

	"flexd/internal/flex"
)

// A secret that flexd makes is 256 random bits, which no one guesses, so one round of
// SHA-256 keeps it. One that a person chose is kept by Argon2id, which makes each guess dear.
const (
	madeMark   = "sha256:"
	chosenMark = "argon2id:"
	saltBytes  = 16
	hashBytes  = 32
)

// The price of one guess at a chosen secret, by OWASP's least: 19 MiB and two passes.
const (
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
)

// MinSecret and MaxSecret bound the bytes of a secret that a person chooses.
const (
	MinSecret = 8
	MaxSecret = 1 << 10
)

// makeSecret returns a new secret and how it is kept.
func makeSecret() (flex.Secret, []byte) {
	var random [32]byte
	crand.Read(random[:])
	s := base64.RawURLEncoding.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(s))

	return flex.Secret(s), append([]byte(madeMark), sum[:]...)
}

// hashChosen returns how a secret that a person chose is kept.
func hashChosen(s flex.Secret) []byte {
	var salt [saltBytes]byte
	crand.Read(salt[:])
	return append(append([]byte(chosenMark), salt[:]...), argon(s, salt[:])...)
}

func argon(s flex.Secret, salt []byte) []byte {
	return argon2.IDKey([]byte(s), salt, argonTime, argonMemory, 1, hashBytes)
}

// verify reports whether the secret is the one that is kept. A wrong one costs the same work
// whether it is wrong for a made secret, for a chosen one or for no one at all (kept is nil).
// An error says that it was not checked.
func (q *guessQueue) verify(
	ctx context.Context,
	s flex.Secret,
	kept []byte,
	from string,
) (bool, error) {
	if isMade(s, kept) {
		return true, nil
	}

	rest, chosen := bytes.CutPrefix(kept, []byte(chosenMark))
	if !chosen || len(rest) != saltBytes+hashBytes {
		_, err := q.derive(ctx, s, make([]byte, saltBytes), from)
		return false, err
	}

	given, err := q.derive(ctx, s, rest[:saltBytes], from)

	return err == nil &&
		subtle.ConstantTimeCompare(given, rest[saltBytes:]) == 1, err
}

// isMade reports whether the secret is the one that is kept, and one that flexd made.
func isMade(s flex.Secret, kept []byte) bool {
	sum, made := bytes.CutPrefix(kept, []byte(madeMark))
	given := sha256.Sum256([]byte(s))

	return made && subtle.ConstantTimeCompare(given[:], sum) == 1
}

// verifiedCache remembers for a while which secrets were right, by a hash under a key that only this process has,
// so that a client that logs in every minute does not cost Argon2id every minute.
type verifiedCache struct {
	mu  sync.Mutex
	key [32]byte
	at  map[[32]byte]time.Time // when a secret was right, by its hash
}

// hash returns the hash by which a secret and what is kept of it are remembered.
func (c *verifiedCache) hash(s flex.Secret, kept []byte) [32]byte {
	if c.at == nil {
		crand.Read(c.key[:])
		c.at = map[[32]byte]time.Time{}
	}

	h := hmac.New(sha256.New, c.key[:])
	// of one length for each kind, so that the parts cannot run together
	h.Write(kept)
	h.Write([]byte(s))

	var m [32]byte
	h.Sum(m[:0])

	return m
}

// has reports whether the secret was right within the life before now.
func (c *verifiedCache) has(
	s flex.Secret,
	kept []byte,
	now time.Time,
	life time.Duration,
) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.at[c.hash(s, kept)]
	return ok && now.Sub(at) < life
}

func (c *verifiedCache) add(s flex.Secret, kept []byte, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.hash(s, kept)
	if len(c.at) >= cacheMax {
		clear(c.at)
	}
	c.at[m] = now
}
