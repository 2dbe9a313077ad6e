package wire

import "flexd/internal/flex"

// TokenForm is the form of POST /auth/token-form. Further fields of the OAuth 2.0 password
// flow (scope, client_id, client_secret) are ignored.
type TokenForm struct {
	Username  string `json:"username" wire:"required"`
	Password  string `json:"password" wire:"required"`
	GrantType string `json:"grant_type" wire:"only=password,default=password"`
}

// Token answers it.
type Token struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in,omitzero"` // seconds
}

// ComponentTokenForm is the form of POST /auth/component-token.
type ComponentTokenForm struct {
	ExternalUserID             string `json:"external_user_id" wire:"required,nonempty"`
	AllowedOrigin              string `json:"allowed_origin" wire:"required,nonempty"`
	UserEmail                  string `json:"user_email"`
	GaveBoundaryMeterConsentAt Time   `json:"gave_boundary_meter_consent_at" wire:"zoned"`
}

// ComponentToken answers it.
type ComponentToken struct {
	ID          flex.UserID `json:"id"`
	AccessToken string      `json:"access_token"`
	TokenType   string      `json:"token_type"`
}

// User answers GET /auth/users/me/.
type User struct {
	Username string      `json:"username"`
	Roles    []flex.Role `json:"roles"`
}
