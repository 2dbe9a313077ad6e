package keyring

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
)

// Signature is what a key of the ring says of a message. Whoever knows the public key can
// check it without the ring.
type Signature struct {
	Key       ID
	PublicKey ed25519.PublicKey
	Bytes     []byte
}

// Sign signs the message by Ed25519 (RFC 8032) with the newest key. The signing key is derived
// from it for the purpose by HKDF-SHA-256 (RFC 5869), so that nothing that is sealed depends on
// what is signed.
func (r *Ring) Sign(purpose string, message []byte) Signature {
	k := r.all()[0]
	private := k.signing(purpose)
	return Signature{
		Key:       k.id,
		PublicKey: private.Public().(ed25519.PublicKey),
		Bytes:     ed25519.Sign(private, message),
	}
}

// PublicKey returns the public key of the purpose under the key of the id, or nil if the ring
// does not hold it.
func (r *Ring) PublicKey(id ID, purpose string) ed25519.PublicKey {
	for _, k := range r.all() {
		if k.id == id {
			return k.signing(purpose).Public().(ed25519.PublicKey)
		}
	}

	return nil
}

func (k key) signing(purpose string) ed25519.PrivateKey {
	seed, err := hkdf.Key(
		sha256.New,
		k.secret[:],
		nil,
		"flexd signing "+purpose,
		ed25519.SeedSize,
	)
	if err != nil {
		panic(err) // the length is a constant that HKDF can give
	}

	return ed25519.NewKeyFromSeed(seed)
}
