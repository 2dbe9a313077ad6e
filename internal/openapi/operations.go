package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"reflect"
	"slices"
	"strconv"
	"strings"

	json2 "github.com/go-json-experiment/json"

	"flexd/internal/api"
)

// operations makes the operations of routes.
type operations struct {
	*schemas
	source *source
}

// paths returns the operations by path and method, in the order of the routes.
func (o *operations) paths(routes []api.Route) ([]member, error) {
	described := 0

	var paths []member
	for _, rt := range routes {
		if rt.Operation == nil {
			if !rt.Document && !rt.Unlisted {
				return nil, fmt.Errorf(
					"%s %s has no Operation that describes it",
					rt.Method,
					rt.Pattern,
				)
			}

			continue
		}

		described++
		made, err := o.of(rt)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", rt.Method, rt.Pattern, err)
		}

		at := slices.IndexFunc(paths, func(m member) bool {
			return m.name == rt.Pattern
		})
		if at < 0 {
			at = len(paths)
			paths = append(paths, member{rt.Pattern, []member(nil)})
		}

		paths[at].value = append(paths[at].value.([]member), member{
			strings.ToLower(rt.Method),
			made,
		})
	}

	if described != o.source.operations {
		return nil, fmt.Errorf(
			"%d operations are written down and %d have a route: each group belongs into the surface",
			o.source.operations,
			described,
		)
	}

	return paths, nil
}

// of returns the operation of a route.
func (o *operations) of(rt api.Route) ([]member, error) {
	op := rt.Operation
	reads, err := o.source.read(rt.Handler())
	if err != nil {
		return nil, err
	}

	parameters, err := o.parameters(rt, reads)
	if err != nil {
		return nil, err
	}

	out := []member{
		{"tags", []any{op.Tag}},
		{"operationId", op.ID},
		{"summary", op.Summary},
	}

	if op.Text != "" {
		out = append(out, member{"description", op.Text})
	}

	if op.Deprecated {
		out = append(out, member{"deprecated", true})
	}

	out = append(out, access(rt)...)
	if parameters != nil {
		out = append(out, member{"parameters", parameters})
	}

	if rt.Limit > 0 {
		body, err := o.body(op, reads)
		if err != nil {
			return nil, err
		}

		out = append(out, member{"requestBody", body})
	}

	responses, err := o.responses(rt, reads != parts{})

	return append(out, member{"responses", responses}), err
}

// access says who may call a route, and whether it is flexd's own.
func access(rt api.Route) []member {
	var out []member
	switch rt.Role {
	case api.Public:
		out = append(out, member{"security", []any{}})

	case api.Anyone:

	default:
		out = append(out, member{"x-flexd-role", string(rt.Role)})
	}

	if rt.Operation.Addition {
		out = append(out, member{"x-flexd-addition", true})
	}

	return out
}

// parameters are those of the types that the handler reads, and the Idempotency-Key.
func (o *operations) parameters(
	rt api.Route,
	reads parts,
) ([]any, error) {
	var list []any
	for _, from := range []struct{ in, name string }{
		{"path", reads.path},
		{"query", reads.query},
	} {
		if from.name == "" {
			continue
		}

		t, ok := o.types[from.name]
		if !ok {
			return nil, fmt.Errorf("package wire has no %s", from.name)
		}

		for i := range t.fields {
			list = append(list, o.parameter(from.in, &t.fields[i]))
		}
	}

	if rt.TakesKey() {
		list = append(
			list,
			[]member{{"$ref", "#/components/parameters/IdempotencyKey"}},
		)
	}

	return list, nil
}

// parameter is a field of a type as a parameter. What is said of the field and its example
// belong to the parameter, and all else to its schema.
func (o *operations) parameter(in string, f *wireField) []member {
	out := []member{{"name", f.name}, {"in", in}}
	if _, required := f.rules["required"]; required {
		out = append(out, member{"required", true})
	}

	var schema []member
	field := *f
	if pointer, ok := f.expr.(*ast.StarExpr); ok {
		field.expr = pointer.X // absent, and not null
	}

	for _, m := range o.field(&field) {
		switch m.name {
		case "description", "example", "x-flexd-addition":
			out = append(out, m)

		default:
			schema = append(schema, m)
		}
	}

	return append(out, member{"schema", schema})
}

// body is what is sent. The type of its example is the one that the handler reads, if it says
// so.
func (o *operations) body(op *api.Operation, reads parts) ([]member, error) {
	if op.Body.Type == nil {
		return nil, fmt.Errorf("it takes a body, and its Operation says of none")
	}

	if reads.body != "" && op.Body.Type.Name() != reads.body {
		return nil, fmt.Errorf(
			"the example of its body is a %s, and it reads a %s",
			op.Body.Type.Name(),
			reads.body,
		)
	}

	if op.OptionalBody && !reads.mayBeEmpty {
		return nil, fmt.Errorf("its body cannot be left out")
	}

	if reads.mayBeEmpty && !op.OptionalBody {
		return nil, fmt.Errorf("its body can be left out, and its Operation does not say so")
	}

	media := "application/json"
	if reads.isForm {
		media = "application/x-www-form-urlencoded"
	}

	content, err := o.sample(op.Body)

	return []member{
		{"required", !op.OptionalBody},
		{"content", []member{{media, content}}},
	}, err
}

// responses are the answers of a route by status.
func (o *operations) responses(rt api.Route, checked bool) ([]member, error) {
	answer := rt.Operation.Answer
	success := []member{{"description", answer.Text}, headers()}
	if !answer.Empty {
		content, err := o.content(answer)
		if err != nil {
			return nil, err
		}

		success = append(success, member{"content", content})
	}

	out := []member{{strconv.Itoa(answer.Status()), success}}
	for _, p := range rt.Described(checked) {
		out = append(out, member{
			strconv.Itoa(p.Status),
			[]member{{"$ref", "#/components/responses/" + p.Name}},
		})
	}

	return out, nil
}

// content is the body of an answer, by media type.
func (o *operations) content(a api.Answer) ([]member, error) {
	body, err := o.sample(a.Body)
	if a.Null {
		body[0].value = []member{
			{"oneOf", []any{body[0].value, []member{{"type", "null"}}}},
		}
	}

	out := []member{{"application/json", body}}

	text := []member{{"type", "string"}}
	if a.CSV {
		out = append(out, member{"text/csv", []member{{"schema", text}}})
	}

	if a.Events != "" {
		out = append(out, member{
			"text/event-stream",
			[]member{{"schema", text}, {"example", a.Events}},
		})
	}

	if a.Plain != "" {
		out = append(out, member{
			"text/plain",
			[]member{{"schema", text}, {"example", a.Plain}},
		})
	}

	return out, err
}

// problems are the shared answers of all operations, each once.
func (o *operations) problems(routes []api.Route) ([]member, error) {
	var all []api.Problem
	for _, rt := range routes {
		if rt.Operation != nil {
			all = append(all, rt.Described(true)...)
			all = append(all, rt.Described(false)...)
		}
	}

	slices.SortStableFunc(all, func(a, b api.Problem) int {
		return strings.Compare(a.Name, b.Name)
	})
	all = slices.CompactFunc(all, func(a, b api.Problem) bool {
		return a.Name == b.Name
	})

	var out []member
	for _, p := range all {
		answer := []member{{"description", p.Text}, headers(p.Headers...)}
		if p.Body.Type != nil {
			content, err := o.sample(p.Body)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.Name, err)
			}

			if p.Or != nil {
				content[0].value = []member{
					{"anyOf", []any{o.schemaOf(p.Or), content[0].value}},
				}
			}

			answer = append(answer, member{
				"content",
				[]member{{"application/json", content}},
			})
		}

		out = append(out, member{p.Name, answer})
	}

	return out, nil
}

// headers are the Request-Id, which every answer has, and further ones.
func headers(further ...string) member {
	var list []member
	for _, name := range append([]string{"Request-Id"}, further...) {
		list = append(list, member{
			name,
			[]member{{"$ref", "#/components/headers/" + name}},
		})
	}

	return member{"headers", list}
}

// sample is a body of JSON with its schema and its example, which must be one of its type.
func (o *operations) sample(s api.Sample) ([]member, error) {
	if s.Type == nil {
		return []member{{"schema", []member{}}}, nil
	}

	out := []member{{"schema", o.schemaOf(s.Type)}}
	if s.JSON == "" {
		return out, nil
	}

	if err := json2.Unmarshal(
		[]byte(s.JSON),
		reflect.New(s.Type).Interface(),
		json2.RejectUnknownMembers(true),
	); err != nil {
		return nil, fmt.Errorf("the example is no %v: %w", s.Type, err)
	}

	in := json.NewDecoder(strings.NewReader(s.JSON))
	in.UseNumber()

	example, err := readJSON(in)

	return append(out, member{"example", example}), err
}

// schemaOf refers to the schema of a type.
func (o *operations) schemaOf(t reflect.Type) []member {
	if t.Kind() == reflect.Slice {
		return []member{{"type", "array"}, {"items", o.schemaOf(t.Elem())}}
	}

	return reference(o.types[t.Name()].schema)
}
