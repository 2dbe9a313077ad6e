package adr

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"flexd/internal/flex"
)

// rule checks a value of a document.
type rule interface {
	// normalise returns the value in the form in which it is stored. For a wrong value it
	// fails as Malformed, with the place.
	normalise(at string, v any) (any, error)
}

// wrong is the Malformed error for a value.
func wrong(at, format string, args ...any) error {
	return flex.Fail(flex.Malformed, "%s: %s", at, fmt.Sprintf(format, args...))
}

// text is a string between two lengths.
type text struct {
	min, max int // characters; no limit if max is 0
	oneOf    []string
	read     func(string) (string, error) // returns the stored form, or an error
}

func (r text) normalise(at string, v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, wrong(at, "it is no string")
	}

	n := utf8.RuneCountInString(s)
	most := r.max
	if most == 0 {
		most = TextMax
	}

	switch {
	case n < r.min || n > most:
		return nil, wrong(
			at,
			"it has %d characters: there should be %d to %d",
			n,
			r.min,
			most,
		)

	case strings.ContainsRune(s, 0):
		return nil, wrong(at, "it holds a character with the number 0")

	case r.oneOf != nil && !slices.Contains(r.oneOf, s):
		return nil, wrong(
			at,
			"it is not one of %s",
			strings.Join(r.oneOf, ", "),
		)

	case r.read == nil:
		return s, nil
	}

	stored, err := r.read(s)
	if err != nil {
		return nil, wrong(at, "%v", err)
	}

	return stored, nil
}

// number is a number between bounds.
type number struct {
	integer bool
	min     float64
	max     float64
}

func (r number) normalise(at string, v any) (any, error) {
	f, ok := v.(float64)
	if !ok {
		return nil, wrong(at, "it is no number")
	}

	if r.integer && f != math.Trunc(f) {
		return nil, wrong(at, "it is no whole number")
	}

	if f < r.min || f > r.max {
		return nil, wrong(at, "it is not from %g to %g", r.min, r.max)
	}

	return f, nil
}

// truth is true or false.
type truth struct{}

func (truth) normalise(at string, v any) (any, error) {
	if _, ok := v.(bool); !ok {
		return nil, wrong(at, "it is neither true nor false")
	}
	return v, nil
}

// list is a list of values of one rule.
type list struct {
	item rule
	max  int
}

func (r list) normalise(at string, v any) (any, error) {
	items, ok := v.([]any)
	if !ok {
		return nil, wrong(at, "it is no list")
	}
	if len(items) > r.max {
		return nil, wrong(
			at,
			"it has %d items: at most %d are taken",
			len(items),
			r.max,
		)
	}

	stored := make([]any, len(items))
	for i, item := range items {
		one, err := r.item.normalise(fmt.Sprintf("%s[%d]", at, i), item)
		if err != nil {
			return nil, err
		}
		stored[i] = one
	}

	return stored, nil
}

// field is a member of an object.
type field struct {
	name     string
	rule     rule
	must     bool // required
	null     bool // null is allowed, and means that the member is missing
	keepNull bool // null is allowed and stored
}

// object is an object with these members. Other members are dropped.
type object []field

func (r object) normalise(at string, v any) (any, error) {
	values, ok := v.(map[string]any)
	if !ok {
		return nil, wrong(at, "it is no object")
	}

	stored := map[string]any{}
	for _, f := range r {
		value, present := values[f.name]
		switch {
		case !present && f.must:
			return nil, wrong(at, "%s is missing", f.name)

		case !present:
			continue

		case value == nil && f.keepNull:
			stored[f.name] = nil
			continue

		case value == nil && f.null:
			continue
		}

		one, err := f.rule.normalise(at+"."+f.name, value)
		if err != nil {
			return nil, err
		}

		stored[f.name] = one
	}

	return stored, nil
}

// byObjectType is an object whose schema depends on its objectType.
type byObjectType map[string]object

func (r byObjectType) normalise(at string, v any) (any, error) {
	values, ok := v.(map[string]any)
	if !ok {
		return nil, wrong(at, "it is no object")
	}

	objectType, _ := values["objectType"].(string)
	schema, ok := r[objectType]
	if !ok {
		return nil, wrong(
			at+".objectType",
			"it is not one of those that may stand here",
		)
	}

	return schema.normalise(at, v)
}

// datum is a value of a payload: a number, a string, true or false, or a point.
type datum struct{}

func (datum) normalise(at string, v any) (any, error) {
	switch v.(type) {
	case string:
		return text{}.normalise(at, v)
	case float64, bool:
		return v, nil
	}

	return object{{name: "x", rule: anyNumber, must: true}, {name: "y", rule: anyNumber, must: true}}.normalise(at, v)
}

var idForm = regexp.MustCompile(`^[a-zA-Z0-9_-]*$`)

// readID checks the form of an object's id.
func readID(s string) (string, error) {
	if !idForm.MatchString(s) {
		return "", fmt.Errorf("an id consists of letters, digits, _ and -")
	}
	return s, nil
}

// nowStarts are the values of a start that mean now.
var nowStarts = []string{"0001-01-01", "0001-01-01T00:00:00"}

// nowStart is the stored form of such a start.
const nowStart = "0001-01-01T00:00:00Z"

// readTime checks an instant against RFC 3339.
func readTime(s string) (string, error) {
	if slices.Contains(nowStarts, s) {
		return nowStart, nil
	}
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		return "", fmt.Errorf(
			"%q is no instant such as 2026-01-15T17:30:00Z",
			s,
		)
	}

	return s, nil
}

// readURI checks the form of a URI.
func readURI(s string) (string, error) {
	if u, err := url.Parse(s); err != nil || u.Scheme == "" {
		return "", fmt.Errorf("it is no URI such as https://example.com/openadr")
	}
	return s, nil
}

// The limits of a document.
const (
	TargetsMax   = 1_000  // of an object
	IntervalsMax = 10_000 // of an event, or of a resource in a report
	ItemsMax     = 1_000  // of every other list
	// of a subscription's operations: each operation on each kind. A change makes a notice for
	// each one that matches, in each subscription.
	OperationsMax = 24
	// characters of a text that the specification does not limit
	TextMax  = 8_000
	int32Max = 1<<31 - 1
)

// The rules of the specification, version 3.1.0.
var (
	name = text{min: 1, max: 128}
	free = text{}
	id   = text{
		min:  1,
		max:  128,
		read: readID,
	}
	uri = text{
		min:  2,
		max:  8000,
		read: readURI,
	}
	instant = text{read: readTime}
	length  = text{read: readLength}
	whole   = number{
		integer: true,
		min:     -int32Max - 1,
		max:     int32Max,
	}
	anyNumber = number{min: -math.MaxFloat64, max: math.MaxFloat64}
	targets   = list{name, TargetsMax}

	period = object{
		{name: "start", rule: instant},
		{name: "duration", rule: length},
		{name: "randomizeStart", rule: length},
	}
	values = object{
		{name: "type", rule: name, must: true},
		{name: "values", rule: list{datum{}, ItemsMax}, must: true},
	}

	interval = object{
		{name: "id", rule: whole, must: true}, {name: "intervalPeriod", rule: period}, {name: "payloads", rule: list{values, ItemsMax}, must: true},
	}

	attributes = field{
		name: "attributes",
		rule: list{values, ItemsMax},
		null: true,
	}
	targeted = field{
		name: "targets",
		rule: targets,
		null: true,
	}
	units = field{
		name: "units",
		rule: name,
		null: true,
	}
	reading = field{
		name: "readingType",
		rule: name,
		null: true,
	}

	eventDescriptor = object{
		{name: "objectType", rule: text{oneOf: []string{"EVENT_PAYLOAD_DESCRIPTOR"}}, must: true},
		{name: "payloadType", rule: name, must: true}, units, {name: "currency", rule: free, null: true},
	}
	reportDescriptor = object{
		{name: "objectType", rule: text{oneOf: []string{"REPORT_PAYLOAD_DESCRIPTOR"}}, must: true},
		{name: "payloadType", rule: name, must: true}, reading, units, {name: "accuracy", rule: anyNumber, null: true},
		{name: "confidence", rule: number{integer: true, max: 100}, null: true},
	}
	reportRequestObject = object{
		{name: "payloadType", rule: name, must: true}, reading, units, targeted,
		{name: "aggregate", rule: truth{}}, {name: "startInterval", rule: whole}, {name: "numIntervals", rule: whole},
		{name: "historical", rule: truth{}}, {name: "frequency", rule: whole}, {name: "repeat", rule: whole},
		{name: "reportIntervals", rule: text{oneOf: []string{"INTERVALS", "SUB_INTERVALS", "OPEN_INTERVALS"}}},
	}
)

var programRule = object{
	{name: "programName", rule: name, must: true}, {name: "intervalPeriod", rule: period},
	{
		name: "programDescriptions",
		rule: list{object{{name: "URL", rule: uri, must: true}}, ItemsMax},
		null: true,
	},
	{
		name: "payloadDescriptors",
		rule: list{
			byObjectType{
				"EVENT_PAYLOAD_DESCRIPTOR":  eventDescriptor,
				"REPORT_PAYLOAD_DESCRIPTOR": reportDescriptor,
			},
			ItemsMax,
		},
		null: true,
	},
	attributes, targeted,
}

var reportRule = object{
	{name: "eventID", rule: id, must: true}, {name: "clientName", rule: name, must: true}, {name: "reportName", rule: free, null: true},
	{name: "payloadDescriptors", rule: list{reportDescriptor, ItemsMax}, null: true},
	{name: "resources", rule: list{object{
		{name: "resourceName", rule: name, must: true}, {name: "intervalPeriod", rule: period},
		{name: "intervals", rule: list{interval, IntervalsMax}, must: true},
	}, ItemsMax}, must: true},
}

var eventRule = object{
	{name: "programID", rule: id, must: true}, {name: "eventName", rule: free, null: true}, {name: "duration", rule: length},
	{name: "priority", rule: number{integer: true, max: 1 << 53}, null: true}, targeted,
	{name: "reportDescriptors", rule: list{reportRequestObject, ItemsMax}, null: true},
	{name: "payloadDescriptors", rule: list{eventDescriptor, ItemsMax}, null: true},
	{name: "intervalPeriod", rule: period}, {name: "intervals", rule: list{interval, IntervalsMax}},
}

var (
	kinds = []string{
		"PROGRAM",
		"EVENT",
		"REPORT",
		"SUBSCRIPTION",
		"VEN",
		"RESOURCE",
	}
	operations = []string{opCreate, "READ", opUpdate, opDelete}
)

var subscriptionRule = object{
	{name: "clientName", rule: name, must: true}, {name: "programID", rule: id}, targeted,
	{name: "objectOperations", rule: list{object{
		{name: "objects", rule: list{text{oneOf: kinds}, ItemsMax}, must: true},
		{name: "operations", rule: list{text{oneOf: operations}, ItemsMax}, must: true},
		{name: "callbackUrl", rule: uri, must: true}, {name: "bearerToken", rule: text{}, keepNull: true},
	}, OperationsMax}, must: true},
}

// A VEN and a resource are written in two ways: by business logic, and by the VEN itself,
// which cannot set its owner or its targets.
var venRule = byObjectType{
	"BL_VEN_REQUEST": {
		{name: "clientID", rule: name, must: true},
		targeted,
		{name: "venName", rule: name, must: true},
		attributes,
	},
	"VEN_VEN_REQUEST": {{name: "venName", rule: name, must: true}, attributes},
}

var resourceRule = byObjectType{
	"BL_RESOURCE_REQUEST": {
		{name: "clientID", rule: name, must: true}, targeted, {name: "resourceName", rule: name, must: true}, {name: "venID", rule: id, must: true}, attributes,
	},
	"VEN_RESOURCE_REQUEST": {
		{name: "resourceName", rule: name, must: true},
		{name: "venID", rule: id, must: true},
		attributes,
	},
}

// rules has the schema of each kind of document.
var rules = map[flex.ADRKind]rule{
	flex.ADRProgram:      programRule,
	flex.ADREvent:        eventRule,
	flex.ADRReport:       reportRule,
	flex.ADRSubscription: subscriptionRule,
	flex.ADRVEN:          venRule,
	flex.ADRResource:     resourceRule,
}
