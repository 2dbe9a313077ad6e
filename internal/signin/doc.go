// Package signin asks an identity provider who an operator is, by OpenID Connect: the
// authorization code flow with PKCE, a state and a nonce. It says who somebody is and in which
// groups; what that allows is package access's to say.
//
//	NewAttempt ──► Address: the browser goes to the provider ──► Answer ──► Person
//
// An attempt is 256 random bits that the browser alone keeps; state, nonce and verifier are made from them, so that an answer is of use to that
// browser alone. A person is taken from a token whose signature, issuer, audience, time and nonce are right, and asked for at the userinfo endpoint
// where the token lacks their name or groups. Whatever is not right is Unauthorized, with the reason in the log and not on the page.
//
// The provider is asked only when somebody signs in, so that flexd starts without it. Its description is kept for a while, and a failure too, so that a
// provider that is down is not asked at each sign-in. Its keys are asked for again when a token names an unknown one.
package signin
