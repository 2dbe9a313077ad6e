package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"

	"flexd/internal/wire"
)

// member is a name and a value of an object whose order is kept. Values are those of JSON,
// and []member.
type member struct {
	name  string
	value any
}

func sorted(values map[string]any) []member {
	var members []member
	for _, name := range slices.Sorted(maps.Keys(values)) {
		members = append(members, member{name, values[name]})
	}

	return members
}

// basic are the schemas of the types that bodies are made of. Texts of package flex that are
// no such type are strings, and its ids UUIDs.
var basic = map[string][]member{
	"string":     {{"type", "string"}},
	"float64":    {{"type", "number"}},
	"int":        {{"type", "integer"}},
	"int64":      {{"type", "integer"}},
	"bool":       {{"type", "boolean"}},
	"Time":       {{"type", "string"}, {"format", "date-time"}},
	"WallTime":   {{"type", "string"}, {"format", "time"}},
	"Day":        {{"type", "string"}, {"format", "date"}},
	"flex.Pence": {{"type", "integer"}},
}

// schemas makes the schemas of types.
type schemas struct {
	ordered []wireType          // in the order of the document
	types   map[string]wireType // by their names in Go
	enums   map[string]string   // the names of their schemas
}

func newSchemas(types []wireType) *schemas {
	s := &schemas{
		ordered: types,
		types:   map[string]wireType{},
		enums:   map[string]string{},
	}

	for _, t := range types {
		s.types[t.name] = t
	}

	for _, e := range enumerations {
		s.enums[e.enum] = e.schema
	}

	return s
}

// of returns the schema of a type.
func (s *schemas) of(t *wireType) []member {
	var out []member
	if _, further, ok := strings.Cut(t.doc.text, "\n\n"); ok {
		out = append(out, member{"description", flowing(further)})
	}

	out = append(out, s.object(t)...)
	if t.doc.addition {
		out = append(out, member{"x-flexd-addition", true})
	}

	return merged(out, t.doc.merge)
}

// object returns the fields of a type. An embedded type with a schema is a part of this one;
// what has none gives its fields.
func (s *schemas) object(t *wireType) []member {
	var properties []member
	var required, parts []any

	for i := range t.fields {
		f := &t.fields[i]
		if f.goName != "" {
			properties = append(properties, member{f.name, s.field(f)})
			if isRequired(t, f) {
				required = append(required, f.name)
			}

			continue
		}

		inner := s.types[nameOf(f.expr)]
		if inner.schema != "" {
			parts = append(parts, reference(inner.schema))
			continue
		}

		for j := range inner.fields {
			properties = append(properties, member{
				inner.fields[j].name,
				s.field(&inner.fields[j]),
			})
		}
	}

	own := []member{{"type", "object"}}
	if required != nil {
		own = append(own, member{"required", required})
	}

	own = append(own, member{"properties", properties})
	if parts == nil {
		return own
	}

	return []member{{"allOf", append(parts, own)}}
}

// isRequired says whether the schema names the field as required.
func isRequired(t *wireType, f *wireField) bool {
	if f.doc.required || f.doc.optional {
		return f.doc.required
	}

	for i := range t.fields {
		if _, is := t.fields[i].rules["required"]; is {
			_, named := f.rules["required"]
			return named
		}
	}

	return !f.optional && !strings.HasSuffix(t.name, "Request")
}

// field returns the schema of a field.
func (s *schemas) field(f *wireField) []member {
	out := s.typed(f.expr, f.rules)
	if _, pointer := f.expr.(*ast.StarExpr); pointer && !f.optional {
		out = nullable(out)
	}

	if f.doc.text != "" {
		out = append(out, member{"description", flowing(f.doc.text)})
	}

	if f.doc.addition {
		out = append(out, member{"x-flexd-addition", true})
	}

	return merged(out, f.doc.merge)
}

// typed returns the schema of a type that keeps the rules.
func (s *schemas) typed(expr ast.Expr, rules map[string]string) []member {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return s.typed(e.X, rules)

	case *ast.ArrayType:
		out := []member{{"type", "array"}}
		if _, unique := rules["unique"]; unique {
			out = append(out, member{"uniqueItems", true})
		}

		if _, nonempty := rules["nonempty"]; nonempty {
			out = append(out, member{"minItems", json.Number("1")})
		}

		if most := rules["items"]; most != "" {
			out = append(out, member{"maxItems", json.Number(most)})
		}

		items := s.typed(e.Elt, map[string]string{"enum": rules["enum"]})
		if _, pointer := e.Elt.(*ast.StarExpr); pointer {
			items = nullable(items)
		}

		return append(out, member{"items", items})
	}

	if enum := rules["enum"]; enum != "" {
		return s.enumerated(enum, rules)
	}

	name := nameOf(expr)
	if t, ok := s.types[name]; ok {
		return reference(t.schema)
	}

	return bounded(basicOf(name), rules)
}

func (s *schemas) enumerated(enum string, rules map[string]string) []member {
	if name, ok := s.enums[enum]; ok {
		out := reference(name)
		if v, given := rules["default"]; given {
			out = append(out, member{"default", v})
		}

		return out
	}

	return bounded([]member{{"type", "string"}, {"enum", values(enum)}}, rules)
}

func values(enum string) []any {
	var list []any
	for _, v := range wire.Enum(enum) {
		list = append(list, v)
	}

	return list
}

func basicOf(name string) []member {
	if b, ok := basic[name]; ok {
		return slices.Clone(b)
	}

	if strings.HasPrefix(name, "flex.") && strings.HasSuffix(name, "ID") {
		return []member{{"type", "string"}, {"format", "uuid"}}
	}

	return []member{{"type", "string"}}
}

// bounded adds what the rules say of a value.
func bounded(out []member, rules map[string]string) []member {
	for _, rule := range []struct{ word, name string }{
		{"min", "minimum"},
		{"max", "maximum"},
		{"text", "maxLength"},
	} {
		if v := rules[rule.word]; v != "" {
			out = append(out, member{rule.name, json.Number(v)})
		}
	}

	if _, nonempty := rules["nonempty"]; nonempty {
		out = append(out, member{"minLength", json.Number("1")})
	}

	if rules["like"] == "uuid" {
		out = append(out, member{"format", "uuid"})
	}

	if only := rules["only"]; only != "" {
		out = append(out, member{"pattern", "^" + only + "$"})
	}

	if v, given := rules["default"]; given {
		var value any = v
		if out[0].value != "string" {
			value = json.Number(v)
		}

		out = append(out, member{"default", value})
	}

	return out
}

// nullable is a schema of what may be null as well.
func nullable(out []member) []member {
	if out[0].name == "type" {
		out[0].value = []any{out[0].value, "null"}
	}

	return out
}

func reference(schema string) []member {
	return []member{{"$ref", "#/components/schemas/" + schema}}
}

// merged returns the members with further ones, which stand in for those of their name. Null
// takes one away.
func merged(members, further []member) []member {
	for _, m := range further {
		members = slices.DeleteFunc(members, func(have member) bool {
			return have.name == m.name
		})
		if m.value != nil {
			members = append(members, m)
		}
	}

	return members
}

// flowing takes the line breaks out of the paragraphs of a comment.
func flowing(text string) string {
	var paragraphs []string
	for p := range strings.SplitSeq(text, "\n\n") {
		paragraphs = append(paragraphs, strings.Join(strings.Fields(p), " "))
	}

	return strings.Join(paragraphs, "\n\n")
}

// nameOf returns the name of a type: its own, or package and name.
func nameOf(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name

	case *ast.SelectorExpr:
		return fmt.Sprint(e.X, ".", e.Sel.Name)

	case *ast.StarExpr:
		return nameOf(e.X)
	}

	return fmt.Sprintf("%T", expr)
}
