package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

var errLogin = flex.Fail(flex.Unauthorized, "Incorrect username or password")

// Login exchanges a name and a secret for a token of an hour. An unknown name and a wrong
// secret are the same failure after the same work. After too many failures the failure is a
// *Wait; from says where the attempt came from.
func (s *Service) Login(
	ctx context.Context,
	name string,
	secret flex.Secret,
	from string,
) (Issued, error) {
	return s.LoginWithin(ctx, name, secret, from, nil)
}

// ErrScope is the failure of a login that asks for a role that its credential does not have.
var ErrScope = flex.Fail(
	flex.Invalid,
	"the credential has not all of these roles",
)

// LoginWithin is Login for a token with only these of the credential's roles, or with all if there are none. It fails with
// ErrScope if the credential does not have one of them.
func (s *Service) LoginWithin(
	ctx context.Context,
	name string,
	secret flex.Secret,
	from string,
	roles []flex.Role,
) (Issued, error) {
	if len(name) > MaxUsername {
		return Issued{}, errLogin // nobody has such a name
	}

	now := s.DB.Now()
	undo, err := s.brake.attempt(name, from, now)
	if err != nil {
		return Issued{}, err
	}

	var c store.Credential
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		c, err = all.CredentialNamed(ctx, name)
		return err
	})
	if err != nil && flex.KindOf(err) != flex.NotFound {
		undo()
		return Issued{}, fmt.Errorf("look up a credential: %w", err)
	}

	kept := validHashes(c, now)
	err = s.checkCredential(ctx, secret, kept, from, now, undo)
	if err != nil {
		return Issued{}, err
	}

	undo()
	p, err := s.principalOf(ctx, c, from, roles)
	if err != nil {
		return Issued{}, err
	}

	return s.issueTo(ctx, c, p, now)
}

// principalOf returns whom a token of the credential speaks for, with only these roles unless there
// are none.
func (s *Service) principalOf(
	ctx context.Context,
	c store.Credential,
	from string,
	roles []flex.Role,
) (Principal, error) {
	p := Principal{
		Org:       c.Org,
		Username:  c.Username,
		Roles:     c.Roles,
		AllowFrom: c.AllowFrom,
		OrgFrom:   c.OrgFrom,

		Certificates: c.Certificates,
	}

	if err := s.Admit(ctx, p, from); err != nil {
		return p, err
	}

	for _, role := range roles {
		if !p.May(role) {
			return p, ErrScope
		}
	}

	if len(roles) > 0 {
		p.Roles = slices.Compact(slices.Sorted(slices.Values(roles)))
	}

	return p, nil
}

// validHashes returns the hashes of the secrets that a credential may be used with now: the newest and, for a
// while, the one before; none if the credential is revoked or has expired.
func validHashes(c store.Credential, now time.Time) [][]byte {
	expired := !c.ExpiresAt.IsZero() && !now.Before(c.ExpiresAt)
	if !c.RevokedAt.IsZero() || expired || c.SecretHash == nil {
		return nil
	}

	kept := [][]byte{c.SecretHash}
	if c.FormerHash != nil && now.Before(c.FormerUntil) {
		kept = append(kept, c.FormerHash)
	}

	return kept
}

// checkCredential fails with errLogin if the secret is none of those that are kept. If none are kept it
// does the same work, so that the time says nothing.
func (s *Service) checkCredential(
	ctx context.Context,
	secret flex.Secret,
	kept [][]byte,
	from string,
	now time.Time,
	undo func(),
) error {
	for _, hash := range kept {
		if s.verified.has(secret, hash, now, TokenLife) {
			return nil
		}
	}

	var err error

	for _, hash := range toCheck(secret, kept) {
		err = credentialGuesses.check(ctx, secret, hash, from, undo)
		if err == nil {
			s.verified.add(secret, hash, now)
			return nil
		}
		if !errors.Is(err, errLogin) {
			return err
		}
	}

	return err
}

// toCheck returns what a secret is checked against: the made one that it is, or else all chosen ones, or else nobody's (nil), which
// costs the same work as one. So that a name has a made secret before it costs no guess twice as much, and does not show.
func toCheck(secret flex.Secret, kept [][]byte) [][]byte {
	var chosen [][]byte
	for _, hash := range kept {
		if isMade(secret, hash) {
			return [][]byte{hash}
		}
		if bytes.HasPrefix(hash, []byte(chosenMark)) {
			chosen = append(chosen, hash)
		}
	}

	if len(chosen) == 0 {
		return [][]byte{nil}
	}

	return chosen
}

// issueTo gives a token to a credential, which the token never outlives.
func (s *Service) issueTo(
	ctx context.Context,
	c store.Credential,
	p Principal,
	now time.Time,
) (Issued, error) {
	life := TokenLife
	if !c.ExpiresAt.IsZero() {
		life = min(life, c.ExpiresAt.Sub(now))
	}

	var t Issued
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		if now.Sub(c.UsedAt) >= useNoted {
			if err := all.UseCredential(ctx, c.Username); err != nil {
				return err
			}
		}

		var err error
		t, err = issue(ctx, all, p, life)
		return err
	})

	return t, err
}

// check fails with errLogin if the secret is not the one that is kept. A guess that could not
// be checked is not counted: undo takes it back. One that is too long to be anybody's is counted.
func (q *guessQueue) check(
	ctx context.Context,
	secret flex.Secret,
	kept []byte,
	from string,
	undo func(),
) error {
	if len(secret) > MaxSecret {
		return errLogin
	}

	right, err := q.verify(ctx, secret, kept, from)
	if err != nil {
		undo()
		return err
	}

	if !right {
		return errLogin
	}

	return nil
}

// The bounds of a username in bytes.
const (
	MinUsername = 1
	MaxUsername = 128
)

// AddOrg makes an organisation with one credential that has every role. Without a password
// one is made; it is returned here and never again. A name or a username that is taken is a
// Conflict.
func (s *Service) AddOrg(
	ctx context.Context,
	name, username string,
	password flex.Secret,
) (flex.Org, flex.Secret, error) {
	if name == "" || len(name) > MaxUsername {
		return flex.Org{}, "", flex.Fail(
			flex.Malformed,
			"an organisation's name has 1 to %d bytes",
			MaxUsername,
		)
	}

	kept, password, err := newSecret(username, password)
	if err != nil {
		return flex.Org{}, "", err
	}

	if err := s.freeElsewhere(ctx, username, flex.OrgID{}); err != nil {
		return flex.Org{}, "", err
	}

	var o flex.Org
	err = s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		o, err = all.AddOrg(ctx, name)
		if err != nil {
			return err
		}
		return all.AddCredential(ctx, store.Credential{
			Username:   username,
			Org:        o.ID,
			SecretHash: kept,
			Roles:      flex.Roles,
		})
	})

	return o, password, err
}

// AddCredential gives an organisation a further credential with these roles, within the
// limits. The name of a revoked one of the organisation may be used again.
func (s *Service) AddCredential(
	ctx context.Context,
	org flex.OrgID,
	username string,
	password flex.Secret,
	roles []flex.Role,
	limits store.CredentialLimits,
) (flex.Secret, error) {
	if err := s.checkLimits(limits); err != nil {
		return "", err
	}

	kept, password, err := newSecret(username, password)
	if err != nil {
		return "", err
	}

	if err := s.freeElsewhere(ctx, username, org); err != nil {
		return "", err
	}

	return password, s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.AddCredential(ctx, store.Credential{
			Username:         username,
			Org:              org,
			SecretHash:       kept,
			Roles:            roles,
			CredentialLimits: limits,
		})
	})
}

// freeElsewhere fails if another organisation of another cell has the username: a login is sent to
// the first cell that knows it. An organisation that moves may be in two.
func (s *Service) freeElsewhere(
	ctx context.Context,
	username string,
	org flex.OrgID,
) error {
	if s.Elsewhere == nil {
		return nil
	}

	return s.Elsewhere(ctx, func(db *store.DB) error {
		return db.ReadAll(ctx, func(all *store.All) error {
			other, err := all.OrgOf(ctx, store.KeyCredential, username)
			if flex.KindOf(err) == flex.NotFound {
				return nil
			}

			if err == nil && other != org {
				return flex.Fail(
					flex.Conflict,
					"the username %s is that of an organisation in another cell: choose another",
					username,
				)
			}

			return err
		})
	})
}

// Revoke ends a credential and the tokens given to it: at once in this process, in others
// within seconds.
func (s *Service) Revoke(ctx context.Context, username string) error {
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		ended, err := all.RevokeCredential(ctx, username)
		if err == nil && !ended {
			return flex.Fail(
				flex.NotFound,
				"no credential is named %q",
				username,
			)
		}
		return err
	})

	s.tokens.clear()

	return err
}

// newSecret checks a username and a password, makes the password if there is none, and returns
// its hash and the password.
func newSecret(username string, password flex.Secret) ([]byte, flex.Secret, error) {
	if len(username) < MinUsername || len(username) > MaxUsername {
		return nil, "", flex.Fail(
			flex.Malformed,
			"a username has %d to %d bytes",
			MinUsername,
			MaxUsername,
		)
	}

	if password == "" {
		made, kept := makeSecret()
		return kept, made, nil
	}

	if len(password) < MinSecret || len(password) > MaxSecret {
		return nil, "", flex.Fail(
			flex.Malformed,
			"a password has %d to %d bytes; leave it out to have a strong one made",
			MinSecret,
			MaxSecret,
		)
	}

	return hashChosen(password), password, nil
}
