package wire

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// kind is what a value is on the wire.
type kind uint8

const (
	object kind = iota
	list
	text
	number
	integer
	boolean
	uuid
	instant
	wallTime
	day
)

// shape is a Go type as the wire sees it, compiled once from its struct tags.
type shape struct {
	kind    kind
	pointer bool // the Go value is a pointer, nil when absent
	fields  []field
	byName  map[string]int
	// by lower-case name, to tell a name in the wrong case
	byFold map[string]int
	elem   *shape // of a list
}

// field is one name of an object and the rules for its value.
type field struct {
	name string
	at   int // the struct field's index
	rule rule
	*shape
}

// rule is what a value must keep to, from the field's tag `wire:"..."`:
//
//	required     it must be given
//	min=N max=N  bounds of a number, both allowed
//	text=N       at most N bytes of text, in place of MaxText
//	items=N      at most N items of a list, in place of MaxItems
//	nonempty     at least one character, or one item
//	unique       no item of the list twice
//	only=TEXT    that text alone, which the interface gives as a pattern
//	enum=NAME    one of the values of that enumeration; blanks may be written as underscores
//	zoned        the instant must carry an offset
//	like=KIND    text that must read as a uuid, an instant or a date, but is kept as written
//	default=V    the value when it is not given; V holds no comma
//	null=V       the value that null stands for; without it null is as not given
type rule struct {
	required bool
	nonempty bool
	unique   bool
	zoned    bool
	min      *float64
	max      *float64
	text     int
	items    int
	enum     string
	only     string
	values   []string
	like     kind
	standIn  string
	null     string
}

var shapes sync.Map // of reflect.Type to *shape

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s, _ := shapes.LoadOrStore(t, compile(t))

	return s.(*shape)
}

// compile panics on a type that cannot be decoded: a fault in this package's structs, which
// its tests find, as they compile them all.
func compile(t reflect.Type) *shape {
	if t.Kind() == reflect.Pointer {
		s := *shapeOf(t.Elem())
		s.pointer = true

		return &s
	}

	switch t {
	case reflect.TypeFor[Time]():
		return &shape{kind: instant}

	case reflect.TypeFor[WallTime]():
		return &shape{kind: wallTime}

	case reflect.TypeFor[Day]():
		return &shape{kind: day}
	}

	switch t.Kind() {
	case reflect.String:
		return &shape{kind: text}

	case reflect.Float64:
		return &shape{kind: number}

	case reflect.Int, reflect.Int64:
		return &shape{kind: integer}

	case reflect.Bool:
		return &shape{kind: boolean}

	case reflect.Array: // the only arrays of the interface's structs are ids
		return &shape{kind: uuid}

	case reflect.Slice:
		return &shape{kind: list, elem: shapeOf(t.Elem())}

	case reflect.Struct:
		return compileObject(t)
	}

	panic(fmt.Sprintf("wire: %v cannot be decoded", t))
}

func compileObject(t reflect.Type) *shape {
	s := &shape{
		kind:   object,
		byName: map[string]int{},
		byFold: map[string]int{},
	}

	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			panic(fmt.Sprintf("wire: %v.%s has no name", t, f.Name))
		}

		s.byName[name], s.byFold[strings.ToLower(name)] = len(s.fields), len(s.fields)
		s.fields = append(s.fields, field{
			name,
			i,
			parseRule(f.Tag.Get("wire")),
			shapeOf(f.Type),
		})
	}

	if len(s.fields) > 64 {
		panic(fmt.Sprintf("wire: %v has more than 64 fields", t))
	}

	return s
}

func parseRule(tag string) rule {
	r := rule{text: MaxText, items: MaxItems}
	for word := range strings.SplitSeq(tag, ",") {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "":
		case "required":
			r.required = true

		case "nonempty":
			r.nonempty = true

		case "unique":
			r.unique = true

		case "zoned":
			r.zoned = true

		case "min":
			r.min = mustFloat(value)

		case "max":
			r.max = mustFloat(value)

		case "text":
			r.text = int(*mustFloat(value))

		case "items":
			r.items = int(*mustFloat(value))

		case "only":
			r.only = value

		case "enum":
			r.enum, r.values = value, enums[value]
			if r.values == nil {
				panic("wire: no enumeration " + value + " in enum.go")
			}

		case "like":
			r.like = map[string]kind{
				"uuid":    uuid,
				"instant": instant,
				"date":    day,
			}[value]

		case "default":
			r.standIn = value

		case "null":
			r.null = value

		default:
			panic("wire: no rule " + word)
		}
	}

	return r
}

func mustFloat(s string) *float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err)
	}

	return &f
}

// reach returns the value that v stands for, making what a pointer points to.
func (s *shape) reach(v reflect.Value) reflect.Value {
	if !s.pointer {
		return v
	}
	v.Set(reflect.New(v.Type().Elem()))

	return v.Elem()
}

// set reads one value that is neither an object nor a list from its text, which for JSON
// strings is what stands between the quotes.
func (s *shape) set(v reflect.Value, b []byte, r *rule) *fault {
	v = s.reach(v)
	switch s.kind {
	case text:
		return setText(v, b, r)

	case number:
		return setNumber(v, b, r)

	case integer:
		return setInteger(v, b, r)

	case boolean:
		return setBoolean(v, b)

	case instant:
		t, err := parseTime(b)
		if err != nil {
			return typeFaults[instant]
		}

		if t.Zoneless && r.zoned {
			return faultZone
		}

		*v.Addr().Interface().(*Time) = t

		return nil

	case uuid, wallTime, day:
		if v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(b) != nil {
			return typeFaults[s.kind]
		}

		return nil
	}

	return typeFaults[s.kind]
}
