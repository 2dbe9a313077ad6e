package directory

import (
	"fmt"
	"strings"
	"unicode"

	"flexd/internal/flex"
)

// MPAN is the number of a metering point: thirteen digits, of which the first two name
// the distributor and the last checks the others. A right check digit is necessary, never
// sufficient: some slips of the pen pass it. It prints as its last four digits.
type MPAN struct{ core string }

// The lengths of the two forms of the number, and the longest text that is looked at.
const (
	coreLen     = 13
	fullLen     = 21
	maxMPANText = 64
)

// ParseMPAN reads a metering point's number as people write it: 13 digits, or the 21
// characters of a bill, with blanks and dashes anywhere. The failure is a flex.Malformed
// whose Details list everything that is wrong.
func ParseMPAN(text string) (MPAN, error) {
	if len(text) > maxMPANText {
		return MPAN{}, &flex.Error{
			Kind: flex.Malformed,
			Details: []string{
				fmt.Sprintf("an MPAN is 13 digits; this text has more than %d characters", maxMPANText)},
		}
	}

	s := strip(text)
	if len(s) == fullLen+1 && s[0] == 'S' { // the large S that bills print before the number
		s = s[1:]
	}

	if len(s) == fullLen && allDigits(s[:5]) && allAlphanumeric(s[5:8]) {
		// without the bill's top line: profile class, time switch class, loss factor class
		s = s[8:]
	}

	if reasons := mpanReasons(s); len(reasons) > 0 {
		return MPAN{}, &flex.Error{Kind: flex.Malformed, Details: reasons}
	}

	return MPAN{s}, nil
}

// strip removes blanks and dashes of every kind and turns letters large.
func strip(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) {
			return -1
		}
		return unicode.ToUpper(r)
	}, text)
}

// mpanReasons lists what is wrong with the thirteen digits.
func mpanReasons(s string) []string {
	if s == "" {
		return []string{"the MPAN is empty; it should be 13 digits"}
	}

	var reasons []string
	for _, r := range s {
		if r < '0' || r > '9' {
			reasons = append(
				reasons,
				fmt.Sprintf("%q is not a digit from 0 to 9", r),
			)

			break
		}
	}

	if n := len([]rune(s)); n != coreLen {
		reasons = append(
			reasons,
			fmt.Sprintf(
				"it has %d characters; an MPAN has 13 digits, or 21 with the top line of the bill",
				n,
			),
		)
	}

	if len(reasons) > 0 {
		return reasons
	}

	if want := checkDigit(s); s[coreLen-1] != want {
		reasons = append(
			reasons,
			fmt.Sprintf(
				"the last digit is %c, but the first twelve call for %c: one of the digits is wrong",
				s[coreLen-1],
				want,
			),
		)
	}

	if s[0] == '0' {
		reasons = append(
			reasons,
			fmt.Sprintf("no distributor has the number %s", s[:2]),
		)
	}

	return reasons
}

// weights are the primes from 3 to 43 without 11, as the industry sets them.
var weights = [coreLen - 1]int{3, 5, 7, 13, 17, 19, 23, 29, 31, 37, 41, 43}

// checkDigit returns the digit that the first twelve call for. The remainders 0 and 10
// share the digit 0.
func checkDigit(s string) byte {
	sum := 0
	for i, w := range weights {
		sum += int(s[i]-'0') * w
	}

	return byte('0' + sum%11%10)
}

func allDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

func allAlphanumeric(s string) bool {
	return strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// Core returns the thirteen digits.
func (m MPAN) Core() string { return m.core }

// String shows the last four digits alone.
func (m MPAN) String() string { return Mask(m.core) }

// GoString shows the last four digits alone.
func (m MPAN) GoString() string { return Mask(m.core) }

// Mask returns a number as logs may show it: its last four digits.
func Mask(mpan string) string {
	const shown = 4
	if len(mpan) <= shown {
		return "…"
	}

	return "…" + mpan[len(mpan)-shown:]
}
