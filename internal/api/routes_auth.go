package api

import (
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// authRoutes are the operations of auth.
var authRoutes = []Route{
	{
		Method:  "POST",
		Pattern: "/auth/token-form",
		Role:    Public,
		Limit:   kib4,
		handle:  (*Server).login,
		Operation: &Operation{
			ID: "login_for_access_token_form_auth_token_form_post", Tag: "auth",
			Summary: "Get an organisation's token",
			Text: "For the OAuth 2.0 password flow. The token lives for an hour; then ask for another. Client id, " +
				"client secret and scope may be sent, and count for nothing. The client credentials flow is taken too: " +
				"grant_type client_credentials, the credential's name and password as client_id and client_secret, in the " +
				"form or by HTTP Basic, and a scope for a token with some of the credential's roles alone.",
			Body: sample[wire.TokenForm](
				`{"username": "acme", "password": "correct horse battery staple", "grant_type": "password"}`,
			),
			Answer: Answer{
				Text: "The token.",
				Body: sample[wire.Token](
					`{"access_token": "flx_4f1c9a…", "token_type": "bearer", "expires_in": 3600}`,
				),
			},
			Problems: []Problem{unauthorized, tooMany, internal},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/auth/users/me/",
		Role:      Anyone,
		Component: true,
		handle:    (*Server).me,
		Operation: &Operation{
			ID: "read_users_me_auth_users_me__get", Tag: "auth",
			Summary: "Who bears the token",
			Answer: Answer{
				Text: "The name and its roles.",
				Body: sample[wire.User](`{
				"username": "acme",
				"roles": ["entity_read", "entity_write", "lookup", "metrics_write", "rewards", "components"]
			}`),
			},
		},
	},

	{
		Method:     "POST",
		Pattern:    "/auth/component-token",
		Role:       flex.Components,
		Limit:      kib4,
		Repeatable: true,
		NewToken:   true,
		handle:     (*Server).componentToken,
		Operation: &Operation{
			ID: "create_component_token_auth_component_token_post", Tag: "auth",
			Summary: "Get a token for one end user's site",
			Text: "For web pages: it lives for 24 hours and reads and steers that one site, from the given origin. " +
				"An end user who is not known yet gets a site.",
			Body: sample[wire.ComponentTokenForm](`{
				"external_user_id": "user-42",
				"allowed_origin": "https://app.example.com",
				"user_email": "resident@example.com",
				"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
			}`),
			Answer: Answer{
				Text: "The token.",
				Body: sample[wire.ComponentToken](`{
				"id": "f6a7b8c9-d0e1-4234-bf01-678901234567",
				"access_token": "flc_77ab02…",
				"token_type": "bearer"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},
}
