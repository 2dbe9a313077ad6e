package registry

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// sealer keeps others' secrets so that the tables that hold them do not tell them.
type sealer struct {
	mu   sync.Mutex
	aead cipher.AEAD
}

// cipher returns the cipher of the house's key.
func (d *Desk) cipher(ctx context.Context) (cipher.AEAD, error) {
	d.seals.mu.Lock()
	defer d.seals.mu.Unlock()
	if d.seals.aead != nil {
		return d.seals.aead, nil
	}
	key, err := d.DB.Key(ctx, "cloud tokens")
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	d.seals.aead, err = cipher.NewGCM(block)
	return d.seals.aead, err
}

// seal returns the value so that only unseal with the same context reads it.
func (d *Desk) seal(ctx context.Context, v any, about []byte) ([]byte, error) {
	aead, err := d.cipher(ctx)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	crand.Read(nonce)
	return aead.Seal(nonce, nonce, plain, about), nil
}

func (d *Desk) unseal(ctx context.Context, sealed, about []byte, v any) error {
	aead, err := d.cipher(ctx)
	if err != nil {
		return fmt.Errorf("unseal: %w", err)
	}
	n := aead.NonceSize()
	if len(sealed) < n {
		return errors.New("unseal: too short")
	}
	plain, err := aead.Open(nil, sealed[:n], sealed[n:], about)
	if err != nil {
		return fmt.Errorf("unseal: %w", err)
	}
	return json.Unmarshal(plain, v)
}
