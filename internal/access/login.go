package access

import (
	"context"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/store"
)

var errLogin = flex.Fail(flex.Unauthorized, "Incorrect username or password")

// Login exchanges a name and a secret for a token of an hour. An unknown name and a wrong
// secret are the same failure after the same work. After too many failures the failure is a
// *Wait; from says where the attempt came from.
func (d *Service) Login(ctx context.Context, name string, secret flex.Secret, from string) (Issued, error) {
	if len(name) > MaxUsername {
		return Issued{}, errLogin // nobody has such a name
	}

	now := d.DB.Now()
	undo, err := d.brake.attempt(name, from, now)
	if err != nil {
		return Issued{}, err
	}

	var c store.Credential
	err = d.DB.ReadAll(ctx, func(all *store.All) (err error) {
		c, err = all.CredentialNamed(ctx, name)
		return err
	})
	if err != nil && flex.KindOf(err) != flex.NotFound {
		undo()
		return Issued{}, fmt.Errorf("look up a credential: %w", err)
	}

	if !c.RevokedAt.IsZero() {
		c.SecretHash = nil
	}

	if c.SecretHash == nil || !d.verified.has(secret, c.SecretHash, now, TokenLife) {
		if err := credentialTurns.judge(ctx, secret, c.SecretHash, from, undo); err != nil {
			return Issued{}, err
		}
		d.verified.add(secret, c.SecretHash, now)
	}

	undo()
	return d.Issue(ctx, Principal{Org: c.Org, Username: c.Username, Roles: c.Roles}, TokenLife)
}

// judge fails with errLogin if the secret is not the one that is kept. A guess that could not
// be judged is taken back with undo. One that is too long to be anybody's is counted.
func (t *turns) judge(ctx context.Context, secret flex.Secret, kept []byte, from string, undo func()) error {
	if len(secret) > MaxSecret {
		return errLogin
	}

	right, err := t.verify(ctx, secret, kept, from)
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
func (d *Service) AddOrg(ctx context.Context, name, username string, password flex.Secret) (o flex.Org, _ flex.Secret, err error) {
	if name == "" || len(name) > MaxUsername {
		return o, "", flex.Fail(flex.Malformed, "an organisation's name has 1 to %d bytes", MaxUsername)
	}

	kept, password, err := keep(username, password)
	if err != nil {
		return o, "", err
	}

	err = d.DB.WriteAll(ctx, func(all *store.All) error {
		o, err = all.AddOrg(ctx, name)
		if err != nil {
			return err
		}
		return all.AddCredential(ctx, store.Credential{Username: username, Org: o.ID, SecretHash: kept, Roles: flex.Roles})
	})
	return o, password, err
}

// AddCredential gives an organisation a further credential, with the roles alone.
func (d *Service) AddCredential(ctx context.Context, org flex.OrgID, username string, password flex.Secret, roles []flex.Role) (flex.Secret, error) {
	kept, password, err := keep(username, password)
	if err != nil {
		return "", err
	}
	return password, d.DB.WriteAll(ctx, func(all *store.All) error {
		return all.AddCredential(ctx, store.Credential{Username: username, Org: org, SecretHash: kept, Roles: roles})
	})
}

// Revoke ends a credential and the tokens given to it: at once in this process, in others
// within seconds.
func (d *Service) Revoke(ctx context.Context, username string) error {
	err := d.DB.WriteAll(ctx, func(all *store.All) error {
		ended, err := all.RevokeCredential(ctx, username)
		if err == nil && !ended {
			return flex.Fail(flex.NotFound, "no credential is named %q", username)
		}
		return err
	})

	d.tokens.clear()
	return err
}

// keep checks a username and a password, makes the password if there is none, and returns
// what is to be stored.
func keep(username string, password flex.Secret) ([]byte, flex.Secret, error) {
	if len(username) < MinUsername || len(username) > MaxUsername {
		return nil, "", flex.Fail(flex.Malformed, "a username has %d to %d bytes", MinUsername, MaxUsername)
	}

	if password == "" {
		made, kept := makeSecret()
		return kept, made, nil
	}

	if len(password) < MinSecret || len(password) > MaxSecret {
		return nil, "", flex.Fail(flex.Malformed, "a password has %d to %d bytes; leave it out to have a strong one made", MinSecret, MaxSecret)
	}

	return hashChosen(password), password, nil
}
