package adr

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// Order is the demand of a payload in an event's interval on a fleet: a change against the
// plan, negative for less, or a limit. One that cannot be carried out has a problem, and
// neither.
type Order struct {
	flex.Span
	Event    *flex.ADRObject
	Priority int64 // 0 is the highest
	Interval int   // its place in the event
	Change   flex.Watts
	Limit    *flex.Watts
	// of the limit: what is drawn, or what is given; import of anything else
	Direction flex.Direction
	Problem   string
	Outrank   string // the event that has its time; empty for none
	Unfit     bool   // it is refused when it is to be sent, as its program is bound for something else or it lasts too long

	limits bool      // it is of a program that is bound for limits, which may last longer
	known  time.Time // when it was written or bound: of one that was under way then, the rest counts
}

func numbersOf(a valuesOf) ([]float64, error) {
	var numbers []float64
	for _, v := range a.Values {
		n, ok := v.(float64)
		if !ok {
			return nil, flex.Fail(
				flex.Malformed,
				"%s: %v is no number",
				a.Type,
				v,
			)
		}
		numbers = append(numbers, n)
	}

	return numbers, nil
}

func oneNumber(a valuesOf) (float64, error) {
	numbers, err := numbersOf(a)
	if err == nil && len(numbers) != 1 {
		err = flex.Fail(
			flex.Malformed,
			"%s: there should be one number",
			a.Type,
		)
	}
	if err != nil {
		return 0, err
	}

	return numbers[0], nil
}

// kilo are the factors of payload units, in kW.
var kilo = map[string]float64{
	"":   1,
	"KW": 1,
	"W":  0.001,
	"MW": 1000,
}

// powerPayloads are the payload types with one power.
var powerPayloads = map[string]bool{
	"IMPORT_CAPACITY_LIMIT":      true,
	"EXPORT_CAPACITY_LIMIT":      true,
	"DISPATCH_SETPOINT":          true,
	"DISPATCH_SETPOINT_RELATIVE": true,
}

// notOrdered are payload types that ask a fleet for something that flexd does not support.
var notOrdered = map[string]bool{
	"CHARGE_STATE_SETPOINT": true,
	"CONTROL_SETPOINT":      true,
}

// problemOver is the problem of an order whose time was over when its event was written.
const problemOver = "it was over when it came"

// repeats is the problem of an event with repeated intervals.
const repeats = "the event's duration is longer than its intervals, and flexd does not repeat them: give each its interval"

// ordersIn returns the orders of the payloads of an interval, without their times.
func (e *eventDocument) ordersIn(b *flex.ADRBinding, i *timedInterval) []Order {
	var orders []Order
	for _, p := range i.Payloads {
		o, isOrder, err := orderOf(b, e, p)
		if err != nil {
			o = Order{Problem: err.Error()}
		} else if !isOrder {
			continue
		}

		o.Direction = directionOf(p.Type)
		o.Priority = e.priority()
		orders = append(orders, o)
	}

	return orders
}

// ordersOf returns the orders of an event of a bound program, by interval, in whole minutes.
// Payloads without a demand on a fleet, such as prices, are ignored. An order has a problem if
// it cannot be carried out: without an end, with a unit that is not a power, with a level that
// has no change, or in repeated intervals. For payloads without a unit in the event, the
// program's unit is used.
func ordersOf(b *flex.ADRBinding, event *flex.ADRObject, usual unitsOf) ([]Order, error) {
	var d eventDocument
	if err := json.Unmarshal([]byte(event.Document), &d); err != nil {
		return nil, err
	}

	d.usual = usual

	var orders []Order
	intervals := d.timedIntervals(event.ModifiedAt)
	first := 0 // of the orders of the interval before
	for n, i := range intervals {
		before := orders[first:]
		first = len(orders)
		joins := n > 0 && intervals[n-1].end(event.ID).Equal(i.begin(event.ID))

		for _, o := range d.ordersIn(b, &i) {
			o.Event, o.Interval = event, n
			o.time(&i, joins && continues(before, o.Direction))
			o.bind(b)
			orders = append(orders, o)
		}
	}

	if end, isLooped := d.loop(event.ModifiedAt, intervals); isLooped && len(orders) > 0 {
		orders = append(orders, Order{
			Event:     event,
			Interval:  len(intervals),
			Span:      flex.Span{From: end, To: end.Add(time.Minute)},
			Direction: flex.Import,
			Problem:   repeats,
		})
	}

	return orders, nil
}

// bind sets the fields of an order that come from the program's binding.
func (o *Order) bind(b *flex.ADRBinding) {
	o.limits = b.Kind.Limits()
	o.known = flex.Later(o.Event.ModifiedAt, b.MadeAt)
	o.Unfit = unfit(b, o)
}

// unfit reports whether a valid order will be refused when it is sent.
func unfit(b *flex.ADRBinding, o *Order) bool {
	if b.Kind.Limits() {
		isExport := o.Direction == flex.Export && b.Kind == flex.ADRImportLimit
		return isExport || o.Limit == nil || *o.Limit > flex.CapMax
	}

	return o.Direction == flex.Export
}

// tooLong reports whether an order, or the part that others leave of it, is longer than an
// instruction may be.
func (o *Order) tooLong() bool {
	return !o.limits && o.To.Sub(flex.Later(o.From, o.known)) > flex.InstructionLongest
}

// lowest is the priority of an event without one.
const lowest = math.MaxInt64

// priority returns the event's priority: 0 is the highest.
func (e *eventDocument) priority() int64 {
	if e.Priority == nil {
		return lowest
	}
	return *e.Priority
}

// continues reports whether one of the orders, of the previous interval, is in a direction.
func continues(before []Order, direction flex.Direction) bool {
	return slices.ContainsFunc(before, func(o Order) bool {
		return o.Problem == "" && o.Direction == direction
	})
}

// time sets an order's time in whole minutes. One that follows another begins in the minute in
// which that ends, so that no minute between them is without an order. An order without an
// end, or that was over when it came, cannot be carried out.
func (o *Order) time(i *timedInterval, follows bool) {
	begin := i.begin(o.Event.ID)
	o.From = begin.Add(time.Minute - 1).Truncate(time.Minute)
	o.To = i.end(o.Event.ID).Truncate(time.Minute)
	if follows {
		o.From = begin.Truncate(time.Minute)
	}

	problem := ""
	switch {
	case i.To.IsZero():
		problem = "it has no end"
	case i.To.Sub(i.From) < time.Minute || !o.From.Before(o.To):
		problem = "it is shorter than a minute"
	case !o.To.After(o.Event.ModifiedAt):
		problem = problemOver
	}
	if !o.From.Before(o.To) {
		o.To = o.From.Add(time.Minute) // so that it has a time
	}

	if problem != "" && o.Problem == "" {
		o.Problem = problem
	}
	if o.Problem != "" {
		o.Change = 0
		o.Limit = nil
	}
}

// directionOf returns the direction that a payload limits.
func directionOf(payload string) flex.Direction {
	if payload == "EXPORT_CAPACITY_LIMIT" {
		return flex.Export
	}
	return flex.Import
}

// orderOf returns the order of a payload; false if it has no demand on a fleet.
func orderOf(
	b *flex.ADRBinding,
	d *eventDocument,
	p valuesOf,
) (o Order, isOrder bool, err error) {
	switch p.Type {
	case "ALERT_GRID_EMERGENCY":
		o.Limit = new(flex.Watts)
		return o, true, nil

	case "SIMPLE":
		return simpleOrder(b, p)
	}

	if powerPayloads[p.Type] {
		return powerOrder(d, p)
	}

	if notOrdered[p.Type] {
		err = flex.Fail(
			flex.Malformed,
			"%s: flexd does not carry this out",
			p.Type,
		)
	}

	return o, false, err
}

// powerOrder returns the order of a payload with one power.
func powerOrder(d *eventDocument, p valuesOf) (o Order, isOrder bool, err error) {
	n, err := oneNumber(p)
	if err != nil {
		return o, false, err
	}

	unit := strings.ToUpper(d.units(p.Type))
	factor, known := kilo[unit]
	if !known {
		return o, false, flex.Fail(
			flex.Malformed,
			"%s: the unit %q is none of W, KW and MW",
			p.Type,
			unit,
		)
	}

	if math.Abs(n*factor) > mostKW {
		return o, false, flex.Fail(
			flex.Malformed,
			"%s: %g kW is more than a fleet can be asked for",
			p.Type,
			n*factor,
		)
	}

	power := flex.FromKW(n * factor)
	if p.Type == "DISPATCH_SETPOINT_RELATIVE" {
		o.Change = power
		return o, power != 0, nil
	}

	if power < 0 {
		return o, false, flex.Fail(
			flex.Malformed,
			"%s: a limit is not negative",
			p.Type,
		)
	}

	o.Limit = &power

	return o, true, nil
}

// mostKW is the greatest power that is read.
const mostKW = 1e8

// simpleOrder returns the order of a level of SIMPLE; 0 is no demand.
func simpleOrder(
	b *flex.ADRBinding,
	p valuesOf,
) (o Order, asks bool, err error) {
	n, err := oneNumber(p)
	if err != nil || n == 0 {
		return o, false, err
	}

	level := int(max(-1, min(n, float64(len(b.Simple)+1))))
	if float64(level) != n || level < 1 || level > len(b.Simple) {
		return o, false, flex.Fail(
			flex.Malformed,
			"SIMPLE: the program is bound without a change for the level %v",
			n,
		)
	}

	o.Change = b.Simple[level-1]

	return o, o.Change != 0, nil
}

// units returns the unit of an event's payloads of a type, from its descriptors or else its
// program's.
func (e *eventDocument) units(payload string) string {
	for _, d := range e.Descriptors {
		if d.Type == payload && d.Units != "" {
			return d.Units
		}
	}

	return e.usual[payload]
}

// offset returns by how much an interval's start is delayed, when it is to be randomised
// within a length of time: always the same for the same interval.
func offset(
	event flex.ADRObjectID,
	interval int,
	within lengthOf,
) time.Duration {
	window := within.after(time.Unix(0, 0).UTC()).Sub(time.Unix(0, 0).UTC())
	if window == 0 {
		return 0
	}

	size := max(window, -window)
	random := time.Duration((binary.BigEndian.Uint64(event[8:]) +
		uint64(interval)*0x9E3779B97F4A7C15) % uint64(size))
	if window < 0 {
		return -random
	}

	return random
}
