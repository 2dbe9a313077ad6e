package bankfile_test

import (
	"testing"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
)

// FuzzReadModulus: what is wrong with a table is the file's fault, and whatever the tables say, an
// account has the same verdict each time, and none if it is not written in digits.
func FuzzReadModulus(f *testing.F) {
	f.Add(someWeights, someSubstitutes, "938173", "00000000")
	f.Add("\ufeff089000 089999 MOD10 0 0 0 0 0 0 7 1 3 7 1 3 7 1\r\n", "", "089999", "66374958")
	f.Add("089000 089999 DBLAL -1 0 0 0 0 0 99999999999 1 3 7 1 3 7 1 14", "", "089999", "a")
	f.Add("089000 089999 MOD10 0 0 0 0 0 0 7 1 3 7 1 3 7 1 15", "1 2", "", "")
	f.Fuzz(func(t *testing.T, weights, substitutes, sortCode, number string) {
		m, err := bankfile.ReadModulus(weights, substitutes)
		if err != nil {
			if kind := flex.KindOf(err); kind != flex.Invalid && kind != flex.TooLarge {
				t.Fatalf("%q, %q: %v", weights, substitutes, err)
			}
			return
		}

		verdict := m.Check(sortCode, number)
		if again := m.Check(sortCode, number); again != verdict {
			t.Fatalf("%q: %s %s is %s, then %s", weights, sortCode, number, verdict, again)
		}

		digits := 0
		for _, c := range sortCode + number {
			if c >= '0' && c <= '9' {
				digits++
			}
		}
		if digits != 14 && verdict != bankfile.ModulusUnchecked {
			t.Fatalf("%q: %q %q is %s", weights, sortCode, number, verdict)
		}
	})
}
