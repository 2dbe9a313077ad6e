package openadr

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/web"
)

// The scopes of the two kinds of client.
const (
	businessScopes = "read_all write_programs write_events write_subscriptions write_vens"
	nodeScopes     = "read_targets read_ven_objects write_reports write_subscriptions write_vens"
)

// oauthError is a failure at auth/token with its OAuth 2.0 error code (RFC 6749, section 5.2).
type oauthError struct {
	code string
	err  error
}

func (e *oauthError) Error() string { return e.err.Error() }

// Unwrap returns the failure itself.
func (e *oauthError) Unwrap() error { return e.err }

func oauthRefusal(code, format string, args ...any) error {
	return &oauthError{code, flex.Fail(flex.Malformed, format, args...)}
}

type serverInfo struct {
	TokenURL string `json:"tokenURL"`
}

// authServer answers GET /auth/server.
func (s *Server) authServer(r *request) (answer, error) {
	base := s.PublicURL
	if base == "" {
		scheme := "http"
		if web.HTTPS(r.Request) {
			scheme = "https"
		}
		base = (&url.URL{Scheme: scheme, Host: r.Host}).String()
	}

	return answer{http.StatusOK, serverInfo{base + Root + "/auth/token"}}, nil
}

type tokenAnswer struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"`
	Scope       string `json:"scope"`
}

// token answers POST /auth/token: OAuth 2.0's client credentials grant.
func (s *Server) token(r *request) (answer, error) {
	form, err := r.form()
	if err != nil {
		return answer{}, err
	}

	t, err := s.Access.Login(
		r.Context(),
		form.Get("client_id"),
		flex.Secret(form.Get("client_secret")),
		r.from,
	)
	if flex.KindOf(err) == flex.Unauthorized {
		err = &oauthError{"invalid_client", err}
	}
	if err != nil {
		return answer{}, err
	}

	principal, err := s.Access.Identify(r.Context(), t.Token)
	if err != nil {
		return answer{}, err
	}

	r.principal = principal
	if err := s.serves(r); err != nil {
		r.principal.Org = flex.OrgID{}
		if flex.KindOf(err) == flex.Forbidden { // for which the specification has no 403 here
			err = oauthRefusal("unauthorized_client", "%v", err)
		}
		return answer{}, err
	}

	scopes, err := grant(r.adr.Business, form.Get("scope"))
	if err != nil {
		return answer{}, err
	}

	return answer{
		http.StatusOK,
		tokenAnswer{t.Token.Reveal(), "Bearer", int(t.ExpiresAt.Sub(s.ADR.DB.Now()) / time.Second), scopes},
	}, nil
}

// formFields are the fields of the grant's form, with their largest sizes in bytes.
var formFields = []string{"grant_type", "client_id", "client_secret", "scope"}

const formFieldMax = 4096

// form reads the form of the grant.
func (r *request) form() (url.Values, error) {
	if err := r.isMedia("application/x-www-form-urlencoded"); err != nil {
		return nil, err
	}

	b, err := r.bytes(TokenMax)
	if err != nil {
		return nil, err
	}

	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, oauthRefusal(
			"invalid_request",
			"the form is not well formed: percent-encode what is not plain",
		)
	}

	for _, field := range formFields {
		values := form[field]
		if len(values) > 1 || len(form.Get(field)) > formFieldMax {
			return nil, oauthRefusal(
				"invalid_request",
				"%s is given more than once, or is longer than %d bytes",
				field,
				formFieldMax,
			)
		}

		if field != "scope" && form.Get(field) == "" {
			return nil, oauthRefusal("invalid_request", "%s is missing", field)
		}
	}

	if form.Get("grant_type") != "client_credentials" {
		return nil, oauthRefusal(
			"unsupported_grant_type",
			"grant_type should be client_credentials",
		)
	}

	return form, nil
}

// grant returns the client's scope, which its role determines. A request for a scope that it
// cannot have is refused.
func grant(business bool, requested string) (string, error) {
	granted := nodeScopes
	if business {
		granted = businessScopes
	}

	for scope := range strings.FieldsSeq(requested) {
		if !strings.Contains(" "+granted+" ", " "+scope+" ") {
			return "", oauthRefusal(
				"invalid_scope",
				"this client cannot have the scope %q: it has %s",
				scope,
				granted,
			)
		}
	}

	return granted, nil
}

// notifiers answers GET /notifiers: only webhooks are supported.
func (s *Server) notifiers(*request) (answer, error) {
	return answer{http.StatusOK, map[string]bool{"WEBHOOK": true}}, nil
}

// noTopics answers the paths of MQTT topics, which are not supported.
func (s *Server) noTopics(*request) (answer, error) {
	return answer{}, flex.Fail(
		flex.NotFound,
		"there is no MQTT notifier: subscribe with a webhook",
	)
}
