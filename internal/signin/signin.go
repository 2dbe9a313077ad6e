package signin

import (
	"context"
	"crypto/hkdf"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"flexd/internal/egress"
	"flexd/internal/flex"
)

// Settings say which provider is asked, and as whom.
type Settings struct {
	Issuer       string      // the provider's URL, as its tokens name it
	ClientID     string      // flexd's name with the provider
	ClientSecret flex.Secret // empty for a client without one
	Redirect     string      // where browsers come back to
	Scopes       []string    // asked for beside openid
	NameClaim    string      // the claim that has the operator's name
	// the claim that has their groups; dots lead into objects
	GroupsClaim string

	Web *egress.Client
	Now func() time.Time // nil means the true clock
}

// discoveryLife is how long the provider's own description is believed. Its keys are asked for
// as soon as a token names an unknown one.
const discoveryLife = time.Hour

// failureLife is how long a provider that failed is not asked again, so that whoever begins
// sign-ins holds nobody up for long, and does not ask it on flexd's account.
const failureLife = 5 * time.Second

// Provider is an identity provider. It may be used by many at once. It is asked only when
// somebody signs in, so that flexd starts without it.
type Provider struct {
	settings Settings

	mu       sync.Mutex
	found    *found
	foundAt  time.Time
	failure  error // of the last time that it was asked
	failedAt time.Time
}

// found is what the provider says of itself.
type found struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	end      string // where a browser logs out, if anywhere
	namesIss bool   // whether its answers name the issuer, by RFC 9207
}

// New returns the provider of the settings.
func New(s Settings) *Provider {
	if s.Now == nil {
		s.Now = time.Now
	}
	return &Provider{settings: s}
}

// Issuer is the provider's URL.
func (p *Provider) Issuer() string { return p.settings.Issuer }

// ask returns the context of requests to the provider.
func (p *Provider) ask(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.settings.Web.HTTP())
}

// discover returns what the provider says of itself, from memory for a while.
func (p *Provider) discover(ctx context.Context) (*found, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	now := p.settings.Now()
	if p.found != nil && now.Sub(p.foundAt) < discoveryLife {
		return p.found, nil
	}

	if p.failure != nil && now.Sub(p.failedAt) < failureLife {
		return nil, p.failure
	}

	// It may have taken longer to fail than a failure is remembered: whoever waits meanwhile is not to ask again.
	p.found, p.failure = p.describe(ctx)
	p.foundAt = now
	p.failedAt = p.settings.Now()

	return p.found, p.failure
}

// describe asks the provider what it says of itself.
func (p *Provider) describe(ctx context.Context) (*found, error) {
	ctx = context.WithoutCancel(
		ctx,
	) // others wait for the answer, too; the client's own limit ends it

	provider, err := oidc.NewProvider(p.ask(ctx), p.settings.Issuer)
	if err != nil {
		return nil, errors.Join(
			flex.Fail(
				flex.Unavailable,
				"the identity provider does not answer as one: try again, or look into the log",
			),
			err,
		)
	}

	var more struct {
		End      string `json:"end_session_endpoint"`
		NamesIss bool   `json:"authorization_response_iss_parameter_supported"`
	}

	if err := provider.Claims(&more); err != nil {
		return nil, fmt.Errorf(
			"read the identity provider's description: %w",
			err,
		)
	}

	verifier := provider.VerifierContext(p.ask(ctx), &oidc.Config{
		ClientID: p.settings.ClientID,
		Now:      p.settings.Now,
	})

	return &found{
		provider: provider,
		verifier: verifier,
		end:      more.End,
		namesIss: more.NamesIss,
	}, nil
}

// client is flexd as the provider knows it.
func (p *Provider) client(f *found) *oauth2.Config {
	return &oauth2.Config{
		ClientID:     p.settings.ClientID,
		ClientSecret: p.settings.ClientSecret.Reveal(),
		Endpoint:     f.provider.Endpoint(),
		RedirectURL:  p.settings.Redirect,
		Scopes:       append([]string{oidc.ScopeOpenID}, p.settings.Scopes...),
	}
}

// Attempt is one browser's way to the provider and back: 256 random bits that the browser alone
// keeps. State, nonce and the verifier of PKCE are made from them, so that an answer is of use
// to that browser alone.
type Attempt flex.Secret

// NewAttempt begins one.
func NewAttempt() Attempt {
	var random [32]byte
	crand.Read(random[:])
	return Attempt(base64.RawURLEncoding.EncodeToString(random[:]))
}

func (a Attempt) derive(what string) string {
	key, err := hkdf.Key(
		sha256.New,
		[]byte(a),
		nil,
		"flexd sign-in "+what,
		sha256.Size,
	)
	if err != nil {
		panic(err) // the length is one that HKDF gives
	}

	return base64.RawURLEncoding.EncodeToString(key)
}

// Address is where the browser goes to sign in. With again the provider has the person show
// again who they are, however lately they did.
func (p *Provider) Address(
	ctx context.Context,
	a Attempt,
	again bool,
) (string, error) {
	f, err := p.discover(ctx)
	if err != nil {
		return "", err
	}

	options := []oauth2.AuthCodeOption{
		oidc.Nonce(a.derive("nonce")),
		oauth2.S256ChallengeOption(a.derive("verifier")),
	}

	if again {
		options = append(
			options,
			oauth2.SetAuthURLParam("prompt", "login"),
			oauth2.SetAuthURLParam("max_age", "0"),
		)
	}

	return p.client(f).AuthCodeURL(a.derive("state"), options...), nil
}

// EndAddress is where a browser logs out at the provider, and from where it comes back; "" if
// the provider has no such page, or does not answer.
func (p *Provider) EndAddress(ctx context.Context, back string) string {
	f, err := p.discover(ctx)
	if err != nil || f.end == "" {
		return ""
	}

	return withQuery(
		f.end,
		"client_id",
		p.settings.ClientID,
		"post_logout_redirect_uri",
		back,
	)
}

// Answer is what the browser comes back with.
type Answer struct{ State, Code, Issuer, Fault string }

// Person is who signed in.
type Person struct {
	Subject string // of the issuer's; never given to another
	Name    string
	Groups  []string

	// when they last showed the provider who they are; zero if it does not say
	AuthenticatedAt time.Time
	// SHA-256 of the token's nonce, by which it is taken once
	Nonce     [32]byte
	ExpiresAt time.Time // when the token is of no use any more
}

var errAttempt = flex.Fail(
	flex.Unauthorized,
	"this sign-in was not begun in this browser, or is over: begin again",
)

// refused is what is shown of an answer that is not taken; why is in the log.
func refused(why error) error {
	return errors.Join(
		flex.Fail(
			flex.Unauthorized,
			"the identity provider's answer was not taken: begin again; if it stays so, the log says why",
		),
		why,
	)
}

// Person takes the provider's answer to the attempt, and returns who signed in. What is not
// right about the answer is Unauthorized.
func (p *Provider) Person(
	ctx context.Context,
	a Attempt,
	answer Answer,
) (Person, error) {
	if a == "" ||
		subtle.ConstantTimeCompare(
			[]byte(answer.State),
			[]byte(a.derive("state")),
		) != 1 {
		return Person{}, errAttempt
	}

	f, err := p.discover(ctx)
	if err != nil {
		return Person{}, err
	}

	// Another provider's answer is not sent to this one (RFC 9207).
	if answer.Issuer != p.settings.Issuer &&
		(answer.Issuer != "" || f.namesIss) {
		return Person{}, refused(fmt.Errorf(
			"the answer names the issuer %q, not %q",
			answer.Issuer,
			p.settings.Issuer,
		))
	}

	if answer.Fault != "" {
		return Person{}, flex.Fail(
			flex.Unauthorized,
			"the identity provider let nobody in: %.100q",
			answer.Fault,
		)
	}

	tokens, err := p.client(f).Exchange(
		p.ask(ctx),
		answer.Code,
		oauth2.VerifierOption(a.derive("verifier")),
	)
	if err != nil {
		return Person{}, refused(fmt.Errorf("exchange the code: %w", err))
	}

	raw, _ := tokens.Extra("id_token").(string)
	token, err := f.verifier.Verify(ctx, raw)
	if err != nil {
		return Person{}, refused(err)
	}

	return p.read(ctx, f, a, token, tokens)
}

// checkNonce fails if the token was not made for this attempt.
func (a Attempt) checkNonce(token *oidc.IDToken) error {
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(a.derive("nonce"))) == 1 {
		return nil
	}

	return refused(errors.New(
		"the token was made for another sign-in: its nonce is not this one's",
	))
}

// read takes the person from a token whose signature, issuer, audience and time are right.
func (p *Provider) read(
	ctx context.Context,
	f *found,
	a Attempt,
	token *oidc.IDToken,
	tokens *oauth2.Token,
) (Person, error) {
	if err := a.checkNonce(token); err != nil {
		return Person{}, err
	}

	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return Person{}, refused(fmt.Errorf("read the token's claims: %w", err))
	}

	if !p.madeForUs(claims, token.Audience) {
		return Person{}, refused(fmt.Errorf(
			"the token was made for %v (azp %v), not for this client alone",
			token.Audience,
			claims["azp"],
		))
	}

	person := Person{
		Subject:   token.Subject,
		Nonce:     sha256.Sum256([]byte(token.Nonce)),
		ExpiresAt: token.Expiry,
	}

	if seconds, ok := claims["auth_time"].(float64); ok {
		person.AuthenticatedAt = time.Unix(int64(seconds), 0)
	}

	_, named := claimOf(claims, p.settings.NameClaim)
	_, grouped := claimOf(claims, p.settings.GroupsClaim)
	whole := named && grouped
	if !whole && f.provider.UserInfoEndpoint() != "" {
		err := p.askMore(ctx, f, tokens, token.Subject, claims)
		if err != nil {
			return Person{}, err
		}
	}

	person.describe(claims, p.settings)

	return person, nil
}

// madeForUs reports whether a token whose audience has this client is for it: the authorized
// party says so where there is one, and must where the audience has others.
func (p *Provider) madeForUs(claims map[string]any, audience []string) bool {
	party, named := claims["azp"]
	if named {
		return party == p.settings.ClientID
	}

	return len(audience) == 1
}

// describe reads the person's name and groups.
func (p *Person) describe(claims map[string]any, s Settings) {
	name, _ := claimOf(claims, s.NameClaim)
	p.Name, _ = name.(string)
	groups, _ := claimOf(claims, s.GroupsClaim)
	p.Groups = textsOf(groups)
}

// askMore adds what the provider says of the person at its userinfo endpoint alone.
func (p *Provider) askMore(
	ctx context.Context,
	f *found,
	tokens *oauth2.Token,
	subject string,
	claims map[string]any,
) error {
	info, err := f.provider.UserInfo(
		p.ask(ctx),
		oauth2.StaticTokenSource(tokens),
	)
	if err != nil {
		return refused(fmt.Errorf("ask for the person's name and groups: %w", err))
	}

	if info.Subject != subject {
		return refused(errors.New("userinfo speaks of somebody else than the token"))
	}

	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return refused(fmt.Errorf("read what userinfo says: %w", err))
	}

	for name, value := range more {
		if _, there := claims[name]; !there {
			claims[name] = value
		}
	}

	return nil
}

// claimOf finds a claim by its name, or by the names that lead to it, with dots.
func claimOf(claims map[string]any, name string) (any, bool) {
	if value, there := claims[name]; there {
		return value, true
	}

	first, rest, dotted := strings.Cut(name, ".")
	inner, nested := claims[first].(map[string]any)
	if !dotted || !nested {
		return nil, false
	}

	return claimOf(inner, rest)
}

// textsOf reads a claim that is a text or a list of texts.
func textsOf(value any) []string {
	if text, ok := value.(string); ok {
		return []string{text}
	}

	list, _ := value.([]any)

	var texts []string
	for _, v := range list {
		if text, ok := v.(string); ok && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}

	return texts
}
