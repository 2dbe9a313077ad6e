package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"flexd/internal/flex"
)

// ReadBody reads a request's body whole, or fails with flex.TooLarge if it is longer than
// limit bytes, or with BrokenOff.
func ReadBody(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, BrokenOff(err)
	}

	if int64(len(b)) > limit {
		return nil, flex.Fail(
			flex.TooLarge,
			"the body is longer than %d bytes",
			limit,
		)
	}

	return b, nil
}

// BrokenOff is the failure of a body that could not be read to its end, which is its
// sender's or the network's and none of ours.
func BrokenOff(err error) error {
	return fmt.Errorf(
		"%w: %w",
		flex.Fail(
			flex.Malformed,
			"the body broke off, or is not framed as its header says: send it again",
		),
		err,
	)
}

// Decode reads a JSON body as a T, one of this package's request structs. The error is a
// flex.Error of kind Invalid with every fault of the body, or the only one if it is not
// JSON at all. Unknown names are noted in ignored, unless it is nil.
func Decode[T any](body []byte, ignored *Ignored) (T, error) {
	var v T
	d := newDecoder(body)
	err := d.document(shapeOf(reflect.TypeFor[T]()), reflect.ValueOf(&v).Elem())
	ignored.join(d.ignored)

	return v, err
}

// decoder walks a JSON text along a shape and gathers the faults on its way.
type decoder struct {
	json   *jsontext.Decoder
	where  string
	path   []place
	faults []flex.Fault
	plain  []byte // of the last string that had escapes

	ignored Ignored

	// each, if set, takes the items of the outermost list as they come, in place of
	// their being kept. An item is valid until the next call.
	each func(item reflect.Value) error
}

func newDecoder(body []byte) *decoder {
	return &decoder{
		json:  jsontext.NewDecoder(bytes.NewBuffer(body)),
		where: "body",
	}
}

func (d *decoder) document(s *shape, v reflect.Value) error {
	err := d.value(s, v, &rule{
		required: true,
		items:    MaxItems,
		text:     MaxText,
	})
	if err != nil {
		return d.broken(err)
	}

	if _, err := d.json.ReadToken(); err == nil {
		return d.broken(errTrailing)
	} else if !errors.Is(err, io.EOF) {
		return d.broken(err)
	}

	return invalid(d.faults)
}

func (d *decoder) fault(f *fault) {
	if len(d.faults) < MaxFaults {
		d.faults = append(d.faults, faultAt(d.where, d.path, f))
	}
}

// broken is the error for a text that is not JSON, or not JSON that can be read in one way
// only. It stands alone: what was found before it may be wrong.
func (d *decoder) broken(err error) error {
	syntax, isSyntax := errors.AsType[*jsontext.SyntacticError](err)
	shown, isShown := errors.AsType[*flex.Error](err)

	switch {
	case errors.Is(err, errDepth):
		return invalid([]flex.Fault{faultAt(d.where, d.path, faultDepth)})

	case errors.Is(err, errTrailing):
		return d.notJSON(d.json.InputOffset(), err)

	case isSyntax && errors.Is(err, jsontext.ErrDuplicateName):
		f := flex.Fault{
			Loc:  []string{d.where},
			Msg:  faultTwice.msg,
			Type: faultTwice.word,
		}

		for token := range syntax.JSONPointer.Tokens() {
			f.Loc = append(f.Loc, token)
		}

		return invalid([]flex.Fault{f})

	case isSyntax:
		return d.notJSON(syntax.ByteOffset, syntax.Err)

	case errors.Is(err, io.EOF): // nothing but white space
		return invalid([]flex.Fault{faultAt(d.where, nil, faultMissing)})

	case isShown:
		return shown
	}

	return fmt.Errorf("reading the request's body: %w", err)
}

func (d *decoder) notJSON(offset int64, err error) error {
	at := strconv.FormatInt(offset, 10)
	return invalid([]flex.Fault{{
		Loc:  []string{d.where, at},
		Msg:  "not JSON at byte " + at + ": " + err.Error(),
		Type: "value_error.jsondecode",
	}})
}

var (
	errDepth    = errors.New("too deep")
	errTrailing = errors.New("there is more after the end of the value")
)

// value reads the next value into v. Its error is one of the text, not of the value.
func (d *decoder) value(s *shape, v reflect.Value, r *rule) error {
	k := d.json.PeekKind()
	if k == 'n' {
		if r.required {
			d.fault(faultNull)
		}

		if r.null != "" && s.kind == object {
			s.reach(v)
		} else if r.null != "" {
			s.set(v, []byte(r.null), r)
		}

		return d.json.SkipValue()
	}

	if k == '{' && s.kind == object {
		return d.object(s, s.reach(v))
	}

	if k == '[' && s.kind == list {
		return d.list(s, s.reach(v), r)
	}

	if !s.takes(k) {
		if k != 0 {
			d.fault(typeFaults[s.kind])
		}
		return d.skip()
	}

	raw, err := d.json.ReadValue()
	if err != nil {
		return err
	}

	if s.kind == integer {
		raw = whole(raw)
	}

	if f := s.set(v, d.unquote(raw), r); f != nil {
		d.fault(f)
	}

	return nil
}

// takes reports whether values of the shape, not an object or a list, are written in the
// given JSON kind.
func (s *shape) takes(k jsontext.Kind) bool {
	switch s.kind {
	case number, integer:
		return k == '0'
	case boolean:
		return k == 't' || k == 'f'
	case object, list:
		return false
	}

	return k == '"'
}

// unquote returns what a JSON string stands for, and any other value as it is. The bytes
// are valid until the next call.
func (d *decoder) unquote(raw []byte) []byte {
	if raw[0] != '"' {
		return raw
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}

	// the decoder has checked it
	d.plain, _ = jsontext.AppendUnquote(d.plain[:0], raw)

	return d.plain
}

func (d *decoder) enter() error {
	if d.json.StackDepth() >= MaxDepth {
		return errDepth
	}
	_, err := d.json.ReadToken()

	return err
}

func (d *decoder) object(s *shape, v reflect.Value) error {
	if err := d.enter(); err != nil {
		return err
	}

	s.setDefaults(v)

	var given uint64
	before := len(d.ignored.Names)
	for {
		if d.json.PeekKind() == '}' {
			d.missing(s, given, before)
			_, err := d.json.ReadToken()
			return err
		}

		raw, err := d.json.ReadValue()
		if err != nil {
			return err
		}

		i, known := s.byName[string(d.unquote(raw))]
		if !known {
			err := d.unknown(s, &given, string(d.unquote(raw)))
			if err != nil {
				return err
			}
			continue
		}

		f := &s.fields[i]
		given |= 1 << i

		d.path = append(d.path, place{name: f.name})
		if err := d.value(f.shape, v.Field(f.at), &f.rule); err != nil {
			return err
		}

		d.path = d.path[:len(d.path)-1]
	}
}

// setDefaults sets the fields that have a value when they are not given.
func (s *shape) setDefaults(v reflect.Value) {
	for i := range s.fields {
		if f := &s.fields[i]; f.rule.standIn != "" {
			f.set(v.Field(f.at), []byte(f.rule.standIn), &f.rule)
		}
	}
}

// unknown passes over a name that the interface does not have, unless it is one that it
// has in another case.
func (d *decoder) unknown(s *shape, given *uint64, name string) error {
	d.path = append(d.path, place{name: name})
	if i, ok := s.byFold[strings.ToLower(name)]; ok {
		*given |= 1 << i
		d.fault(wrong(
			"value_error.name",
			"names are exact: write %s",
			s.fields[i].name,
		))
	} else {
		d.ignored.add(s, d.path[:len(d.path)-1], name)
	}

	err := d.skip()
	if err == nil {
		d.path = d.path[:len(d.path)-1]
	}

	return err
}

// missing reports the required fields that an object has not. Its unknown names are among those
// from the given one.
func (d *decoder) missing(s *shape, given uint64, from int) {
	var unknown []IgnoredName
	for _, n := range d.ignored.Names[from:] {
		if len(n.In) == len(d.path) { // not of an object within
			unknown = append(unknown, n)
		}
	}

	for i := range s.fields {
		if f := &s.fields[i]; f.rule.required && given&(1<<i) == 0 {
			d.path = append(d.path, place{name: f.name})
			d.fault(missing(f.name, unknown))
			d.path = d.path[:len(d.path)-1]
		}
	}
}

func (d *decoder) list(s *shape, v reflect.Value, r *rule) error {
	if err := d.enter(); err != nil {
		return err
	}

	itemRule := *r
	itemRule.required, itemRule.nonempty = true, false
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	item := reflect.New(v.Type().Elem()).Elem()
	n := 0

	for ; d.json.PeekKind() != ']'; n++ {
		d.path = append(d.path, place{index: n})
		if err := d.item(s, v, item, &itemRule, n); err != nil {
			return err
		}

		d.path = d.path[:len(d.path)-1]
	}

	if n > r.items {
		d.fault(wrong(
			"value_error.list.max_items",
			"ensure this value has at most %d items",
			r.items,
		))
	} else if n == 0 && r.nonempty {
		d.fault(wrong(
			"value_error.list.min_items",
			"ensure this value has at least 1 items",
		))
	}

	_, err := d.json.ReadToken()

	return err
}

// item reads item n of a list, by way of the one given.
func (d *decoder) item(s *shape, v, item reflect.Value, r *rule, n int) error {
	if n >= r.items {
		return d.skip()
	}

	item.SetZero()
	before := len(d.faults)

	if err := d.value(s.elem, item, r); err != nil {
		return err
	}
	if d.each != nil && len(d.path) == 2 {
		return d.each(item)
	}

	if r.unique && len(d.faults) == before && contains(v, item) {
		d.fault(faultUnique)
	}

	v.Set(reflect.Append(v, item))

	return nil
}

func contains(list, item reflect.Value) bool {
	for i := range list.Len() {
		if list.Index(i).Equal(item) {
			return true
		}
	}

	return false
}

// skip passes over a value, however deep within MaxDepth.
func (d *decoder) skip() error {
	for depth := d.json.StackDepth(); ; {
		k := d.json.PeekKind()
		if (k == '{' || k == '[') && d.json.StackDepth() >= MaxDepth {
			return errDepth
		}
		if _, err := d.json.ReadToken(); err != nil {
			return err
		}
		if d.json.StackDepth() <= depth {
			return nil
		}
	}
}
