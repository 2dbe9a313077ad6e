package access

import (
	"bytes"
	"context"
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"flexd/internal/flex"
	"flexd/internal/keyring"
	"flexd/internal/store"
)

// A passkey (WebAuthn Level 3) lets an operator in without a password: the device asks for a
// finger, a face or a PIN, and signs a challenge for this site alone. A challenge is sealed under the key file,
// so that asking for one keeps nothing: it says until when it holds and what it is for, and
// each is taken once.
const (
	// PasskeysMax is how many passkeys an operator may have.
	PasskeysMax = 20
	// PasskeyNameMax is the longest name of one, in bytes.
	PasskeyNameMax = 64
	// PasskeyWait is how long a challenge holds.
	PasskeyWait = 5 * time.Minute
)

// What a challenge is for; an operator's id or a session's hash follows.
const (
	forLogin   = "log in\n"
	forEnrol   = "enrol\n"
	forConfirm = "confirm\n"
)

var (
	errPasskey = flex.Fail(
		flex.Unauthorized,
		"That passkey was not taken: begin again, or use your password",
	)
	errPasskeyPlace = flex.Fail(
		flex.Unavailable,
		"passkeys take a name under TLS, or localhost: set --base-url, and a key file",
	)
)

// PasskeySite is the site that passkeys are for: the origin that browsers name.
type PasskeySite string

// relyingParty is the site as the standard's software knows it. Browsers give passkeys to names
// under TLS and to localhost alone.
func (s *Service) relyingParty(site PasskeySite) (*webauthn.WebAuthn, error) {
	u, err := url.Parse(string(site))
	if err != nil || u.Hostname() == "" || s.Keys == nil {
		return nil, errPasskeyPlace
	}

	_, notAddress := netip.ParseAddr(u.Hostname())
	if notAddress == nil || u.Scheme != "https" && u.Hostname() != "localhost" {
		return nil, errPasskeyPlace
	}

	return webauthn.New(&webauthn.Config{
		RPID:          u.Hostname(),
		RPDisplayName: "flexd",
		RPOrigins:     []string{u.Scheme + "://" + u.Host},
	})
}

// HasPasskeys reports whether passkeys can be used at the site.
func (s *Service) HasPasskeys(site PasskeySite) bool {
	_, err := s.relyingParty(site)
	return err == nil
}

// passkeyUser is an operator as the standard's software knows them.
type passkeyUser struct {
	id   flex.OperatorID
	name string
	keys []store.Passkey
}

// WebAuthnID is how authenticators know the operator: by an id that says nothing.
func (u passkeyUser) WebAuthnID() []byte { return u.id.Bytes() }

// WebAuthnName is how authenticators name the operator.
func (u passkeyUser) WebAuthnName() string { return u.name }

// WebAuthnDisplayName is the same.
func (u passkeyUser) WebAuthnDisplayName() string { return u.name }

// WebAuthnCredentials are the operator's passkeys.
func (u passkeyUser) WebAuthnCredentials() []webauthn.Credential {
	var cs []webauthn.Credential
	for _, k := range u.keys {
		cs = append(cs, webauthn.Credential{
			ID:        k.ID,
			PublicKey: k.PublicKey,
			Flags: webauthn.CredentialFlags{
				UserPresent:    true,
				UserVerified:   true,
				BackupEligible: k.Synced,
			},
			Authenticator: webauthn.Authenticator{SignCount: k.SignCount},
		})
	}

	return cs
}

// challengeAbout is what challenges are sealed as.
var challengeAbout = keyring.About{Purpose: "passkey challenge"}

// newChallenge makes a challenge for a purpose.
func (s *Service) newChallenge(purpose string) ([]byte, error) {
	digest := sha256.Sum256([]byte(purpose))
	plain := binary.BigEndian.AppendUint64(
		digest[:],
		uint64(s.DB.Now().Add(PasskeyWait).Unix()),
	)

	return s.Keys.Seal(crand.Reader, challengeAbout, plain)
}

// takeChallenge checks that a challenge was made for the purpose and holds, and uses it up.
func (s *Service) takeChallenge(
	ctx context.Context,
	challenge []byte,
	purpose string,
) error {
	digest := sha256.Sum256([]byte(purpose))

	plain, err := s.Keys.Open(challengeAbout, challenge)
	if err != nil || len(plain) != len(digest)+8 || !hmac.Equal(plain[:len(digest)], digest[:]) {
		return errPasskey
	}

	until := time.Unix(int64(binary.BigEndian.Uint64(plain[len(digest):])), 0)
	if !s.DB.Now().Before(until) {
		return errPasskey
	}

	fresh := false
	err = s.people().WriteAll(ctx, func(all *store.All) error {
		var err error
		fresh, err = all.TakeSignIn(ctx, sha256.Sum256(challenge), until)
		return err
	})
	if err == nil && !fresh {
		err = errPasskey
	}

	return err
}

// BeginPasskey returns what the browser is to make a passkey of, as JSON.
func (s *Service) BeginPasskey(
	ctx context.Context,
	who Operator,
	site PasskeySite,
) (json.RawMessage, error) {
	party, err := s.relyingParty(site)
	if err != nil {
		return nil, err
	}
	if who.SSO {
		return nil, flex.Fail(
			flex.Conflict,
			"you sign in at the identity provider: set up a passkey there",
		)
	}

	user, err := s.passkeyUser(ctx, who.ID)
	if err != nil {
		return nil, err
	}
	if len(user.keys) >= PasskeysMax {
		return nil, flex.Fail(
			flex.Conflict,
			"you have %d passkeys, and more are not kept: remove one first",
			PasskeysMax,
		)
	}

	made, _, err := party.BeginRegistration(
		user,
		webauthn.WithResidentKeyRequirement(protocol.ResidentKeyRequirementRequired),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			ResidentKey:        protocol.ResidentKeyRequirementRequired,
			RequireResidentKey: new(true),
			UserVerification:   protocol.VerificationRequired,
		}),
		webauthn.WithExclusions(webauthn.Credentials(user.WebAuthnCredentials()).CredentialDescriptors()),
	)
	if err != nil {
		return nil, fmt.Errorf("begin a passkey: %w", err)
	}

	made.Response.Challenge, err = s.newChallenge(forEnrol + who.ID.String())
	if err != nil {
		return nil, err
	}

	return json.Marshal(made)
}

// AddPasskey keeps the passkey that the browser made, under a name. What is none, or is not of what
// BeginPasskey gave, is Unauthorized.
func (s *Service) AddPasskey(
	ctx context.Context,
	who Operator,
	site PasskeySite,
	name, made string,
) error {
	name = strings.TrimSpace(name)
	if name == "" || len(name) > PasskeyNameMax {
		return flex.Fail(
			flex.Malformed,
			"a passkey has a name of 1 to %d bytes, by which you will know it",
			PasskeyNameMax,
		)
	}

	party, err := s.relyingParty(site)
	if err != nil {
		return err
	}

	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(made))
	if err != nil {
		return errPasskey
	}

	challenge, session := ceremonyOf(parsed.Response.CollectedClientData)
	if err := s.takeChallenge(ctx, challenge, forEnrol+who.ID.String()); err != nil {
		return err
	}
	session.UserID = who.ID.Bytes()
	session.CredParams = webauthn.CredentialParametersDefault()

	c, err := party.CreateCredential(passkeyUser{id: who.ID, name: who.Name}, session, parsed)
	if err != nil {
		return errPasskey
	}

	return s.keepPasskey(ctx, who, store.Passkey{
		ID:        c.ID,
		Operator:  who.ID,
		Name:      name,
		PublicKey: c.PublicKey,
		SignCount: c.Authenticator.SignCount,
		Synced:    c.Flags.BackupEligible,
	})
}

// keepPasskey keeps a new passkey of an operator who is logged in, if they have not too many. The lock has those that are made at once
// counted one after the other.
func (s *Service) keepPasskey(
	ctx context.Context,
	who Operator,
	p store.Passkey,
) error {
	return s.people().WriteAll(ctx, func(all *store.All) error {
		if err := who.lock(ctx, all); err != nil {
			return err
		}

		keys, err := all.Passkeys(ctx, p.Operator)
		if err != nil {
			return err
		}
		if len(keys) >= PasskeysMax {
			return flex.Fail(flex.Conflict, "%d passkeys are kept at most", PasskeysMax)
		}

		return all.AddPasskey(ctx, p)
	})
}

// ceremonyOf is what the browser was given, by the challenge that it names, which is to be checked.
func ceremonyOf(c protocol.CollectedClientData) ([]byte, webauthn.SessionData) {
	challenge, err := base64.RawURLEncoding.DecodeString(c.Challenge)
	if err != nil {
		challenge = nil
	}

	return challenge, webauthn.SessionData{
		Challenge:        c.Challenge,
		UserVerification: protocol.VerificationRequired,
	}
}

// PasskeyLogin returns what a browser is to sign to log in with a passkey, as JSON; nil where
// passkeys cannot be used.
func (s *Service) PasskeyLogin(site PasskeySite) (json.RawMessage, error) {
	return s.askPasskey(site, forLogin)
}

// PasskeyConfirmation returns what a browser is to sign for an operator who is logged in to show again
// who they are, as JSON; nil if they have no passkey.
func (s *Service) PasskeyConfirmation(
	ctx context.Context,
	who Operator,
	token flex.Secret,
	site PasskeySite,
) (json.RawMessage, error) {
	keys, err := s.PasskeysOf(ctx, who.ID)
	if err != nil || len(keys) == 0 {
		return nil, err
	}

	return s.askPasskey(site, confirmationOf(token))
}

func confirmationOf(token flex.Secret) string {
	hash := SessionHash(token)
	return forConfirm + string(hash[:])
}

func (s *Service) askPasskey(site PasskeySite, purpose string) (json.RawMessage, error) {
	party, err := s.relyingParty(site)
	if errors.Is(err, errPasskeyPlace) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	asked, _, err := party.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("ask for a passkey: %w", err)
	}

	asked.Response.Challenge, err = s.newChallenge(purpose)
	if err != nil {
		return nil, err
	}

	return json.Marshal(asked)
}

// LoginOperatorPasskey opens a session for the operator whose passkey signed. It is two factors by
// itself, the device and what unlocks it, so no code is asked for. One that is not right is
// Unauthorized and in the audit log; after too many the failure is a *Wait.
func (s *Service) LoginOperatorPasskey(
	ctx context.Context,
	site PasskeySite,
	signed, from string,
) (Issued, error) {
	if s.PasswordsShut {
		return Issued{}, errPasswordsShut
	}

	undo, err := s.brake.attempt("operator\x00passkey", from, s.DB.Now())
	if err != nil {
		return Issued{}, err
	}

	o, err := s.checkPasskey(ctx, site, forLogin, signed)
	if err == nil {
		undo()
		return s.openSession(ctx, o, from, s.confirmedNow)
	}
	if !errors.Is(err, errPasskey) {
		undo()
		return Issued{}, err
	}

	attempt := flex.AuditEntry{
		Who:    UnknownOperator,
		Source: from,
		Act:    "log in with a passkey",
	}

	return Issued{}, s.Act(ctx, attempt, func() error { return errPasskey })
}

// ConfirmOperatorPasskey is ConfirmOperator by a passkey of the operator's own. Another one, or one that
// is not right, is Unauthorized and in the audit log.
func (s *Service) ConfirmOperatorPasskey(
	ctx context.Context,
	token flex.Secret,
	site PasskeySite,
	signed, from string,
) error {
	who, err := s.IdentifyOperator(ctx, token)
	if err != nil {
		return err
	}

	undo, err := s.brake.attempt("operator\x00"+who.Name, from, s.DB.Now())
	if err != nil {
		return err
	}

	o, err := s.checkPasskey(ctx, site, confirmationOf(token), signed)
	if err == nil && o.ID != who.ID {
		err = errPasskey
	}

	if errors.Is(err, errPasskey) {
		return s.notConfirmed(ctx, who, from, errPasskey)
	}

	undo()
	if err != nil {
		return err
	}

	return s.people().WriteAll(ctx, func(all *store.All) error {
		return all.ConfirmOperatorSession(ctx, SessionHash(token))
	})
}

// checkPasskey returns whose passkey signed a challenge for the purpose, and is errPasskey otherwise.
func (s *Service) checkPasskey(
	ctx context.Context,
	site PasskeySite,
	purpose, signed string,
) (store.Operator, error) {
	party, err := s.relyingParty(site)
	if err != nil {
		return store.Operator{}, err
	}

	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(signed))
	if err != nil {
		return store.Operator{}, errPasskey
	}

	challenge, session := ceremonyOf(parsed.Response.CollectedClientData)
	if err := s.takeChallenge(ctx, challenge, purpose); err != nil {
		return store.Operator{}, err
	}

	// The library's error for a failed read looks like that for a wrong signature, so it is kept apart.
	var failed error
	var key store.Passkey
	var o store.Operator
	_, c, err := party.ValidatePasskeyLogin(func(id, handle []byte) (webauthn.User, error) {
		var user passkeyUser
		o, user, failed = s.operatorOfHandle(ctx, handle)
		key = user.key(id)

		return user, failed
	}, session, parsed)

	if failed != nil {
		return o, failed
	}
	if err != nil || c.Authenticator.CloneWarning || o.Issuer != "" {
		return o, errPasskey
	}

	return o, s.usePasskey(ctx, key, c.Authenticator.SignCount)
}

// usePasskey keeps that a passkey signed, and is errPasskey if it did so meanwhile elsewhere.
func (s *Service) usePasskey(
	ctx context.Context,
	key store.Passkey,
	count uint32,
) error {
	return s.people().WriteAll(ctx, func(all *store.All) error {
		used, err := all.UsePasskey(ctx, key.ID, key.SignCount, count)
		if err == nil && !used {
			err = errPasskey
		}

		return err
	})
}

func (u passkeyUser) key(id []byte) store.Passkey {
	at := slices.IndexFunc(u.keys, func(k store.Passkey) bool { return bytes.Equal(k.ID, id) })
	if at < 0 {
		return store.Passkey{}
	}

	return u.keys[at]
}

// operatorOfHandle returns the operator whom an authenticator names, and is errPasskey if there is none.
func (s *Service) operatorOfHandle(
	ctx context.Context,
	handle []byte,
) (store.Operator, passkeyUser, error) {
	var id flex.OperatorID
	if err := id.Scan(handle); err != nil || id.IsZero() {
		return store.Operator{}, passkeyUser{}, errPasskey
	}

	var (
		o    store.Operator
		user passkeyUser
	)

	err := s.people().ReadAll(ctx, func(all *store.All) error {
		var err error
		o, err = all.OperatorByID(ctx, id)
		if err != nil {
			return err
		}

		user.keys, err = all.Passkeys(ctx, id)
		return err
	})
	if flex.KindOf(err) == flex.NotFound {
		err = errPasskey
	}

	user.id, user.name = o.ID, o.Name

	return o, user, err
}

func (s *Service) passkeyUser(ctx context.Context, id flex.OperatorID) (passkeyUser, error) {
	_, user, err := s.operatorOfHandle(ctx, id.Bytes())
	return user, err
}

// Passkey is what an operator sees of a passkey.
type Passkey struct {
	ID     string    `json:"passkey_id"` // base64url
	Name   string    `json:"name"`
	Synced bool      `json:"synced"` // whether it may be on several devices
	MadeAt time.Time `json:"made_at"`
	UsedAt time.Time `json:"used_at,omitzero"`
}

// PasskeysOf returns an operator's passkeys, oldest first.
func (s *Service) PasskeysOf(ctx context.Context, id flex.OperatorID) ([]Passkey, error) {
	var shown []Passkey
	err := s.people().ReadAll(ctx, func(all *store.All) error {
		keys, err := all.Passkeys(ctx, id)
		for _, k := range keys {
			shown = append(shown, Passkey{
				ID:     base64.RawURLEncoding.EncodeToString(k.ID),
				Name:   k.Name,
				Synced: k.Synced,
				MadeAt: k.MadeAt,
				UsedAt: k.UsedAt,
			})
		}

		return err
	})

	return shown, err
}

// RemovePasskey deletes a passkey of the operator's.
func (s *Service) RemovePasskey(
	ctx context.Context,
	who Operator,
	id string,
) error {
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(raw) == 0 {
		return flex.Fail(flex.NotFound, "there is no such passkey of yours")
	}

	return s.people().WriteAll(ctx, func(all *store.All) error {
		n, err := all.RemovePasskey(ctx, who.ID, raw)
		if err == nil && n == 0 {
			err = flex.Fail(flex.NotFound, "there is no such passkey of yours")
		}

		return err
	})
}
