// Package signin asks an identity provider who an operator is, by OpenID Connect: the
// authorization code flow with PKCE, a state and a nonce. It says who somebody is and in which
// groups; what that allows is package access's to say.
package signin
