// Package keyring encrypts secrets for storage: others' signing secrets, tokens and bank
// accounts. They are encrypted and authenticated by XChaCha20-Poly1305 under keys that are not
// in the database. Its nonces are long enough to be random without a counter.
//
// A sealed value names its key. It can be opened only for the organisation, the purpose and
// the row for which it was sealed: copied to another row it cannot be opened.
package keyring
