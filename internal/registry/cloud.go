package registry

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Provider is a manufacturer's cloud that users can link to their site, by OAuth 2.0's
// authorisation code with PKCE.
type Provider struct {
	Name         string // as the interface writes it
	AuthorizeURL string
	TokenURL     string
	ClientID     string
	ClientSecret flex.Secret
	Scopes       []string
}

// The times of OAuth links and tokens.
const (
	linkLife   = 15 * time.Minute // for the user to authorise and return
	cloudLease = time.Minute      // for one exchange
	// after an exchange that failed and may be tried again
	cloudRetry   = 5 * time.Minute
	refreshEarly = 10 * time.Minute // before a token expires
	// of each kind in one run: one after the other they end within the lease, however slow the
	// clouds are, so that no other process does the same. A cloud that receives a code or a
	// token twice may revoke what it granted.
	cloudBatch = 1
)

// CloudToken is access to a manufacturer's cloud.
type CloudToken struct {
	Access    flex.Secret
	Refresh   flex.Secret
	Type      string
	ExpiresAt time.Time // zero if not known
}

// StartLink begins to link a provider's cloud to a site. It returns the address to which the
// user's browser is to be sent; the provider sends it back to redirect. A provider that is not
// configured is Malformed.
func (s *Service) StartLink(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	provider, redirect string,
) (string, error) {
	if _, err := s.Site(ctx, org, site); err != nil {
		return "", err
	}

	p, err := s.provider(provider)
	if err != nil {
		return "", err
	}

	to, err := url.Parse(p.AuthorizeURL)
	if err != nil {
		return "", fmt.Errorf("the authorise URL of %s: %w", p.Name, err)
	}

	state, verifier := randomText(), randomText()
	l := store.CloudLink{
		State:    sha256.Sum256([]byte(state)),
		Org:      org,
		Site:     site,
		Provider: p.Name,
		Redirect: redirect,
		Verifier: flex.Secret(verifier),
	}

	err = s.DB.WriteAll(ctx, func(all *store.All) error {
		l.ExpiresAt = all.Now().Add(linkLife)
		return all.AddCloudLink(ctx, l)
	})
	if err != nil {
		return "", fmt.Errorf("keep a link: %w", err)
	}

	return p.authorization(*to, redirect, state, verifier), nil
}

// authorization returns the address at which the user authorises flexd (RFC 6749, 4.1.1). The
// provider receives a hash of the verifier (RFC 7636), and grants a token only for the
// verifier itself.
func (p Provider) authorization(
	to url.URL,
	redirect, state, verifier string,
) string {
	challenge := sha256.Sum256([]byte(verifier))

	q := to.Query()
	q.Set("response_type", "code")
	q.Set("client_id", p.ClientID)
	q.Set("redirect_uri", redirect)
	q.Set("state", state)
	q.Set("code_challenge", base64.RawURLEncoding.EncodeToString(challenge[:]))
	q.Set("code_challenge_method", "S256")

	if len(p.Scopes) > 0 {
		q.Set("scope", strings.Join(p.Scopes, " "))
	}

	to.RawQuery = q.Encode()

	return to.String()
}

func (s *Service) provider(name string) (Provider, error) {
	for _, p := range s.Providers {
		if p.Name == name {
			return p, nil
		}
	}

	return Provider{}, flex.Fail(
		flex.Malformed,
		"the provider %s is not configured here",
		name,
	)
}

func randomText() string {
	var b [32]byte
	crand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// FinishLink receives what the provider sent the browser back with: a code, or an error. The
// next job exchanges the code. A state that is not open is NotFound.
func (s *Service) FinishLink(
	ctx context.Context,
	state, code, refusal string,
) (string, error) {
	hash := sha256.Sum256([]byte(state))

	var provider string
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		l, err := all.CloudLink(ctx, hash)
		if err != nil {
			return err
		}

		provider = l.Provider

		if code == "" || refusal != "" {
			return all.DropCloudLink(ctx, l)
		}

		l.Code = flex.Secret(code)
		return all.SetCloudCode(ctx, l)
	})
	if err == nil && (code == "" || refusal != "") {
		err = flex.Fail(
			flex.Malformed,
			"%s has not given access: %s",
			provider,
			cmp.Or(refusal, "it sent no code"),
		)
	}

	return provider, err
}

// PutToken stores a token for a manufacturer's cloud that the client obtained itself.
func (s *Service) PutToken(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	t CloudToken,
) error {
	if _, err := s.Site(ctx, org, site); err != nil {
		return err
	}
	row := t.record(store.CloudToken{Org: org, Site: site})
	return s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.PutCloudToken(ctx, row)
	})
}

// record returns the record that replaces an earlier token.
func (t CloudToken) record(previous store.CloudToken) store.CloudToken {
	previous.Type, previous.ExpiresAt = t.Type, t.ExpiresAt
	previous.Access, previous.Refresh = t.Access, t.Refresh
	return previous
}

// Tokens returns a site's tokens for manufacturers' clouds by provider, the client's own under
// the empty name.
func (s *Service) Tokens(
	ctx context.Context,
	site flex.SiteID,
) (map[string]CloudToken, error) {
	var stored []store.CloudToken
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		stored, err = all.CloudTokens(ctx, site)
		return err
	})

	tokens := map[string]CloudToken{}
	for _, k := range stored {
		tokens[k.Provider] = CloudToken{
			k.Access,
			k.Refresh,
			k.Type,
			k.ExpiresAt,
		}
	}

	return tokens, err
}

// RefreshClouds exchanges the codes of users who returned from manufacturers' clouds, and
// refreshes tokens that expire soon.
func (s *Service) RefreshClouds(ctx context.Context) (worker.Report, error) {
	var links []store.CloudLink
	var tokens []store.CloudToken
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		links, err = all.ClaimCloudLinks(ctx, cloudBatch, cloudLease)
		if err == nil {
			tokens, err = all.ClaimCloudTokens(ctx, cloudBatch, cloudLease)
		}
		return err
	})
	if err != nil {
		return worker.Report{}, err
	}

	var errs []error
	for _, l := range links {
		if err := s.exchange(ctx, l); err != nil {
			errs = append(
				errs,
				fmt.Errorf("exchange a code of %s: %w", l.Provider, err),
			)
		}
	}

	for _, t := range tokens {
		if err := s.refresh(ctx, t); err != nil {
			errs = append(
				errs,
				fmt.Errorf("refresh a token of %s: %w", t.Provider, err),
			)
		}
	}

	return worker.Report{
		Count: len(links) + len(tokens),
		More:  len(links) == cloudBatch || len(tokens) == cloudBatch,
	}, errors.Join(errs...)
}

// exchange exchanges a link's code for a token. If a cloud fails, it is asked again as long as
// the link is valid; if it refuses, it is not.
func (s *Service) exchange(ctx context.Context, l store.CloudLink) error {
	p, err := s.provider(l.Provider)
	if err != nil {
		return s.DB.WriteAll(ctx, func(all *store.All) error {
			return all.DropCloudLink(ctx, l)
		})
	}

	t, refused, err := s.requestToken(ctx, p, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {l.Code.Reveal()},
		"redirect_uri":  {l.Redirect},
		"code_verifier": {l.Verifier.Reveal()},
	})

	if err != nil && !refused {
		return s.DB.WriteAll(ctx, func(all *store.All) error {
			return all.RetryCloudLink(
				ctx,
				l,
				all.Now().Add(cloudLease),
				err.Error(),
			)
		})
	}

	row := s.renewedRecord(store.CloudToken{
		Org:      l.Org,
		Site:     l.Site,
		Provider: p.Name,
	}, t)

	return s.DB.WriteAll(ctx, func(all *store.All) error {
		if !refused {
			if err := all.PutCloudToken(ctx, row); err != nil {
				return err
			}
		}

		return all.DropCloudLink(ctx, l)
	})
}

// renewedRecord returns the record that replaces an earlier token. It is to be refreshed a
// little before it expires.
func (s *Service) renewedRecord(previous store.CloudToken, t CloudToken) store.CloudToken {
	row := t.record(previous)
	row.TurnAt = time.Time{}
	if t.Refresh != "" && !t.ExpiresAt.IsZero() {
		row.TurnAt = flex.Later(
			t.ExpiresAt.Add(-refreshEarly),
			s.DB.Now().Add(cloudRetry),
		)
	}

	return row
}

// refresh renews a token. If the provider refuses, the token is not refreshed again: the user
// has revoked access and must authorise it again.
func (s *Service) refresh(ctx context.Context, row store.CloudToken) error {
	retry := func(at time.Time, problem error) error {
		return s.DB.WriteAll(ctx, func(all *store.All) error {
			return all.RetryCloudToken(ctx, row, at, problem.Error())
		})
	}

	p, err := s.provider(row.Provider)
	if err != nil {
		return retry(time.Time{}, err)
	}

	t, refused, err := s.requestToken(ctx, p, url.Values{
		"grant_type":    {"refresh_token"},
		"refresh_token": {row.Refresh.Reveal()},
	})
	if refused {
		return s.DB.WriteAll(ctx, func(all *store.All) error {
			return all.LeaveCloudToken(ctx, row)
		})
	}
	if err != nil {
		return retry(s.DB.Now().Add(cloudRetry), err)
	}

	t.Refresh = cmp.Or(t.Refresh, row.Refresh)

	return s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.RefreshCloudToken(ctx, row, s.renewedRecord(row, t))
	})
}

// tokenRequest returns the request for a grant to the token endpoint (RFC 6749, 4.1.3 and
// 2.3.1).
func (p Provider) tokenRequest(grant url.Values) egress.Request {
	grant.Set("client_id", p.ClientID)
	header := map[string]string{
		"Content-Type": "application/x-www-form-urlencoded",
		"Accept":       "application/json",
	}

	if p.ClientSecret != "" {
		pair := url.QueryEscape(p.ClientID) + ":" +
			url.QueryEscape(p.ClientSecret.Reveal())
		header["Authorization"] = "Basic " +
			base64.StdEncoding.EncodeToString([]byte(pair))
	}

	return egress.Request{
		Method: "POST",
		URL:    p.TokenURL,
		Header: header,
		Body:   []byte(grant.Encode()),
	}
}

// requestToken posts a grant to a provider's token endpoint. refused says that another attempt
// would not succeed.
func (s *Service) requestToken(
	ctx context.Context,
	p Provider,
	grant url.Values,
) (t CloudToken, refused bool, err error) {
	a, err := s.Web.Do(ctx, p.tokenRequest(grant))
	if err != nil {
		return t, false, err
	}

	passing := a.Status == 408 || a.Status == 429
	if a.Status >= 400 && a.Status < 500 && !passing {
		return t, true, fmt.Errorf("%s refused with %d", p.Name, a.Status)
	}

	var answer struct {
		AccessToken  string      `json:"access_token"`
		RefreshToken string      `json:"refresh_token"`
		TokenType    string      `json:"token_type"`
		ExpiresIn    json.Number `json:"expires_in"`
	}

	if err := json.Unmarshal(a.Body, &answer); err != nil || a.Status != 200 ||
		answer.AccessToken == "" {
		return t, false, fmt.Errorf(
			"%s answered with %d and no token",
			p.Name,
			a.Status,
		)
	}

	t = CloudToken{
		Access:  flex.Secret(answer.AccessToken),
		Refresh: flex.Secret(answer.RefreshToken),
		Type:    answer.TokenType,
	}

	if seconds, err := answer.ExpiresIn.Int64(); err == nil && seconds > 0 {
		t.ExpiresAt = s.DB.Now().Add(time.Duration(min(seconds, 1e9)) * time.Second)
	}

	return t, false, nil
}
