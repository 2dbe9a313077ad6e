package wire

import "flexd/internal/flex"

// TokenForm is the form of POST /auth/token-form. Further fields of the OAuth 2.0 password
// flow (scope, client_id, client_secret) are ignored.
//
//openapi:schema Body_login_for_access_token_form_auth_token_form_post
//openapi:merge {"title": "TokenForm"}
type TokenForm struct {
	Username string `json:"username" wire:"required"`
	//openapi:merge {"format": "password"}
	Password  string `json:"password" wire:"required"`
	GrantType string `json:"grant_type" wire:"only=password,default=password"`
}

// Token answers it.
type Token struct {
	AccessToken string `json:"access_token"`
	// Always bearer.
	TokenType string `json:"token_type"`
	// Seconds.
	//
	//openapi:addition
	ExpiresIn int `json:"expires_in,omitzero"`
}

// ComponentTokenForm is the form of POST /auth/component-token.
//
//openapi:schema Body_create_component_token_auth_component_token_post
//openapi:merge {"title": "ComponentTokenForm"}
type ComponentTokenForm struct {
	// The client's own id of the end user. A new one gets a site.
	ExternalUserID string `json:"external_user_id" wire:"required,nonempty"`
	// The web origin that may use the token, such as https://app.example.com.
	AllowedOrigin string `json:"allowed_origin" wire:"required,nonempty"`
	// Kept for a new user and replaced for a known one.
	UserEmail string `json:"user_email"`
	// When the user allowed the use of the boundary meter's data, with an offset. Needed for a
	// new user, unless the organisation is exempt.
	GaveBoundaryMeterConsentAt Time `json:"gave_boundary_meter_consent_at" wire:"zoned"`
}

// ComponentToken answers it.
type ComponentToken struct {
	// flexd's own id of the end user.
	ID          flex.UserID `json:"id"`
	AccessToken string      `json:"access_token"`
	// Always bearer.
	TokenType string `json:"token_type"`
}

// User answers GET /auth/users/me/.
type User struct {
	Username string      `json:"username"`
	Roles    []flex.Role `json:"roles"`
}
