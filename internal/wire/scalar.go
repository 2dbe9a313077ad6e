package wire

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"flexd/internal/flex"
)

func setText(v reflect.Value, b []byte, r *rule) *fault {
	switch {
	case r.values != nil:
		value, f := permitted(b, r.values)
		v.SetString(value)

		return f

	case r.only != "" && string(b) != r.only:
		return wrong(
			"value_error.str.regex",
			`string does not match regex "^%s$": write %[1]s`,
			r.only,
		)

	case len(b) > r.text:
		return wrong(
			"value_error.any_str.max_length",
			"ensure this value has at most %d bytes",
			r.text,
		)

	case len(b) == 0 && r.nonempty:
		return wrong(
			"value_error.any_str.min_length",
			"ensure this value has at least 1 characters",
		)

	case bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b):
		return faultNUL
	}

	if f := looksLike(string(b), r.like); f != nil {
		return f
	}

	v.SetString(string(b))

	return nil
}

// permitted finds a text among the values of an enumeration, whose blanks may be written as
// underscores.
func permitted(b []byte, values []string) (string, *fault) {
	for _, v := range values {
		if string(b) == v {
			return v, nil
		}
	}

	spaced := strings.ReplaceAll(string(b), "_", " ")
	if slices.Contains(values, spaced) {
		return spaced, nil
	}

	return "", wrong(
		"type_error.enum",
		"value is not a valid enumeration member; permitted: '%s'",
		strings.Join(values, "', '"),
	)
}

// looksLike holds text that is kept as written against the kind that it must read as.
func looksLike(s string, k kind) *fault {
	var err error
	switch k {
	case uuid:
		_, err = flex.ParseID[struct{}](s)
	case instant:
		_, err = parseTime(s)
	case day:
		_, err = flex.ParseDay(s)
	}

	if err != nil {
		return typeFaults[k]
	}

	return nil
}

func setNumber(v reflect.Value, b []byte, r *rule) *fault {
	n, err := strconv.ParseFloat(string(b), 64)
	if math.IsInf(n, 0) || math.IsNaN(n) {
		return faultFinite
	}

	if err != nil {
		return typeFaults[number]
	}

	v.SetFloat(n)

	return within(n, r)
}

func setInteger(v reflect.Value, b []byte, r *rule) *fault {
	n, err := strconv.ParseInt(string(b), 10, 64)
	// n is then the last integer on its side
	beyond := errors.Is(err, strconv.ErrRange)
	if err != nil && !beyond {
		return typeFaults[integer]
	}

	v.SetInt(n)

	if f := within(float64(n), r); f != nil || !beyond {
		return f
	}

	return typeFaults[integer]
}

// whole writes a JSON number that is an integer in another form, as 3600.0 or 36e2, in
// digits alone. It leaves any other as it is.
func whole(raw []byte) []byte {
	// up to which a float64 is the integer that was written
	const exact = 1 << 53
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !bytes.ContainsAny(raw, ".eE") {
		return raw
	}
	if n != math.Trunc(n) || math.Abs(n) > exact {
		return raw
	}

	return strconv.AppendInt(nil, int64(n), 10)
}

func within(n float64, r *rule) *fault {
	if r.min != nil && n < *r.min {
		return wrong(
			"value_error.number.not_ge",
			"ensure this value is greater than or equal to %s",
			plain(*r.min),
		)
	}

	if r.max != nil && n > *r.max {
		return wrong(
			"value_error.number.not_le",
			"ensure this value is less than or equal to %s",
			plain(*r.max),
		)
	}

	return nil
}

func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func setBoolean(v reflect.Value, b []byte) *fault {
	switch strings.ToLower(string(b)) {
	case "true", "1", "yes", "on", "t", "y":
		v.SetBool(true)
	case "false", "0", "no", "off", "f", "n":
		v.SetBool(false)
	default:
		return typeFaults[boolean]
	}

	return nil
}
