package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"slices"
	"strings"
	"sync"
)

// Texts seals short texts of columns by which rows are found and joined: the same text of the
// same kind is sealed alike every time, so a database compares sealed texts without opening
// them. Whoever has the database alone learns which of them are equal, and how long they are.
//
// A sealed text is TextMark and, in base64, an index, a tag and the text encrypted. The tag is the
// HMAC-SHA-256 of kind and text, cut to 16 bytes, and the nonce of AES-256 in counter mode (a
// synthetic nonce, as in RFC 5297). The index, if the kind has one, is the HMAC of the text's
// normal form: texts that differ in case or blanks alone begin alike.
type Texts struct {
	tag   *macs
	index *macs
	block cipher.Block
}

// TextMark begins every sealed text, and no ordinary one.
const TextMark = "\x0f1"

const (
	tagSize   = aes.BlockSize
	indexSize = 15 // a whole number of base64's groups
)

// IndexLength is how many characters of a sealed text with an index are alike for all texts of one
// normal form.
const IndexLength = len(TextMark) + indexSize/3*4

// NewTexts derives what seals texts from one key, by HKDF-SHA-256.
func NewTexts(secret [KeySize]byte) *Texts {
	derive := func(what string) [sha256.Size]byte {
		var k [sha256.Size]byte
		b, err := hkdf.Key(sha256.New, secret[:], nil, "flexd texts "+what, len(k))
		if err != nil {
			panic(err) // the length is a constant that HKDF can give
		}
		return [sha256.Size]byte(b)
	}

	key := derive("encryption")
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has the length of a key
	}

	return &Texts{
		tag:   newMACs(derive("tag")),
		index: newMACs(derive("index")),
		block: block,
	}
}

// SealedText reports whether a text looks sealed.
func SealedText(text string) bool { return strings.HasPrefix(text, TextMark) }

// Seal seals a text of a kind that has no index.
func (t *Texts) Seal(kind, text string) string {
	return t.box(nil, kind, text)
}

// SealIndexed seals a text of a kind that has an index, by its normal form.
func (t *Texts) SealIndexed(kind, text, normal string) string {
	index := t.index.of(kind, normal)
	return t.box(index[:indexSize], kind, text)
}

func (t *Texts) box(index []byte, kind, text string) string {
	tag := t.tag.of(kind, text)
	box := slices.Concat(index, tag[:tagSize], []byte(text))

	body := box[len(index)+tagSize:]
	cipher.NewCTR(t.block, tag[:tagSize]).XORKeyStream(body, body)

	return TextMark + base64.RawURLEncoding.EncodeToString(box)
}

// Index returns how every sealed text of a kind begins whose normal form this is.
func (t *Texts) Index(kind, normal string) string {
	index := t.index.of(kind, normal)
	return TextMark + base64.RawURLEncoding.EncodeToString(index[:indexSize])
}

// Open returns the text that was sealed as that kind, with an index or without. It fails if it was
// changed, is of another kind, or was sealed under another key.
func (t *Texts) Open(kind, sealed string, indexed bool) (string, error) {
	coded, marked := strings.CutPrefix(sealed, TextMark)
	box, err := base64.RawURLEncoding.Strict().DecodeString(coded)
	if err != nil || !marked {
		return "", errDamaged(kind)
	}

	size := tagSize
	if indexed {
		size += indexSize
	}
	if len(box) < size {
		return "", errDamaged(kind)
	}

	tag, text := box[size-tagSize:size], box[size:]
	cipher.NewCTR(t.block, tag).XORKeyStream(text, text)

	plain := string(text)
	want := t.tag.of(kind, plain)
	if !hmac.Equal(tag, want[:tagSize]) {
		return "", errDamaged(kind)
	}

	return plain, nil
}

func errDamaged(kind string) error {
	return errors.New("open a " + kind + ": it was changed, or is under another key")
}

// macs authenticates texts under one key. Hashes are kept, for their first blocks are of the key
// alone.
type macs struct{ pool sync.Pool }

func newMACs(key [sha256.Size]byte) *macs {
	return &macs{sync.Pool{New: func() any {
		return &keyedMAC{Hash: hmac.New(sha256.New, key[:])}
	}}}
}

type keyedMAC struct {
	hash.Hash
	message []byte
}

// of authenticates a text of a kind; the kind's length before it keeps the two apart.
func (m *macs) of(kind, text string) [sha256.Size]byte {
	h := m.pool.Get().(*keyedMAC)
	defer m.pool.Put(h)

	h.message = binary.AppendUvarint(h.message[:0], uint64(len(kind)))
	h.message = append(h.message, kind...)
	h.message = append(h.message, text...)

	h.Reset()
	h.Write(h.message)

	var sum [sha256.Size]byte
	h.Sum(sum[:0])

	return sum
}
