// Package signin asks an identity provider who an operator is, by OpenID Connect: the
// authorization code flow with PKCE, a state and a nonce. It returns the person and their
// groups; package access decides what that allows.
//
//	NewAttempt ──► Address: the browser goes to the provider ──► Answer ──► Person
//
// An attempt is 256 random bits that only the browser stores. State, nonce and verifier are
// derived from them, so that the provider's answer is only of use to that browser. The person
// is read from a token whose signature, issuer, audience, time and nonce are correct; if it
// lacks their name or groups, these are read from the userinfo endpoint. Any other answer is
// Unauthorized, with the reason in the log and not on the page.
//
// The provider is asked only when somebody signs in, so flexd starts without it. Its
// description is cached, and so is a failure to read it, so that a provider that is down is
// not asked at each sign-in. Its keys are read again when a token names an unknown one.
package signin
