package keyring

import (
	"crypto/ed25519"
	"testing"
)

// A signature is checked without the ring, and neither another purpose nor another key makes it.
func TestSign(t *testing.T) {
	r := ring(t, 1, 2)
	message := []byte("so much was written")
	s := r.Sign("one", message)

	if !ed25519.Verify(s.PublicKey, message, s.Bytes) || !s.PublicKey.Equal(r.PublicKey(s.Key, "one")) {
		t.Error("its own signature is not taken")
	}

	if s.Key != r.IDs()[0] {
		t.Errorf("signed by %v, not the newest key", s.Key)
	}

	if r.PublicKey(s.Key, "two").Equal(s.PublicKey) || ring(t, 3).Sign("one", message).PublicKey.Equal(s.PublicKey) {
		t.Error("another purpose or key signs alike")
	}

	if ring(t, 3).PublicKey(s.Key, "one") != nil {
		t.Error("a ring tells the public key of a key that it does not hold")
	}
}
