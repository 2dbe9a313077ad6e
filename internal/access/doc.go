// Package access is the service that says who is asking: organisations' credentials, the
// tokens that they are exchanged for, the roles these carry, and the brake on guessing.
//
// Tokens are 256 random bits and kept as their SHA-256; only the one who was given a token
// has it. An hour later it is worth nothing.
package access
