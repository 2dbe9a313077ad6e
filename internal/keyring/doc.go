// Package keyring keeps secrets so that the records that hold them do not tell them: others'
// signing secrets, tokens and bank accounts are encrypted and authenticated under keys that
// lie outside the database, by XChaCha20-Poly1305, whose nonces are long enough to be drawn
// at random without counting.
//
// A sealed value says which key it is under and opens for the organisation, the purpose and
// the row that it was sealed for, and for nothing else: moved to another row it is no value.
package keyring
