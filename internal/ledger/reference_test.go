package ledger_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// A reference is distinguished from what a bank calls other payments.
func TestIsReference(t *testing.T) {
	for _, attempt := range []int{1, 9, 10, ledger.AttemptsMax} {
		for _, id := range []flex.TransactionID{{}, {15: 1}, {8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff, 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}} {
			if text := ledger.Reference(id, attempt); !ledger.IsReference(text) {
				t.Errorf("%s is none", text)
			}
		}
	}

	for _, text := range []string{"", "FLEXD", "FLEXD0000000000", "FLEXD0000000000-0", "FLEXD0000000000-100", "FLEXD000000000I-1", "FLEXD00000000000-1", " FLEXD0000000000-1", "RENT MARCH"} {
		if ledger.IsReference(text) {
			t.Errorf("%q is one", text)
		}
	}
}
