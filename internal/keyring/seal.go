package keyring

import (
	"bytes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/chacha20poly1305"
)

// KeySize is the bytes of a key.
const KeySize = chacha20poly1305.KeySize

// KeysMax bounds the keys of a ring.
const KeysMax = 16

// A sealed value is its version, the key's id, a nonce and the box.
const (
	version    = 1
	headerSize = 1 + len(ID{})
	overhead   = headerSize + chacha20poly1305.NonceSizeX +
		chacha20poly1305.Overhead
)

// ID names a key without telling it: the first bytes of its hash.
type ID [4]byte

// String writes the id as eight hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Ring holds the keys: the first seals, all open.
type Ring struct {
	keys   atomic.Pointer[[]key] // the newest first; a list that is set is not changed
	reread func() (*Ring, error) // nil if there is no file to read again
}

type key struct {
	id     ID
	aead   cipher.AEAD
	secret [KeySize]byte // signing keys are derived from it
}

// About is what a sealed value is bound to.
type About struct {
	Purpose string // what kind of secret it is
	Org     []byte // whose
	Row     []byte // which one of them
}

// NewRing returns the ring of the keys, newest first. It fails if there is none, too many or
// one twice.
func NewRing(keys ...[KeySize]byte) (*Ring, error) {
	if len(keys) == 0 || len(keys) > KeysMax {
		return nil, fmt.Errorf(
			"a ring has 1 to %d keys, not %d",
			KeysMax,
			len(keys),
		)
	}

	var made []key
	for _, k := range keys {
		aead, err := chacha20poly1305.NewX(k[:])
		if err != nil {
			return nil, err
		}

		sum := sha256.Sum256(append([]byte("flexd key\n"), k[:]...))
		id := ID(sum[:len(ID{})])
		if slices.ContainsFunc(made, func(other key) bool { return other.id == id }) {
			return nil, fmt.Errorf("the key %v is there twice", id)
		}

		made = append(made, key{id, aead, k})
	}

	r := &Ring{}
	r.keys.Store(&made)

	return r, nil
}

// ReadAgain gives the ring a way to read its file again, for a value under a key that was added to it since. Without it
// a process that was not restarted before its secrets were sealed again could open none of them.
func (r *Ring) ReadAgain(read func() (*Ring, error)) { r.reread = read }

// newer returns the key of that id if the file has it by now. The file's keys then come before those of the ring: what
// is sealed from now on is under the newest one. A key that has left the file still opens.
func (r *Ring) newer(id ID) cipher.AEAD {
	if r.reread == nil {
		return nil
	}

	file, err := r.reread()
	if err != nil || !file.Holds(id) {
		return nil
	}

	keys := slices.Clone(file.all())
	for _, k := range r.all() {
		if !file.Holds(k.id) {
			keys = append(keys, k)
		}
	}

	r.keys.Store(&keys)

	return file.key(id)
}

// all returns the keys, the newest first.
func (r *Ring) all() []key { return *r.keys.Load() }

// ReadRing reads a key file: a key a line in base64, the newest first. Blank lines and those
// that begin with # are for people.
func ReadRing(text []byte) (*Ring, error) {
	var keys [][KeySize]byte
	n := 0

	for line := range strings.Lines(string(text)) {
		n++

		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}

		b, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(b) != KeySize {
			return nil, fmt.Errorf(
				"line %d is no key: a key is %d bytes in base64",
				n,
				KeySize,
			)
		}

		keys = append(keys, [KeySize]byte(b))
	}

	return NewRing(keys...)
}

// NewLine returns a new key as a line of a key file.
func NewLine(random io.Reader) (string, error) {
	var k [KeySize]byte
	if _, err := io.ReadFull(random, k[:]); err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}

	return base64.StdEncoding.EncodeToString(k[:]) + "\n", nil
}

// IDs returns the ids of the ring's keys, the one that seals first.
func (r *Ring) IDs() []ID {
	keys := r.all()
	ids := make([]ID, len(keys))
	for i, k := range keys {
		ids[i] = k.id
	}

	return ids
}

func (r *Ring) key(id ID) cipher.AEAD {
	for _, k := range r.all() {
		if k.id == id {
			return k.aead
		}
	}

	return nil
}

// Holds reports whether the ring has the key of that id.
func (r *Ring) Holds(id ID) bool { return r.key(id) != nil }

// Seal returns the value sealed under the newest key. The nonce is read from random.
func (r *Ring) Seal(
	random io.Reader,
	about About,
	plain []byte,
) ([]byte, error) {
	k := r.all()[0]
	out := make(
		[]byte,
		headerSize+chacha20poly1305.NonceSizeX,
		overhead+len(plain),
	)

	out[0] = version
	copy(out[1:], k.id[:])

	nonce := out[headerSize:]
	if _, err := io.ReadFull(random, nonce); err != nil {
		return nil, fmt.Errorf("seal a %s: %w", about.Purpose, err)
	}

	return k.aead.Seal(out, nonce, plain, about.bind(out[:headerSize])), nil
}

// Open returns the value that was sealed about the same. It fails if the value was changed,
// belongs elsewhere, or is under a key that the ring does not hold.
func (r *Ring) Open(about About, sealed []byte) ([]byte, error) {
	id, ok := KeyOf(sealed)
	if !ok {
		return nil, fmt.Errorf(
			"open a %s: it is no sealed value",
			about.Purpose,
		)
	}

	aead := r.key(id)
	if aead == nil {
		aead = r.newer(id)
	}

	if aead == nil {
		return nil, fmt.Errorf(
			"open a %s: it is sealed under the key %v, which the key file does not hold",
			about.Purpose,
			id,
		)
	}

	head, rest := sealed[:headerSize], sealed[headerSize:]
	plain, err := aead.Open(
		nil,
		rest[:chacha20poly1305.NonceSizeX],
		rest[chacha20poly1305.NonceSizeX:],
		about.bind(head),
	)
	if err != nil {
		return nil, errors.New("open a " + about.Purpose +
			": it was changed, or is another's")
	}

	return plain, nil
}

// KeyOf returns the id of the key that a sealed value is under, and false if it is none.
func KeyOf(sealed []byte) (ID, bool) {
	if len(sealed) < overhead || sealed[0] != version {
		return ID{}, false
	}
	return ID(sealed[1:headerSize]), true
}

// bind writes the header and what the value is about so that no two read the same: each part
// after its length.
func (a About) bind(header []byte) []byte {
	b := bytes.Clone(header)
	for _, part := range [][]byte{[]byte(a.Purpose), a.Org, a.Row} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}

	return b
}
