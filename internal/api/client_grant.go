package api

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
)

// clientGrant is the grant_type of OAuth 2.0 by which a program asks in its own name.
const clientGrant = "client_credentials"

// isClientGrant reports whether a form asks by the client credentials grant. With a field of the
// password grant it does not: that is answered as it always was.
func isClientGrant(form url.Values) bool {
	return slices.Equal(form["grant_type"], []string{clientGrant}) &&
		!form.Has("username") && !form.Has("password")
}

// clientLogin answers the client credentials grant (RFC 6749, 4.4). The credential's name is
// the client's id, its password the client's secret; both come in the form, or in the header
// by HTTP's Basic scheme. A scope names the roles that the token is to have, of those that the
// credential has.
func (s *Server) clientLogin(r *request, form url.Values) (answer, error) {
	r.oauthError = "invalid_client"
	id, secret, err := clientOf(r, form)
	if err != nil {
		return answer{}, err
	}

	if len(form["scope"]) > 1 {
		return answer{}, fieldFault(
			"scope",
			"value_error",
			"a field is given once",
		)
	}

	t, err := s.Access.LoginWithin(
		r.Context(),
		id,
		flex.Secret(secret),
		r.from,
		rolesOf(form.Get("scope")),
	)

	if errors.Is(err, access.ErrScope) {
		r.oauthError = "invalid_scope"
		return answer{}, fieldFault(
			"scope",
			"value_error",
			"the credential has not all of these roles; leave it out for those that it has",
		)
	}

	if err != nil {
		return answer{}, err
	}

	return s.issued(t), nil
}

// clientOf returns the client's id and secret.
func clientOf(r *request, form url.Values) (id, secret string, err error) {
	id, secret, basic := r.BasicAuth()
	if basic {
		if form.Has("client_secret") {
			return "", "", fieldFault(
				"client_secret",
				"value_error",
				"it is in the header already: give it once",
			)
		}
		return BasicPart(id), BasicPart(secret), nil
	}

	for _, field := range []string{"client_id", "client_secret"} {
		if len(form[field]) != 1 || form.Get(field) == "" {
			return "", "", fieldFault(
				field,
				"value_error.missing",
				"field required, once, or both in the Authorization header",
			)
		}
	}

	return form.Get("client_id"), form.Get("client_secret"), nil
}

// fieldFault is the fault of a field of the form.
func fieldFault(field, word, msg string) error {
	return &flex.Error{
		Kind:   flex.Invalid,
		Faults: []flex.Fault{{Loc: []string{"body", field}, Msg: msg, Type: word}},
	}
}

// BasicPart is a half of the header as the client has it, which RFC 6749 (2.3.1) has encoded as in
// a form. A client that did not encode it is understood where that is unambiguous.
func BasicPart(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// rolesOf reads the roles that a scope names; none for all that there are.
func rolesOf(scope string) []flex.Role {
	var roles []flex.Role
	for word := range strings.FieldsSeq(scope) {
		roles = append(roles, flex.Role(word))
	}
	return roles
}
