package problem

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
	"flexd/internal/lab/slots"
)

// MaxLine is the longest line that is read, enough for a fleet of 300,000 cars.
const MaxLine = 64 << 20

// Problem is one decoded line. It can be planned any number of times.
type Problem struct {
	ID     string
	Family string
	solver
}

// Scratch is the working memory of the planners. Only one goroutine may use it at a time. Its
// zero value is ready.
type Scratch struct {
	slots   slots.Solver
	battery battery.Solver
	site    site.Solver
}

// solver is implemented by every family.
type solver interface {
	plan(w *Scratch)
	// checks the last plan, with other code than the planner's
	check(w *Scratch) error
	prove(w *Scratch) (Certificate, error) // makes and checks the proof of the last plan's bound
	slots() int
	answer() Answer
}

// Answer is one line of the output.
type Answer struct {
	ID         string  `json:"id"`
	Answer     any     `json:"answer"`
	Cost       float64 `json:"cost_p"`
	LowerBound float64 `json:"lower_bound_p"`
	Feasible   bool    `json:"feasible"` // false if the need is met only in part
	Micros     float64 `json:"micros"`   // for one plan

	Shortfall *float64 `json:"shortfall_kwh,omitzero"` // of a home's cars
	Peak      *float64 `json:"peak_kwh,omitzero"`
	// why a need is not met
	Limits []homeLimit `json:"limits,omitzero"`
	// the worth of one kW more of main fuse
	FuseValue  *float64 `json:"fuse_value_p_per_kw,omitzero"`
	FuseEnergy *float64 `json:"fuse_value_kwh_per_kw,omitzero"`

	// proves that no plan costs less than LowerBound
	Certificate Certificate `json:"certificate,omitzero"`
	// the checker's message about the certificate, if it proves less
	Unproven string `json:"unproven,omitzero"`
}

// Refusal is the output for a line that could not be planned.
type Refusal struct {
	ID    string `json:"id,omitempty"`
	Error string `json:"error"`
}

// family has the decoder of a family's fields, and the names of those that are required and
// that no other check finds missing.
type family struct {
	decode func(line []byte) (solver, error)
	needs  []string
}

var (
	ofEV = family{
		decodeEV,
		[]string{"price_p_per_kwh", "avail_hours", "max_kw", "energy_kwh"},
	}
	ofBattery = family{
		decodeBattery,
		[]string{"import_p_per_kwh", "export_p_per_kwh", "load_kwh", "pv_kwh", "soc_max_kwh",
			"soc_init_kwh", "charge_kw", "discharge_kw", "eff_charge", "eff_discharge"},
	}
)

var families = map[string]family{
	"ev-plain":    ofEV,
	"ev-tiers":    ofEV,
	"ev-minpower": ofEV,
	"ev-switch":   ofEV,
	"pause": {
		decodePause,
		[]string{"price_p_per_kwh", "charger_kw", "blocks_min", "ready_by_min", "pause_minutes", "make_up"},
	},

	"battery-convex":    ofBattery,
	"battery-nonconvex": ofBattery,
	"battery-modes": {
		decodeModes,
		[]string{"import_p_per_kwh", "export_p_per_kwh", "load_wh", "pv_wh", "soc_max_wh", "soc_init_wh",
			"charge_step_wh", "discharge_step_wh", "eff_charge", "eff_discharge", "previous_mode"},
	},

	"home": {decodeHome, []string{"import_p_per_kwh", "export_p_per_kwh", "load_kwh", "pv_kwh"}},

	"fleet": {decodeFleet, []string{"slots", "unserved_p_per_kwh"}},
}

// Families are the names of the families, in order.
func Families() []string { return slices.Sorted(maps.Keys(families)) }

// Decode reads one line.
func Decode(line []byte) (*Problem, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil, flex.Fail(
			flex.Malformed,
			"the line is empty, where a problem would be right",
		)
	}

	var head struct {
		ID     string `json:"id"`
		Family string `json:"family"`
	}

	if err := unmarshal(line, &head); err != nil {
		return nil, err
	}
	f, ok := families[head.Family]
	if !ok {
		return nil, flex.Fail(
			flex.Invalid,
			"family %q is none of %s",
			head.Family,
			strings.Join(Families(), ", "),
		)
	}

	if absent := missing(line, f.needs); len(absent) > 0 {
		return nil, flex.Fail(
			flex.Invalid,
			"%s: missing from a problem of %s",
			strings.Join(absent, ", "),
			head.Family,
		)
	}
	s, err := f.decode(line)
	if err != nil {
		return nil, err
	}

	return &Problem{
		ID:     head.ID,
		Family: head.Family,
		solver: s,
	}, nil
}

// missing returns the names that an object does not have, or has only as null.
func missing(line []byte, names []string) []string {
	absent := slices.Clone(names)
	d := jsontext.NewDecoder(bytes.NewReader(line))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return absent
	}

	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}

		key := name.String()
		if d.PeekKind() != 'n' {
			absent = slices.DeleteFunc(absent, func(n string) bool {
				return n == key
			})
		}
		if d.SkipValue() != nil {
			break
		}
	}

	return absent
}

// IDOf returns the id of a line that may be invalid elsewhere; empty if there is none.
func IDOf(line []byte) string {
	d := jsontext.NewDecoder(bytes.NewReader(line))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return ""
	}

	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return ""
		}

		if name.String() != "id" {
			if d.SkipValue() != nil {
				return ""
			}
			continue
		}

		if id, err := d.ReadToken(); err == nil && id.Kind() == '"' {
			return id.String()
		}
		return ""
	}
}

// Plan plans the problem. Answer returns this last plan.
func (p *Problem) Plan(w *Scratch) { p.plan(w) }

// Slots is how many slots the problem has.
func (p *Problem) Slots() int { return p.slots() }

// Check checks the last plan against the rules that it must keep. If that takes no longer than
// planning, it also checks the bound against its proof. It shares no code with the planners.
func (p *Problem) Check(w *Scratch) error { return p.check(w) }

// Prove makes and checks the proof that no plan costs less than the bound of the last one. It
// may find a higher bound than planning had time for, which Answer then returns.
func (p *Problem) Prove(w *Scratch) (Certificate, error) { return p.prove(w) }

// Answer returns the last plan.
func (p *Problem) Answer() Answer {
	a := p.answer()
	a.ID = p.ID
	return a
}

// Append appends one line of output, with its newline.
func Append(to []byte, line any) ([]byte, error) {
	b, err := json.Marshal(line, json.Deterministic(true))
	if err != nil {
		return to, fmt.Errorf("write an answer: %w", err)
	}

	return append(append(to, b...), '\n'), nil
}

func unmarshal(line []byte, v any) error {
	var watch json.Options
	if bytes.Contains(line, []byte("null")) { // looking for nulls takes longer than decoding
		watch = json.WithUnmarshalers(nulls)
	}

	err := json.Unmarshal(line, v, watch)
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return flex.Fail(
			flex.Malformed,
			"%s cannot be %s",
			cmp.Or(string(e.JSONPointer), "the line"),
			kinds[e.JSONKind],
		)
	}

	if err != nil {
		return flex.Fail(
			flex.Malformed,
			"%s",
			strings.TrimPrefix(err.Error(), "jsontext: "),
		)
	}

	return nil
}

// nulls treats a member that is null as missing, and refuses null in a list, where it does not
// mean 0.
var nulls = json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ any) error {
	if d.PeekKind() != 'n' {
		return errors.ErrUnsupported
	}
	if in, _ := d.StackIndex(d.StackDepth()); in == '[' {
		return &json.SemanticError{JSONKind: 'n'}
	}

	return d.SkipValue()
})

// kinds has the words for the kinds of JSON values. An ended list or object means that the
// length is wrong.
var kinds = map[jsontext.Kind]string{
	'n': "null",
	't': "true",
	'f': "false",
	'"': "a JSON string",
	'0': "this number",
	'{': "an object",
	'[': "an array",
	'}': "an object that ends there",
	']': "an array of that length",
}

// series checks that a series has n numbers, each from lo to hi.
func series(name string, v []float64, n int, lo, hi float64) error {
	if len(v) != n {
		return flex.Fail(
			flex.Invalid,
			"%s has %d values, where %d would be right",
			name,
			len(v),
			n,
		)
	}

	for i, x := range v {
		err := within(fmt.Sprintf("%s[%d]", name, i), x, lo, hi)
		if err != nil {
			return err
		}
	}

	return nil
}

// within checks that a number is from lo to hi.
func within(name string, x, lo, hi float64) error {
	if math.IsNaN(x) || x < lo || x > hi {
		return flex.Fail(
			flex.Invalid,
			"%s is %v, which is not from %v to %v",
			name,
			x,
			lo,
			hi,
		)
	}

	return nil
}

// The greatest values that are planned. They keep sums far from overflow.
const (
	maxPrice  = 1e4 // pence per kWh, some sixteen times the price of lost load
	maxKW     = 1e6
	maxKWh    = 1e6
	maxAmount = 1e9 // pence
)

const halfHour = 0.5 // hours of a slot, unless a problem says otherwise

// slotCount checks that n, the length of a series, is a number of slots that can be planned.
func slotCount(name string, n int) error {
	if n < 1 || n > slots.MaxSlots {
		return flex.Fail(
			flex.Invalid,
			"%s has %d slots, which is not from 1 to %d",
			name,
			n,
			slots.MaxSlots,
		)
	}

	return nil
}
