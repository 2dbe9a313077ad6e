package access

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// CertificatesMax is to how many client certificates a credential may be bound: each of a client's
// machines has its own, and while they are renewed two.
const CertificatesMax = 8

// fingerprintBytes is the length of a SHA-256.
const fingerprintBytes = 32

// ShownCertificate is the client certificate of a request, whose key the client has.
type ShownCertificate struct {
	Fingerprint string // SHA-256, in hexadecimal digits
	From        time.Time
	Until       time.Time
}

type shownKey struct{}

// Showing returns the context of a request that came with a client certificate.
func Showing(ctx context.Context, shown ShownCertificate) context.Context {
	return context.WithValue(ctx, shownKey{}, shown)
}

// admitCertificate fails with Unauthorized if the principal's credential is bound to certificates
// and the request came with none of them, or with one that does not hold now.
func (p Principal) admitCertificate(ctx context.Context, now time.Time) error {
	if len(p.Certificates) == 0 {
		return nil
	}

	shown, ok := ctx.Value(shownKey{}).(ShownCertificate)
	if !ok {
		return flex.Fail(
			flex.Unauthorized,
			"This credential may be used with its client certificate alone, and this request showed none: "+
				"show it when the TLS connection is made",
		)
	}

	if !slices.Contains(p.Certificates, shown.Fingerprint) {
		return flex.Fail(
			flex.Unauthorized,
			"This credential may be used with its client certificate alone: show that one, "+
				"or have the one with the SHA-256 fingerprint %s bound to it, too",
			shown.Fingerprint,
		)
	}

	if now.Before(shown.From) || now.After(shown.Until) {
		return flex.Fail(
			flex.Unauthorized,
			"The client certificate holds from %s to %s alone: show one that holds now, and have it bound to this credential",
			shown.From.UTC().Format(time.RFC3339),
			shown.Until.UTC().Format(time.RFC3339),
		)
	}

	return nil
}

// ParseFingerprint reads the SHA-256 fingerprint of a certificate: 64 hexadecimal digits, with or
// without colons between each two.
func ParseFingerprint(text string) (string, error) {
	digits := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(text), ":", ""))
	sum, err := hex.DecodeString(digits)
	if err != nil || len(sum) != fingerprintBytes {
		return "", flex.Fail(
			flex.Invalid,
			"%q is no SHA-256 fingerprint of a certificate: give 64 hexadecimal digits, as of "+
				"openssl x509 -noout -fingerprint -sha256 -in FILE",
			text,
		)
	}

	return digits, nil
}

// BindCredential replaces the client certificates without one of which a credential of the
// organisation's, and its tokens, are of no use: in this process at once, in others within seconds.
// Without any it is bound to none.
func (s *Service) BindCredential(
	ctx context.Context,
	org flex.OrgID,
	username string,
	fingerprints []string,
) error {
	bound := make([]string, 0, len(fingerprints))
	for _, text := range fingerprints {
		digits, err := ParseFingerprint(text)
		if err != nil {
			return err
		}

		bound = append(bound, digits)
	}

	slices.Sort(bound)
	bound = slices.Compact(bound)

	if len(bound) > CertificatesMax {
		return flex.Fail(
			flex.Invalid,
			"a credential is bound to %d certificates at most, not %d",
			CertificatesMax,
			len(bound),
		)
	}

	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		return foundCredential(username)(all.BindCredential(
			ctx,
			org,
			username,
			bound,
		))
	})

	s.tokens.clear()

	return err
}

// BoundTo says in the audit log what a credential is bound to.
func BoundTo(fingerprints []string) string {
	if len(fingerprints) == 0 {
		return "no certificate"
	}
	return "certificates " + strings.Join(fingerprints, ", ")
}
