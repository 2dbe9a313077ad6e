package access

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Checkpoint says what the newest link of the audit log's chain was at an instant, signed with a
// key that the database does not hold. Kept elsewhere, it shows later that nothing up to it was
// changed.
type Checkpoint struct {
	Sequence  int64     `json:"sequence"`
	Hash      string    `json:"hash"`
	At        time.Time `json:"at"`
	Key       string    `json:"key"`        // id of the key in the key file
	PublicKey []byte    `json:"public_key"` // Ed25519; base64 in JSON
	Signature []byte    `json:"signature"`  // of Message
}

// checkpointPurpose is what the signing key is derived for.
const checkpointPurpose = "audit checkpoint"

// Message is what is signed: the number, the hash and the instant, a line each.
func (c Checkpoint) Message() []byte {
	return fmt.Appendf(
		nil,
		"flexd audit checkpoint\n%d\n%s\n%s\n",
		c.Sequence,
		c.Hash,
		c.At.UTC().Format(time.RFC3339Nano),
	)
}

// Checkpoint signs the newest link. Without a key file it is Unavailable.
func (s *Service) Checkpoint(ctx context.Context) (Checkpoint, error) {
	var c Checkpoint
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		head, err := all.AuditHead(ctx)
		c = Checkpoint{
			Sequence: head.Sequence,
			Hash:     head.Hash,
			At:       all.Now().UTC(),
		}

		return err
	})
	if err != nil {
		return c, err
	}

	signed, err := s.DB.Sign(checkpointPurpose, c.Message())
	if err != nil {
		return c, err
	}

	c.Key = signed.Key.String()
	c.PublicKey = signed.PublicKey
	c.Signature = signed.Bytes

	return c, nil
}

// CheckCheckpoint fails with Invalid if the signature is not of the checkpoint, if it is another
// key's than the public key that is expected, where one is, or if the chain does not lead through
// its link.
func (s *Service) CheckCheckpoint(
	ctx context.Context,
	c Checkpoint,
	expected []byte,
) error {
	key := expected
	if len(key) == 0 {
		key = c.PublicKey
	}

	if len(key) != ed25519.PublicKeySize ||
		!ed25519.Verify(key, c.Message(), c.Signature) {
		return flex.Fail(
			flex.Invalid,
			"the checkpoint is not signed by that key, or was changed",
		)
	}

	if c.Sequence == 0 {
		return nil
	}

	return s.DB.ReadAll(ctx, func(all *store.All) error {
		links, err := all.AuditLinks(ctx, c.Sequence-1, 1)
		if err != nil {
			return err
		}

		if len(links) == 0 || links[0].Sequence != c.Sequence {
			return flex.Fail(
				flex.Invalid,
				"the audit log has no link %d, which the checkpoint of %s has: it was cut off",
				c.Sequence,
				c.At.Format(time.RFC3339),
			)
		}

		if links[0].Hash != c.Hash {
			return flex.Fail(
				flex.Invalid,
				"link %d of the audit log is not the one of the checkpoint of %s: something up to it was changed",
				c.Sequence,
				c.At.Format(time.RFC3339),
			)
		}

		return nil
	})
}
