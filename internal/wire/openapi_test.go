package wire

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// enumOf names the enumeration that a schema of strings holds, where the name differs.
var enumOf = map[string]string{
	"DispatchMethodResponse": "DispatchMethod", "BatteryScheduleAction": "BatteryAction",
	"PlainDispatchAction": "DispatchAction", "ChargingRateUnitType": "ChargingRateUnit",
	"ChargingProfilePurposeType": "ProfilePurpose", "ChargingProfileKindType": "ProfileKind",
	"RecurrencyKindType": "RecurrencyKind", "UserTransactionType": "TransactionType",
	"ReadingDataPointLabel": "ReadingLabel",
}

func load(t *testing.T, path string) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func ours(t *testing.T) *openapi3.T      { return load(t, "../api/openapi.yaml") }
func published(t *testing.T) *openapi3.T { return load(t, "testdata/published-1.4.6.openapi.json") }

func TestDocument_IsValidWithItsExamples(t *testing.T) {
	doc := ours(t)
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation()); err != nil {
		t.Error(err)
	}
}

// TestDocument_HoldsThePublishedOne finds every operation, parameter, status and body of the
// published description in ours.
func TestDocument_HoldsThePublishedOne(t *testing.T) {
	doc := ours(t)
	n := 0

	for path, item := range published(t).Paths.Map() {
		for method, want := range item.Operations() {
			n++
			have := doc.Paths.Value(path)
			if have == nil || have.GetOperation(method) == nil {
				t.Errorf("%s %s is missing", method, path)
				continue
			}

			sameOperation(t, method+" "+path, want, have.GetOperation(method))
			if id := have.GetOperation(method).OperationID; id != want.OperationID {
				t.Errorf("%s %s: operationId %s, published %s", method, path, id, want.OperationID)
			}
		}
	}

	if n != 55 {
		t.Errorf("%d published operations, not 55", n)
	}
	if item := doc.Paths.Value("/entities/asset/{asset_id}/todays-dispatch-schedule"); item == nil || item.Get == nil {
		t.Error("todays-dispatch-schedule is missing")
	}
}

// TestDocument_NamesDoNotCollide holds that a generator can name the answer of an operation
// after it: no operation's name with "Response" or "Request" is a schema's.
func TestDocument_NamesDoNotCollide(t *testing.T) {
	doc := ours(t)
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

	schemas := map[string]string{}
	for name := range doc.Components.Schemas {
		if before, twice := schemas[plain(name)]; twice {
			t.Errorf("schemas %s and %s", before, name)
		}
		schemas[plain(name)] = name
	}

	operations := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.OperationID == "" || operations[plain(op.OperationID)] {
				t.Errorf("%s %s: the operationId %q is empty or not its own", method, path, op.OperationID)
			}
			operations[plain(op.OperationID)] = true

			for _, suffix := range []string{"response", "request", "params", "body"} {
				if name, taken := schemas[plain(op.OperationID)+suffix]; taken {
					t.Errorf("%s %s: generators name its %s like the schema %s", method, path, suffix, name)
				}
			}
		}
	}
}

// TestDocument_MarksWhatIsOurs finds the mark on every operation that is not of the
// interface, and each of them in docs/divergences.md.
func TestDocument_MarksWhatIsOurs(t *testing.T) {
	pub := published(t)
	page, err := os.ReadFile("../../docs/divergences.md")
	if err != nil {
		t.Fatal(err)
	}

	_, additions, _ := strings.Cut(string(page), "## Additions")
	for path, item := range ours(t).Paths.Map() {
		for method, op := range item.Operations() {
			theirs := pub.Paths.Value(path)
			of := theirs != nil && theirs.GetOperation(method) != nil || strings.HasSuffix(path, "/todays-dispatch-schedule")
			if mark, _ := op.Extensions["x-flexd-addition"].(bool); mark == of {
				t.Errorf("%s %s: marked %v", method, path, mark)
			}

			if !of && !strings.Contains(additions, path+"`") {
				t.Errorf("%s %s is not in docs/divergences.md", method, path)
			}
		}
	}
}

func sameOperation(t *testing.T, name string, want, have *openapi3.Operation) {
	for _, p := range want.Parameters {
		mine := have.Parameters.GetByInAndName(p.Value.In, p.Value.Name)
		if mine == nil {
			t.Errorf("%s: no parameter %s", name, p.Value.Name)
			continue
		}
		if mine.Required != p.Value.Required {
			t.Errorf("%s: parameter %s required: %v", name, p.Value.Name, mine.Required)
		}
		sameSchema(t, name+" "+p.Value.Name, p.Value.Schema, mine.Schema)
	}

	if want.RequestBody != nil {
		sameContent(t, name+" body", want.RequestBody.Value.Content, have.RequestBody.Value.Content)
	}

	for status, w := range want.Responses.Map() {
		h := have.Responses.Value(status)
		if h == nil {
			t.Errorf("%s: no status %s", name, status)
			continue
		}
		sameContent(t, name+" "+status, w.Value.Content, h.Value.Content)
	}
	if want.Deprecated && !have.Deprecated {
		t.Errorf("%s: deprecated", name)
	}
}

func sameContent(t *testing.T, name string, want, have openapi3.Content) {
	for media, w := range want {
		if have[media] == nil {
			t.Errorf("%s: no %s", name, media)
		} else {
			sameSchema(t, name, w.Schema, have[media].Schema)
		}
	}
}

// plainly returns the schema behind a wrapper of one.
func plainly(s *openapi3.SchemaRef) *openapi3.SchemaRef {
	for s != nil && s.Ref == "" && len(s.Value.AllOf) == 1 {
		s = s.Value.AllOf[0]
	}
	return s
}

// sameSchema holds the type, format, enumeration, needed fields, bounds and default of a
// schema against the published one. Ours may have more fields and tighter bounds. Only
// OnboardingResponse needs less: a site without assets is offboarded with none to show.
func sameSchema(t *testing.T, name string, want, have *openapi3.SchemaRef) {
	want, have = plainly(want), plainly(have)
	if want == nil {
		return
	}
	if want.Ref != have.Ref {
		t.Errorf("%s is %q, not %q", name, have.Ref, want.Ref)
		return
	}
	if want.Ref != "" && !strings.Contains(name, "schema ") {
		return // compared once, under its own name
	}

	w, h := want.Value, have.Value
	if w.Type != nil && !slices.Equal(w.Type.Slice(), without(h.Type, "null")) {
		t.Errorf("%s has the type %v, not %v", name, h.Type, w.Type)
	}
	if w.Format != h.Format && w.Format != "" {
		t.Errorf("%s has the format %q, not %q", name, h.Format, w.Format)
	}
	enum := h.Enum
	if name == "schema ReadingDataPointLabel" { // ours come after the published ones
		enum = enum[:len(w.Enum)]
	}

	if w.Pattern != h.Pattern || !reflect.DeepEqual(w.Enum, enum) {
		t.Errorf("%s: %v %q", name, h.Enum, h.Pattern)
	}
	if !slices.Equal(sorted(w.Required), sorted(h.Required)) && name != "schema OnboardingResponse" {
		t.Errorf("%s needs %v, not %v", name, h.Required, w.Required)
	}

	if w.Min != nil && (h.Min == nil || *h.Min != *w.Min) || w.Max != nil && (h.Max == nil || *h.Max != *w.Max) {
		t.Errorf("%s: bounds", name)
	}
	if w.Default != nil && !reflect.DeepEqual(w.Default, h.Default) && h.Enum == nil {
		t.Errorf("%s has the default %v, not %v", name, h.Default, w.Default)
	}
	if w.Items != nil {
		sameSchema(t, name+"[]", w.Items, h.Items)
	}

	for field, p := range w.Properties {
		if h.Properties[field] == nil {
			t.Errorf("%s has no %s", name, field)
		} else {
			sameSchema(t, strings.TrimPrefix(name, "schema ")+"."+field, p, h.Properties[field])
		}
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

func without(types *openapi3.Types, word string) []string {
	if types == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(types.Slice()), func(s string) bool { return s == word })
}

func TestDocument_HasThePublishedSchemas(t *testing.T) {
	doc := ours(t)
	for name, want := range published(t).Components.Schemas {
		if doc.Components.Schemas[name] == nil {
			t.Errorf("no schema %s", name)
			continue
		}
		sameSchema(t, "schema "+name, want, doc.Components.Schemas[name])
	}
}

// goField is a field of a struct as both decoders of JSON see it.
type goField struct {
	rule     rule
	typ      reflect.Type
	optional bool // left out of answers when absent
}

func goFields(t reflect.Type) map[string]goField {
	fields := map[string]goField{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for name, g := range goFields(f.Type) {
				fields[name] = g
			}
			continue
		}

		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = goField{parseRule(f.Tag.Get("wire")), f.Type, strings.Contains(options, "omitzero")}
	}
	return fields
}

// flat gathers the fields and the needed fields of a schema and of those it is made of.
func flat(s *openapi3.Schema) (fields openapi3.Schemas, required []string) {
	fields, required = openapi3.Schemas{}, slices.Clone(s.Required)
	for name, p := range s.Properties {
		fields[name] = p
	}
	for _, part := range s.AllOf {
		f, r := flat(part.Value)
		for name, p := range f {
			fields[name] = p
		}
		required = append(required, r...)
	}
	return fields, required
}

// TestDocument_SaysWhatTheStructsSay holds names, needs, bounds, lengths and enumerations of
// every struct against the document.
func TestDocument_SaysWhatTheStructsSay(t *testing.T) {
	doc := ours(t)
	for name, ref := range doc.Components.Schemas {
		if ref.Value.Enum != nil {
			if enumOf[name] != "" {
				name = enumOf[name]
			}
			if !slices.Equal(anys(enums[name]), ref.Value.Enum) {
				t.Errorf("%s: the document has %v, the code %v", name, ref.Value.Enum, enums[name])
			}
			continue
		}

		typ := structs[name]
		if typ == nil {
			t.Errorf("no struct for %s", name)
			continue
		}
		fields, required := flat(ref.Value)
		have := goFields(typ)

		for field := range fields {
			if _, ok := have[field]; !ok {
				t.Errorf("%v has no %s", typ, field)
			}
		}

		for field, g := range have {
			if fields[field] == nil {
				t.Errorf("schema %s has no %s", name, field)
				continue
			}
			sayTheSame(t, name+"."+field, g, plainly(fields[field]).Value, slices.Contains(required, field))
		}
	}

	for name := range structs {
		if doc.Components.Schemas[name] == nil {
			t.Errorf("no schema for %s", name)
		}
	}
}

func anys(s []string) (a []any) {
	for _, v := range s {
		a = append(a, v)
	}
	return a
}

func sayTheSame(t *testing.T, name string, g goField, s *openapi3.Schema, required bool) {
	if g.rule.required && !required {
		t.Errorf("%s is needed by the code, not by the document", name)
	}
	if required && g.optional {
		t.Errorf("%s is needed by the document, left out by the code", name)
	}
	if !reflect.DeepEqual(g.rule.min, s.Min) || !reflect.DeepEqual(g.rule.max, s.Max) {
		t.Errorf("%s has bounds that differ", name)
	}

	permitted := s.Enum
	if s.Items != nil {
		permitted = plainly(s.Items).Value.Enum
	}
	if len(permitted) > 0 && !slices.Equal(anys(g.rule.values), permitted) {
		t.Errorf("%s: the code has %v, the document %v", name, g.rule.values, permitted)
	}

	most := func(n *uint64, usual int) int {
		if n == nil {
			return usual
		}
		return int(*n)
	}

	if shapeKind(g.typ) == list {
		if most(s.MaxItems, MaxItems) != g.rule.items && s.MaxItems != nil {
			t.Errorf("%s takes %d items, the document says %d", name, g.rule.items, *s.MaxItems)
		}
		if (s.MinItems > 0) != g.rule.nonempty {
			t.Errorf("%s: nonempty %v", name, g.rule.nonempty)
		}
	}

	if shapeKind(g.typ) == text {
		if most(s.MaxLength, MaxText) != g.rule.text {
			t.Errorf("%s takes %d bytes, the document says %d", name, g.rule.text, most(s.MaxLength, MaxText))
		}
		if (s.MinLength > 0) != g.rule.nonempty {
			t.Errorf("%s: nonempty %v", name, g.rule.nonempty)
		}
	}
}

func shapeKind(t reflect.Type) kind {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		return list
	case reflect.String:
		return text
	}
	return object
}

// TestDocument_ExamplesDecode reads every example of a request.
func TestDocument_ExamplesDecode(t *testing.T) {
	for path, item := range ours(t).Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}

			for media, content := range op.RequestBody.Value.Content {
				name := strings.TrimPrefix(content.Schema.Ref, "#/components/schemas/")
				if media != "application/json" {
					continue
				}
				b, err := json.Marshal(content.Example)
				if err != nil || content.Example == nil {
					t.Fatalf("%s %s: example %s %v", method, path, b, err)
				}

				if _, err := decodeAs(structs[name], b); err != nil {
					t.Errorf("%s %s: %v", method, path, err)
				}
			}
		}
	}
}

// decodeAs is Decode for a type that is known at run time only.
func decodeAs(typ reflect.Type, body []byte) (any, error) {
	v := reflect.New(typ)
	d := newDecoder(body)
	err := d.document(shapeOf(typ), v.Elem())
	return v.Interface(), err
}
