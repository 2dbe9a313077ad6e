package main

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// form is the flag of a command that can print its result as JSON.
type form struct {
	JSON bool `help:"Print as JSON." name:"json"`
}

// print prints an outcome: as one JSON document, or as the text.
func (f form) print(c console, outcome any, format string, parts ...any) error {
	if f.JSON {
		return c.json(outcome)
	}

	_, err := fmt.Fprintf(c.out, format, parts...)

	return err
}

// always is the same flag for commands that have no other form, so that a script need not know
// which commands have one.
type always struct {
	JSON bool `help:"Has no effect: the output is always JSON." name:"json"`
}

// fields are an outcome's fields.
type fields = map[string]any

// reader reads the text of a flag of one type.
type reader struct {
	expected string // what would be right, as in "a number such as 7.4"
	read     func(into reflect.Value, text string) error
}

// Decode reads the value, or returns what is wrong with it and what would be right. kong adds
// the flag's name in front.
func (r reader) Decode(ctx *kong.DecodeContext, into reflect.Value) error {
	token, err := ctx.Scan.PopValue("value")
	if err != nil {
		return fmt.Errorf("give %s", r.expected)
	}

	text, ok := token.Value.(string) // PopValueInto would mend what is not UTF-8
	if !ok {
		text = fmt.Sprint(token.Value)
	}

	if r.read(into, text) != nil {
		return fmt.Errorf("%q is not %s", text, r.expected)
	}

	return nil
}

// How many of a list are printed at most. The types are those of the flags --limit.
type (
	listLimit     int
	dispatchLimit int
	actLimit      int
)

// The limits of these flags.
const (
	listLimitMax     = 5000
	dispatchLimitMax = 1000
	// the export of acts has them all
	actLimitMax = 10_000
)

// upTo returns the decoder of a limit between 1 and its maximum.
func upTo(most int64) reader {
	return reader{
		fmt.Sprintf("a whole number from 1 to %d, such as 20", most),
		func(into reflect.Value, text string) error {
			err := readInteger(into, text)
			if err == nil && (into.Int() < 1 || into.Int() > most) {
				err = strconv.ErrRange
			}

			return err
		},
	}
}

// readers has the readers of flags, by type: for types of Go, and for those of limits.
func readers() kong.Option {
	whole := reader{"a whole number such as 20", readInteger}

	return kong.OptionFunc(func(k *kong.Kong) error {
		return errors.Join(
			kong.KindMapper(reflect.Float64, reader{"a number such as 7.4", readNumber}).Apply(k),
			kong.KindMapper(reflect.String, reader{"text in UTF-8, such as Acme", readText}).Apply(k),
			kong.KindMapper(reflect.Int, whole).Apply(k),
			kong.KindMapper(reflect.Int64, whole).Apply(k),
			kong.KindMapper(reflect.Uint64, reader{
				"a whole number such as 20, and not below 0",
				readUnsigned,
			}).Apply(k),
			kong.TypeMapper(reflect.TypeFor[listLimit](), upTo(listLimitMax)).Apply(k),
			kong.TypeMapper(reflect.TypeFor[dispatchLimit](), upTo(dispatchLimitMax)).Apply(k),
			kong.TypeMapper(reflect.TypeFor[actLimit](), upTo(actLimitMax)).Apply(k),
			kong.TypeMapper(reflect.TypeFor[time.Duration](), reader{
				"a time with its unit, such as 30s, 15m, 1h30m or 24h",
				readDuration,
			}).Apply(k),
			kong.TypeMapper(reflect.TypeFor[time.Time](), reader{
				"an instant such as 2026-01-15T17:00:00Z",
				readInstant,
			}).Apply(k),
			kong.TypeMapper(reflect.TypeFor[netip.Prefix](), reader{
				"a network such as 192.0.2.0/24 or 2001:db8::/48",
				readNetwork,
			}).Apply(k),
		)
	})
}

func readNumber(into reflect.Value, text string) error {
	v, err := strconv.ParseFloat(text, 64)
	into.SetFloat(v)
	if v-v != 0 {
		err = strconv.ErrRange // infinite, or no number
	}

	return err
}

// readText accepts any text that a record can store. A database, an audit log and JSON cannot
// store other bytes.
func readText(into reflect.Value, text string) error {
	if !utf8.ValidString(text) {
		return strconv.ErrSyntax
	}

	into.SetString(text)

	return nil
}

func readInteger(into reflect.Value, text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	into.SetInt(v)
	return err
}

func readUnsigned(into reflect.Value, text string) error {
	v, err := strconv.ParseUint(text, 10, 64)
	into.SetUint(v)
	return err
}

func readDuration(into reflect.Value, text string) error {
	v, err := time.ParseDuration(text)
	into.SetInt(int64(v))
	return err
}

func readInstant(into reflect.Value, text string) error {
	v, err := time.Parse(time.RFC3339, text)
	into.Set(reflect.ValueOf(v))
	return err
}

func readNetwork(into reflect.Value, text string) error {
	v, err := netip.ParsePrefix(text)
	into.Set(reflect.ValueOf(v))
	return err
}

// negative is a number below zero, as in --kw -5.
var negative = regexp.MustCompile(`^-[0-9.]`)

// joinNegatives writes a flag and its negative number as one word, because the parser would
// take the number for a flag. Commands take such numbers only as values of flags.
func joinNegatives(args []string) []string {
	var joined []string
	for i, arg := range args {
		if arg == "--" {
			return append(joined, args[i:]...)
		}

		last := len(joined) - 1
		if negative.MatchString(arg) && last >= 0 && isBareFlag(joined[last]) {
			joined[last] += "=" + arg
			continue
		}

		joined = append(joined, arg)
	}

	return joined
}

// isBareFlag reports whether a word is a flag without a value.
func isBareFlag(arg string) bool {
	return strings.HasPrefix(arg, "--") && !strings.Contains(arg, "=")
}
