package directory

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"time"

	"flexd/internal/flex"
	"flexd/internal/keyring"
)

// RefLife is how long a reference from a search can be used.
const RefLife = 24 * time.Hour

// Refs seals metering points into references, so that a search hands out no MPAN. A
// reference says nothing, is different each time it is made, and opens for the one
// organisation that it was made for until its time is over.
type Refs struct {
	keys   *keyring.Ring
	random io.Reader
}

// NewRefs returns the sealer of references under the newest of the keys. Nonces are read
// from random, which need not be secret but must not repeat.
func NewRefs(keys *keyring.Ring, random io.Reader) *Refs {
	return &Refs{keys, random}
}

// aboutRef is what a reference is bound to: whose it is.
func aboutRef(org flex.OrgID) keyring.About {
	return keyring.About{
		Purpose: "meter reference",
		Org:     org.Bytes(),
	}
}

// Seal returns a reference to the metering point.
func (r *Refs) Seal(m MPAN, org flex.OrgID, expires time.Time) (string, error) {
	number, err := strconv.ParseUint(m.Core(), 10, 64)
	if err != nil {
		return "", fmt.Errorf("seal %v: it is no MPAN", m)
	}

	var plain [16]byte
	binary.BigEndian.PutUint64(plain[:8], number)
	binary.BigEndian.PutUint64(plain[8:], uint64(expires.Unix()))
	sealed, err := r.keys.Seal(r.random, aboutRef(org), plain[:])

	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// Open returns the metering point of a reference. The failure is a flex.Invalid.
func (r *Refs) Open(ref string, org flex.OrgID, now time.Time) (MPAN, error) {
	invalid := flex.Fail(
		flex.Invalid,
		"this is no meter reference of yours: take one from a meter search",
	)

	sealed, err := base64.RawURLEncoding.Strict().DecodeString(ref)
	if err != nil {
		return MPAN{}, invalid
	}

	plain, err := r.keys.Open(aboutRef(org), sealed)
	if err != nil || len(plain) != 16 {
		return MPAN{}, invalid
	}
	expires := time.Unix(int64(binary.BigEndian.Uint64(plain[8:])), 0)
	if !now.Before(expires) {
		return MPAN{}, flex.Fail(
			flex.Invalid,
			"this meter reference was good for %v and has run out: search again",
			RefLife,
		)
	}

	return MPAN{core: fmt.Sprintf(
		"%0*d",
		coreLen,
		binary.BigEndian.Uint64(plain[:8]),
	)}, nil
}
