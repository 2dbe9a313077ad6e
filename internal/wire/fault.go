package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"flexd/internal/flex"
)

// fault is what is wrong with a value: a machine word and what would be right. A nil
// fault is none.
type fault struct{ word, msg string }

func wrong(word, format string, args ...any) *fault {
	return &fault{word, fmt.Sprintf(format, args...)}
}

// The faults that need no figures.
var (
	faultMissing = wrong("value_error.missing", "field required")
	faultNull    = wrong(
		"type_error.none.not_allowed",
		"none is not an allowed value: give one",
	)
	faultTwice = wrong(
		"value_error.duplicate",
		"given more than once: give it once",
	)
	faultNUL = wrong(
		"value_error.any_str.characters",
		"the text holds a NUL character or is not UTF-8",
	)
	faultDepth = wrong(
		"value_error.depth",
		"more than %d objects and lists inside each other",
		MaxDepth,
	)
	faultZone = wrong(
		"value_error.datetime.zone",
		"the offset from UTC is missing: write it like 2026-01-15T10:30:00Z or 2026-01-15T11:30:00+01:00",
	)
	faultFinite = wrong(
		"value_error.number.not_finite_number",
		"ensure this value is a finite number",
	)
	faultUnique = wrong(
		"value_error.list.unique_items",
		"the list has duplicated items: give each once",
	)
)

// typeFaults says what a value of each kind has to look like.
var typeFaults = [...]*fault{
	object:  wrong("type_error.dict", "value is not a valid dict: give an object, {...}"),
	list:    wrong("type_error.list", "value is not a valid list: give an array, [...]"),
	text:    wrong("type_error.str", "str type expected: give a string in quotes"),
	number:  wrong("type_error.float", "value is not a valid float: give a number, without quotes"),
	integer: wrong("type_error.integer", "value is not a valid integer: give a whole number, without quotes"),
	boolean: wrong(
		"type_error.bool",
		"value could not be parsed to a boolean: give true or false, without quotes",
	),
	uuid: wrong(
		"type_error.uuid",
		"value is not a valid uuid: write it like b2c3d4e5-f6a7-8901-bcde-f23456789012",
	),
	instant:  wrong("value_error.datetime", "invalid datetime format: write it like 2026-01-15T10:30:00Z"),
	wallTime: wrong("value_error.time", "invalid time format: write a time of day like 07:00:00"),
	day:      wrong("value_error.date", "invalid date format: write it like 2026-01-15"),
}

// place is one step from a request's root to a value: a name, or a position in a list.
type place struct {
	name  string
	index int
}

func (p place) text() string {
	if p.name == "" {
		return strconv.Itoa(p.index)
	}
	return p.name
}

// faultAt is f as the interface shows it.
func faultAt(where string, path []place, f *fault) flex.Fault {
	loc := make([]string, 1, 1+len(path))
	loc[0] = where

	for _, p := range path {
		loc = append(loc, p.text())
	}

	return flex.Fault{
		Loc:  loc,
		Msg:  f.msg,
		Type: f.word,
	}
}

// invalid is the error for faults, or nil for none.
func invalid(faults []flex.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &flex.Error{Kind: flex.Invalid, Faults: faults}
}

// Join puts the faults of a request's parts (path, query, body) into one error, so that all
// are reported at once. An error of another kind than flex.Invalid is returned alone, the
// first of them. With no error at all it is nil.
func Join(errs ...error) error {
	var faults []flex.Fault
	for _, err := range errs {
		if err == nil {
			continue
		}

		e, ok := errors.AsType[*flex.Error](err)
		if !ok || e.Kind != flex.Invalid || len(e.Faults) == 0 {
			return err
		}

		faults = append(faults, e.Faults...)
	}

	return invalid(faults)
}

// Flat writes faults as one text, for the operations whose 422 has a string for a detail.
func Flat(faults []flex.Fault) string {
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = strings.Join(f.Loc, ".") + ": " + f.Msg
	}

	return strings.Join(lines, "; ")
}
