package ledger

import (
	"encoding/binary"
	"fmt"
	"regexp"

	"flexd/internal/flex"
)

// AttemptsMax is how often a payment can be tried: a reference has two digits for it.
const AttemptsMax = 99

// referenceDigits are those of a reference: no sign that is easily taken for another.
const referenceDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// Reference is what names an attempt at a payment on a bank statement: at most 18
// characters that every payment format takes. The last fifty bits of the withdrawal's id
// tell it from others.
func Reference(id flex.TransactionID, attempt int) string {
	bits := binary.BigEndian.Uint64(id[8:])
	var text [10]byte
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = referenceDigits[bits&31]
		bits >>= 5
	}

	return fmt.Sprintf("FLEXD%s-%d", text[:], attempt)
}

// references are the texts that Reference makes: their attempts begin at 1.
var references = regexp.MustCompile(`^FLEXD[` + referenceDigits + `]{10}-[1-9][0-9]?$`)

// IsReference reports whether a text can be a reference of Reference's. A bank tells of others too.
func IsReference(text string) bool { return references.MatchString(text) }
