package directory

import (
	"regexp"
	"strings"

	"flexd/internal/flex"
)

// Postcode is a postcode in its normal form: large letters, one blank before the last
// three characters.
type Postcode string

// maxPostcodeText is the longest text that is looked at.
const maxPostcodeText = 32

var (
	lenient = regexp.MustCompile(`^[A-Z]{1,2}[0-9][A-Z0-9]?[0-9][A-Z]{2}$`)
	// strict is the form that postcodes are given out in: no Q, V or X first, no I, J or Z
	// second, few letters third and fourth, no C, I, K, M, O or V in the last two.
	strict = regexp.MustCompile(`^(GIR0AA|([A-PR-UWYZ][0-9]{1,2}|[A-PR-UWYZ][A-HK-Y][0-9]{1,2}|` +
		`[A-PR-UWYZ][0-9][A-HJKPSTUW]|[A-PR-UWYZ][A-HK-Y][0-9][ABEHMNPRVWXY])[0-9][ABD-HJLNP-UW-Z]{2})$`)
)

// ParsePostcode reads a postcode as people write it, with blanks, dots and dashes anywhere
// and in small or large letters. It asks for the right letters and digits in the right
// places, not that such a postcode was ever given out. The failure is a flex.Invalid.
func ParsePostcode(text string) (Postcode, error) {
	s := strip(strings.ReplaceAll(text, ".", ""))
	if len(text) > maxPostcodeText || !lenient.MatchString(s) {
		if len(text) > maxPostcodeText {
			text = text[:maxPostcodeText] + "…"
		}
		return "", flex.Fail(
			flex.Invalid,
			"%q is not a postcode; one looks like SW1A 2AA",
			text,
		)
	}

	return normal(s), nil
}

func normal(s string) Postcode {
	return Postcode(s[:len(s)-3] + " " + s[len(s)-3:])
}

// FindPostcode reads a postcode as ParsePostcode does, and mends letters typed for digits
// and digits typed for letters if that makes it one that could be in use.
func FindPostcode(text string) (Postcode, error) {
	p, err := ParsePostcode(text)
	if err == nil {
		return p, nil
	}
	mended, ok := RepairPostcode(text)
	if ok && mended.Strict() && areas[mended.Area()] {
		return mended, nil
	}

	return "", err
}

// RepairPostcode mends O and 0, I and 1 where the place decides which it must be, and
// leaves the others as they are. It is false if what comes out is no postcode.
func RepairPostcode(text string) (Postcode, bool) {
	s := strip(strings.ReplaceAll(text, ".", ""))
	if len(s) < 5 || len(s) > 7 || !allAlphanumeric(s) {
		return "", false
	}

	cut := len(s) - 3
	mended := correctKinds(s[:cut], outwardForms[cut]) + correctKinds(s[cut:], []string{"9AA"})
	if !lenient.MatchString(mended) {
		return "", false
	}

	return normal(mended), true
}

// outwardForms are the forms of a postcode's first part by its length.
var outwardForms = [5][]string{
	2: {"A9"},
	3: {"A99", "A9A", "AA9"},
	4: {"AA99", "AA9A"},
}

// correctKinds turns each character into the kind that all forms which can still be meant have at
// its place, if they agree.
func correctKinds(s string, forms []string) string {
	var fit []string
	for _, f := range forms {
		if fits(s, f) {
			fit = append(fit, f)
		}
	}

	out := []byte(s)
	for i := range out {
		letter, digit := false, false
		for _, f := range fit {
			letter, digit = letter || f[i] == 'A', digit || f[i] == '9'
		}

		if letter && !digit {
			out[i] = asLetter(out[i])
		} else if digit && !letter {
			out[i] = asDigit(out[i])
		}
	}

	return string(out)
}

func fits(s, form string) bool {
	for i := range len(s) {
		isDigit := asDigit(s[i]) >= '0' && asDigit(s[i]) <= '9'
		isLetter := asLetter(s[i]) >= 'A'
		if form[i] == 'A' && !isLetter {
			return false
		}
		if form[i] == '9' && !isDigit {
			return false
		}
	}

	return true
}

func asLetter(c byte) byte {
	switch c {
	case '0':
		return 'O'
	case '1':
		return 'I'
	}

	return c
}

func asDigit(c byte) byte {
	switch c {
	case 'O':
		return '0'
	case 'I':
		return '1'
	}

	return c
}

// Outward returns the part before the blank.
func (p Postcode) Outward() string {
	out, _, _ := strings.Cut(string(p), " ")
	return out
}

// Area returns the letters that the postcode starts with.
func (p Postcode) Area() string {
	return p.Outward()[:strings.IndexAny(p.Outward()+"0", "0123456789")]
}

// Strict reports whether the postcode keeps the rules by which postcodes are given out.
func (p Postcode) Strict() bool {
	return strict.MatchString(strings.Replace(string(p), " ", "", 1))
}

// InGB reports whether the postcode is in Great Britain and so in its electricity market.
// Northern Ireland, the Channel Islands and the Isle of Man are not.
func (p Postcode) InGB() bool {
	switch p.Area() {
	case "BT", "GY", "JE", "IM":
		return false
	}

	return true
}

// areas are the letters that postcodes in use start with.
var areas = func() map[string]bool {
	m := map[string]bool{}
	for a := range strings.FieldsSeq(`AB AL B BA BB BD BH BL BN BR BS BT CA CB CF CH CM CO CR CT CV CW
		DA DD DE DG DH DL DN DT DY E EC EH EN EX FK FY G GL GU GY HA HD HG HP HR HS HU HX IG IM IP IV
		JE KA KT KW KY L LA LD LE LL LN LS LU M ME MK ML N NE NG NN NP NR NW OL OX PA PE PH PL PO PR
		RG RH RM S SA SE SG SK SL SM SN SO SP SR SS ST SW SY TA TD TF TN TQ TR TS TW UB
		W WA WC WD WF WN WR WS WV YO ZE`) {
		m[a] = true
	}
	return m
}()
