package access

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/keyring"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// The lives of tokens.
const (
	TokenLife          = time.Hour
	ComponentTokenLife = 24 * time.Hour
)

// tokenMark begins every token, so that one that has leaked is recognised.
const tokenMark = "flexd_"

// tokenLength is the length of a token's text: the mark and 32 bytes in base64url.
const tokenLength = len(tokenMark) + 43

// Service gives out tokens and reads them. Its zero value with a DB is ready; what it keeps in
// memory may be lost at any moment.
type Service struct {
	DB *store.DB
	// People is where operators are, with their sessions and views; nil for DB.
	People *store.DB
	// Elsewhere calls a function with each database of the other cells, in which usernames are to
	// be unlike those of DB, until one fails; nil if there are none. A cell that does not answer
	// is a failure.
	Elsewhere func(context.Context, func(*store.DB) error) error
	// Keys seal the challenges of passkeys; nil for none of these.
	Keys *keyring.Ring

	// SSO is the identity provider that operators can sign in at; nil for none.
	SSO *SingleSignOn
	// PasswordsShut lets no operator in by a password, and ends what passwords opened.
	PasswordsShut bool

	tokens   tokenCache
	verified verifiedCache
	brake    brake
	requests requestLog
	viewLog  viewLog
}

// Principal is who is asking.
type Principal struct {
	Org      flex.OrgID
	Username string
	Roles    []flex.Role
	// a component token's one site; zero for an organisation's token
	Site      flex.SiteID
	Origin    string // a component token's one web origin
	ExpiresAt time.Time
	// where the credential may be used; none for everywhere
	AllowFrom []netip.Prefix
	// where any of the organisation's may be; none for everywhere
	OrgFrom []netip.Prefix
	// fingerprints of the client certificates that the credential is bound to; none for none
	Certificates []string
}

// May reports whether the principal has the role.
func (p Principal) May(role flex.Role) bool {
	return slices.Contains(p.Roles, role)
}

// Component reports whether it is a component token's, which reaches one site alone.
func (p Principal) Component() bool { return !p.Site.IsZero() }

// Within returns a context in which only the principal's organisation can be found.
func (p Principal) Within(ctx context.Context) context.Context {
	return store.Within(ctx, []flex.OrgID{p.Org})
}

// people is the store that operators are in.
func (s *Service) people() *store.DB {
	if s.People != nil {
		return s.People
	}
	return s.DB
}

// Now is the instant by the true clock, which tokens end by.
func (s *Service) Now() time.Time { return s.DB.Now() }

// Ready reports whether the database answers, without which nobody is identified.
func (s *Service) Ready(ctx context.Context) error { return s.DB.Ping(ctx) }

// Issued is a token as it is handed out, once.
type Issued struct {
	Token     flex.Secret
	ExpiresAt time.Time
}

// Identify returns whom a token speaks for. An unknown token and an expired one are the
// same failure, Unauthorized.
func (s *Service) Identify(
	ctx context.Context,
	token flex.Secret,
) (Principal, error) {
	if len(token) != tokenLength ||
		string(token[:len(tokenMark)]) != tokenMark {
		return Principal{}, errToken
	}

	hash, now := sha256.Sum256([]byte(token)), s.DB.Now()
	p, known := s.tokens.get(hash, now)
	if !known {
		var err error
		p, err = s.lookUpToken(ctx, hash)
		if err != nil {
			return Principal{}, err
		}
		s.tokens.put(hash, p, now)
	}

	if !now.Before(p.ExpiresAt) {
		return Principal{}, errToken
	}

	return p, nil
}

// lookUpToken reads from the database whom a token speaks for.
func (s *Service) lookUpToken(
	ctx context.Context,
	hash [sha256.Size]byte,
) (Principal, error) {
	var t store.Token
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		t, err = all.Token(ctx, hash)
		return err
	})

	if flex.KindOf(err) == flex.NotFound {
		return Principal{}, errToken
	}

	if err != nil {
		return Principal{}, fmt.Errorf("look up a token: %w", err)
	}

	p := Principal{
		Org:       t.Org,
		Username:  t.Username,
		Roles:     t.Roles,
		Site:      t.Site,
		Origin:    t.Origin,
		ExpiresAt: t.ExpiresAt,
	}

	// A component token is used by its user's browser, wherever that is.
	if t.Site.IsZero() {
		p.OrgFrom = t.OrgFrom
		p.AllowFrom = t.AllowFrom
		p.Certificates = t.Certificates
	}

	return p, nil
}

var errToken = flex.Fail(
	flex.Unauthorized,
	"the token is not known or has expired: ask POST /auth/token-form for a new one",
)

// issue makes a token and keeps its hash in the transaction. The token ends with its credential, if that is sooner.
func issue(
	ctx context.Context,
	all *store.All,
	p Principal,
	life time.Duration,
) (Issued, error) {
	var random [32]byte
	crand.Read(random[:])
	token := tokenMark + base64.RawURLEncoding.EncodeToString(random[:])
	t := store.Token{
		Hash:      sha256.Sum256([]byte(token)),
		Org:       p.Org,
		Username:  p.Username,
		Roles:     p.Roles,
		Site:      p.Site,
		Origin:    p.Origin,
		ExpiresAt: all.Now().Add(life),
	}

	ends, err := all.AddToken(ctx, t)
	if err != nil {
		return Issued{}, fmt.Errorf("keep a token: %w", err)
	}

	return Issued{flex.Secret(token), ends}, nil
}

// Issue gives a token to a principal who has already been let in, for tools and tests that
// hold the store itself. The username must be one of the organisation's credentials.
func (s *Service) Issue(
	ctx context.Context,
	p Principal,
	life time.Duration,
) (Issued, error) {
	var t Issued
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		t, err = issue(ctx, all, p, life)
		return err
	})

	return t, err
}

// KnownOrigin reports whether a component token that is in force was made for the web origin.
func (s *Service) KnownOrigin(
	ctx context.Context,
	origin string,
) (bool, error) {
	var known bool
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		known, err = all.KnownOrigin(ctx, origin)
		return err
	})

	return known, err
}

// expiredMax is how many tokens, and how many of each else that expires, one transaction deletes.
const expiredMax = 5000

// PurgeExpired deletes what has expired: tokens and idempotency keys.
func (s *Service) PurgeExpired(ctx context.Context) (worker.Report, error) {
	var r worker.Report
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		n, more, err := all.DropExpired(ctx, expiredMax)
		r = worker.Report{Count: int(n), More: more}
		return err
	})

	return r, err
}
