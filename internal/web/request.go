package web

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

// idMax is the longest id of a request that is taken from the client.
const idMax = 64

const idChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// RequestID is the client's own id for the request, if it has one that is fit to be shown
// and logged, or a new one.
func RequestID(r *http.Request) string {
	id := r.Header.Get("Request-Id")
	if id != "" && len(id) <= idMax && strings.Trim(id, idChars) == "" {
		return id
	}

	var b [12]byte
	rand.Read(b[:])

	return hex.EncodeToString(b[:])
}

// PolicyNothing is the content policy of what is no page: it may load nothing.
const PolicyNothing = "default-src 'none'; frame-ancestors 'none'"

// strictTransport has browsers use TLS alone for half a year.
const strictTransport = "max-age=15552000"

// SetHeaders sets what every answer carries, with the content policy that a page needs.
func SetHeaders(h http.Header, r *http.Request, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	// for browsers that do not know frame-ancestors
	h.Set("X-Frame-Options", "DENY")
	if HTTPS(r) {
		h.Set("Strict-Transport-Security", strictTransport)
	}
}

// AllowBody gives a client longer to send its body than every request has, once it is known
// who asks.
func AllowBody(w http.ResponseWriter, long time.Duration) {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(
		long,
	)) // refused by test recorders alone
}
