package bankfile

import (
	"slices"
	"strconv"
	"strings"

	"flexd/internal/flex"
)

// Modulus is the published tables by which a sort code and an account number are checked to
// belong together: Vocalink's weights (valacdos.txt) and substitutions (scsubtab.txt).
//
// A sort code has no, one or two lines of weights. The fourteen digits of sort code and number,
// u v w x y z a b c d e f g h, are multiplied by the line's weights and added up; the method
// says what the sum must divide by. With two lines both must pass. Exceptions change a digit, a
// weight or the verdict: each is described where it is made.
type Modulus struct {
	lines       []modulusLine
	substitutes map[string]string // nil if the table is not there
}

// modulusLine is a line of weights.
type modulusLine struct {
	from      string
	to        string
	method    string
	weights   [modulusDigits]int
	exception int
}

const (
	modulusDigits = 14
	modulusMax    = 20_000 // lines of a table
)

// The positions of the digits that exceptions look at.
const (
	digitA = 6
	digitB = 7
	digitC = 8
	digitG = 12
	digitH = 13
)

// ModulusVerdict is what the check says.
type ModulusVerdict string

// The verdicts.
const (
	ModulusPassed ModulusVerdict = "passed"
	ModulusFailed ModulusVerdict = "failed"
	// the tables say nothing of the sort code
	ModulusUnchecked ModulusVerdict = "unchecked"
)

// ReadModulus reads the tables. The substitutions may be empty: what needs them is then not
// checked.
func ReadModulus(weights, substitutes string) (Modulus, error) {
	var (
		m   Modulus
		err error
	)

	m.lines, err = readWeights(weights)
	if err != nil || strings.TrimSpace(substitutes) == "" {
		return m, err
	}

	m.substitutes, err = readSubstitutes(substitutes)

	return m, err
}

// IsWeights reports whether a file looks like the table of weights, not of substitutions.
func IsWeights(text string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return len(strings.Fields(first)) > 2
}

// eachLine calls fn with the fields of each line that is not blank.
func eachLine(text string, fn func(fields []string) error) error {
	count := 0
	for i, line := range strings.Split(
		strings.TrimPrefix(text, "\uFEFF"),
		"\n",
	) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}

		count++
		if count > modulusMax {
			return flex.Fail(
				flex.TooLarge,
				"a modulus table has at most %d lines",
				modulusMax,
			)
		}

		if err := fn(fields); err != nil {
			return flex.Fail(flex.Invalid, "line %d: %v", i+1, err)
		}
	}

	if count == 0 {
		return flex.Fail(flex.Invalid, "the table is empty")
	}

	return nil
}

func readWeights(text string) ([]modulusLine, error) {
	var lines []modulusLine
	err := eachLine(text, func(fields []string) error {
		line, err := readWeightLine(fields)
		lines = append(lines, line)
		return err
	})

	return lines, err
}

func readWeightLine(fields []string) (modulusLine, error) {
	const head = 3
	if len(fields) != head+modulusDigits &&
		len(fields) != head+modulusDigits+1 {
		return modulusLine{}, flex.Fail(
			flex.Invalid,
			"%d fields; a line of weights has two sort codes, a method, %d weights and maybe an exception",
			len(fields),
			modulusDigits,
		)
	}

	line := modulusLine{
		from:   fields[0],
		to:     fields[1],
		method: fields[2],
	}

	if !isSortCode(line.from) || !isSortCode(line.to) || line.from > line.to {
		return line, flex.Fail(
			flex.Invalid,
			"%s to %s is no range of sort codes",
			line.from,
			line.to,
		)
	}

	if !slices.Contains([]string{"MOD10", "MOD11", "DBLAL"}, line.method) {
		return line, flex.Fail(
			flex.Invalid,
			"%s is neither MOD10 nor MOD11 nor DBLAL",
			line.method,
		)
	}

	var err error
	for i, text := range fields[head : head+modulusDigits] {
		line.weights[i], err = strconv.Atoi(text)
		if err != nil {
			return line, flex.Fail(
				flex.Invalid,
				"the weight %q is no number",
				text,
			)
		}
	}

	if len(fields) > head+modulusDigits {
		line.exception, err = strconv.Atoi(fields[head+modulusDigits])
	}

	if err != nil || line.exception < 0 || line.exception > lastException {
		return line, flex.Fail(
			flex.Invalid,
			"the exception %q is not known; they are 1 to %d",
			fields[len(fields)-1],
			lastException,
		)
	}

	return line, nil
}

// lastException is the highest of the published exceptions.
const lastException = 14

func readSubstitutes(text string) (map[string]string, error) {
	substitutes := map[string]string{}
	err := eachLine(text, func(fields []string) error {
		if len(fields) != 2 || !isSortCode(fields[0]) ||
			!isSortCode(fields[1]) {
			return flex.Fail(
				flex.Invalid,
				"a line of substitutions has two sort codes",
			)
		}

		substitutes[fields[0]] = fields[1]
		return nil
	})

	return substitutes, err
}

func isSortCode(s string) bool {
	return len(s) == 6 && strings.Trim(s, "0123456789") == ""
}

// Check checks a sort code of six digits and an account number of eight.
func (m Modulus) Check(sortCode, number string) ModulusVerdict {
	var lines []modulusLine
	for _, l := range m.lines {
		if l.from <= sortCode && sortCode <= l.to {
			lines = append(lines, l)
		}
	}

	digits, ok := readDigits(sortCode + number)
	if len(lines) == 0 || !ok {
		return ModulusUnchecked
	}

	// Exception 5 needs the other table.
	if lines[0].exception == 5 && m.substitutes == nil {
		return ModulusUnchecked
	}

	if lines[0].exception == 6 && isForeign(digits) || m.passes(lines, digits) {
		return ModulusPassed
	}

	return ModulusFailed
}

// isForeign reports whether exception 6 takes the account for one in a foreign currency, which
// is not checked.
func isForeign(digits [modulusDigits]int) bool {
	return digits[digitA] >= 4 && digits[digitA] <= 8 &&
		digits[digitG] == digits[digitH]
}

// eitherOf are the exceptions of a first line that make one of two passes enough: 2 with 9, 10
// with 11, 12 with 13.
var eitherOf = []int{2, 10, 12}

// passes applies one or two lines.
func (m Modulus) passes(lines []modulusLine, digits [modulusDigits]int) bool {
	first := m.passesLine(lines[0], digits)
	if len(lines) == 1 {
		return first
	}

	second := lines[1]
	if slices.Contains(eitherOf, lines[0].exception) {
		return first || m.passesLine(second, digits)
	}

	// Exception 3: the second check is left out if c is 6 or 9.
	if second.exception == 3 && (digits[digitC] == 6 || digits[digitC] == 9) {
		return first
	}

	return first && m.passesLine(second, digits)
}

// passesLine applies one line, with its exception.
func (m Modulus) passesLine(line modulusLine, digits [modulusDigits]int) bool {
	line.weights = line.adjusted(digits)
	digits = m.substituted(line, digits)
	remainder := line.remainder(digits)

	switch line.exception {
	case 4: // the remainder is the two last digits
		return remainder == 10*digits[digitG]+digits[digitH]
	case 5:
		return line.passes5(remainder, digits)
	case 14:
		return remainder == 0 || line.passes14(digits)
	}

	return remainder == 0
}

// adjusted returns the weights after exceptions 2, 7 and 10.
func (line modulusLine) adjusted(digits [modulusDigits]int) [modulusDigits]int {
	w := line.weights
	g9 := digits[digitG] == 9
	a09 := digits[digitA] == 0 || digits[digitA] == 9

	switch {
	case line.exception == 2 && digits[digitA] != 0 && !g9:
		return [modulusDigits]int{0, 0, 1, 2, 5, 3, 6, 4, 8, 7, 10, 9, 3, 1}
	case line.exception == 2 && digits[digitA] != 0:
		return [modulusDigits]int{0, 0, 0, 0, 0, 0, 0, 0, 8, 7, 10, 9, 3, 1}
	case line.exception == 7 && g9, line.exception == 10 && g9 && a09 && digits[digitB] == 9:
		// The sort code and the first two digits do not count.
		clear(w[:digitC])
	}

	return w
}

// substituted returns the digits after exceptions 5, 8 and 9, which put another sort code in
// the place of the account's own.
func (m Modulus) substituted(
	line modulusLine,
	digits [modulusDigits]int,
) [modulusDigits]int {
	var other string
	switch line.exception {
	case 5:
		var own strings.Builder
		for _, d := range digits[:digitA] {
			own.WriteByte(byte('0' + d))
		}

		other = m.substitutes[own.String()]
	case 8:
		other = "090126"
	case 9:
		other = "309634"
	}

	for i, c := range other {
		digits[i] = int(c - '0')
	}

	return digits
}

// remainder multiplies, adds up and divides.
func (line modulusLine) remainder(digits [modulusDigits]int) int {
	sum := 0
	for i, d := range digits {
		product := d * line.weights[i]
		if line.method == "DBLAL" {
			// its digits are added, not the product
			product = product/10 + product%10
		}

		sum += product
	}

	// Exception 1.
	if line.exception == 1 {
		sum += 27
	}

	modulus := 10
	if line.method == "MOD11" {
		modulus = 11
	}

	// A weight may be negative.
	return (sum%modulus + modulus) % modulus
}

// passes5 is the verdict of exception 5: g is the check digit of the first line, h of the
// second.
func (line modulusLine) passes5(remainder int, digits [modulusDigits]int) bool {
	if line.method == "DBLAL" {
		return digits[digitH] == (10-remainder)%10
	}
	return remainder != 1 && digits[digitG] == (11-remainder)%11
}

// passes14 is the second look of exception 14: if the last digit is 0, 1 or 9 it goes, and a
// zero comes before the others.
func (line modulusLine) passes14(digits [modulusDigits]int) bool {
	if !slices.Contains([]int{0, 1, 9}, digits[digitH]) {
		return false
	}

	moved := digits
	copy(moved[digitA+1:], digits[digitA:digitH])
	moved[digitA] = 0

	return line.remainder(moved) == 0
}

func readDigits(text string) ([modulusDigits]int, bool) {
	if len(text) != modulusDigits || strings.Trim(text, "0123456789") != "" {
		return [modulusDigits]int{}, false
	}

	var digits [modulusDigits]int
	for i, c := range text {
		digits[i] = int(c - '0')
	}

	return digits, true
}
