package guide

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// document is what the collection needs of an OpenAPI document.
type document struct {
	Info       struct{ Title, Version, Description string }
	Paths      map[string]map[string]operation
	Components struct{ Parameters map[string]parameter }
}

type operation struct {
	Summary     string
	Description string
	Security    *[]any // empty where no token is needed
	Parameters  []parameter
	Responses   map[string]any // by status
	RequestBody struct {
		Content map[string]struct{ Example any }
	}
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name        string
	In          string
	Description string
	Required    bool
	Example     any
}

// A collection of format 2.1, as far as it is used.
type (
	collection struct {
		Info     map[string]string `json:"info"`
		Auth     map[string]any    `json:"auth"`
		Variable []pair            `json:"variable"`
		Item     []folder          `json:"item"`
	}
	folder struct {
		Name        string `json:"name"`
		Description string `json:"description,omitzero"`
		Item        []call `json:"item"`
	}
	call struct {
		Name    string           `json:"name"`
		Event   []map[string]any `json:"event,omitzero"`
		Request request          `json:"request"`
	}
	request struct {
		Method      string         `json:"method"`
		Description string         `json:"description,omitzero"`
		Auth        map[string]any `json:"auth,omitzero"`
		Header      []pair         `json:"header"`
		URL         address        `json:"url"`
		Body        map[string]any `json:"body,omitzero"`
	}
	address struct {
		Raw      string   `json:"raw"`
		Host     []string `json:"host"`
		Path     []string `json:"path"`
		Query    []pair   `json:"query,omitzero"`
		Variable []pair   `json:"variable,omitzero"`
	}
	pair struct {
		Key         string `json:"key"`
		Value       string `json:"value"`
		Description string `json:"description,omitzero"`
		Disabled    bool   `json:"disabled,omitzero"`
	}
)

// PostmanBase is the address that a collection calls unless another is put in its place.
const PostmanBase = "http://127.0.0.1:8080"

// Postman makes a Postman collection of an OpenAPI document in JSON: a request of every
// operation, in folders and in an order that run whole from a fresh sandbox. Each request
// tests its answer's status, and ids are taken from the answers that have them. The address,
// name, password and token are variables of the collection. It fails when the story and the
// document do not have the same operations.
func Postman(openAPI []byte) ([]byte, error) {
	var d document
	if err := json.Unmarshal(openAPI, &d); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}

	c := collection{
		Info: map[string]string{
			"name":        d.Info.Title + " " + d.Info.Version,
			"description": d.Info.Description,
			"schema":      "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
		},
		Auth: map[string]any{
			"type":   "bearer",
			"bearer": []map[string]string{{"key": "token", "value": "{{token}}", "type": "string"}},
		},
		Variable: []pair{{Key: "baseUrl", Value: PostmanBase}, {Key: "username"}, {Key: "password"}},
	}

	kept := map[string]bool{}
	for _, chapter := range story {
		f := folder{
			Name:        chapter.name,
			Description: chapter.about,
		}

		for _, s := range chapter.steps {
			for _, name := range sorted(s.keep) {
				kept[name] = true
				c.Variable = append(c.Variable, pair{Key: name})
			}

			call, err := d.call(s, kept)
			if err != nil {
				return nil, err
			}
			f.Item = append(f.Item, call)
		}
		c.Item = append(c.Item, f)
	}

	if left := d.left(); left != nil {
		return nil, fmt.Errorf(
			"no request of the collection is %s",
			strings.Join(left, ", "),
		)
	}

	return json.MarshalIndent(c, "", " ")
}

// left are the operations of the document that the story does not have, in order.
func (d *document) left() []string {
	there := map[string]bool{}
	for _, chapter := range story {
		for _, s := range chapter.steps {
			there[s.operation] = true
		}
	}

	var all []string
	for _, path := range sorted(d.Paths) {
		for _, method := range []string{
			"GET",
			"POST",
			"PUT",
			"PATCH",
			"DELETE",
		} {
			_, documented := d.Paths[path][strings.ToLower(method)]
			if name := method + " " + path; documented && !there[name] {
				all = append(all, name)
			}
		}
	}

	return all
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)

	return keys
}

// call is the request of one step. A parameter whose name is one of the variables kept from
// earlier answers is that variable.
func (d *document) call(s step, kept map[string]bool) (call, error) {
	method, path, _ := strings.Cut(s.operation, " ")
	op, documented := d.Paths[path][strings.ToLower(method)]
	if !documented {
		return call{}, fmt.Errorf("the document has no %s", s.operation)
	}

	r := request{
		Method:      method,
		Description: s.described(op),
		Header:      []pair{},
		URL:         addressOf(path),
	}

	for _, p := range op.Parameters {
		if p.Ref != "" {
			name := p.Ref[strings.LastIndex(p.Ref, "/")+1:]
			p = d.Components.Parameters[name]
		}
		r.parameter(s.parameter(p, kept))
	}

	if q := query(r.URL.Query); q != "" {
		r.URL.Raw += "?" + q
	}

	if op.Security != nil && len(*op.Security) == 0 {
		r.Auth = map[string]any{"type": "noauth"}
	}

	r.body(op, s.body)

	script := map[string]any{
		"type": "text/javascript",
		"exec": s.script(op),
	}

	return call{
		Name:    op.Summary,
		Event:   []map[string]any{{"listen": "test", "script": script}},
		Request: r,
	}, nil
}

// described is the document's description, with what is said of a refusal.
func (s step) described(op operation) string {
	if s.refused == 0 {
		return op.Description
	}

	return strings.TrimSpace(fmt.Sprintf(
		"%s\n\nIn a fresh sandbox this is answered with %d: %s.",
		op.Description,
		s.refused,
		s.why,
	))
}

// parameter is a parameter with the value that it has in the story.
func (s step) parameter(p parameter, kept map[string]bool) parameter {
	if value, set := s.set[p.Name]; set {
		p.Example, p.Required = value, true
	} else if kept[p.Name] && p.Required {
		p.Example = "{{" + p.Name + "}}"
	}

	return p
}

// script is what Postman runs after the answer: a test of the status, and what is kept.
func (s step) script(op operation) []string {
	wanted := sorted(op.Responses)[0] // a success, for they come first
	if s.refused > 0 {
		wanted += fmt.Sprintf(", %d", s.refused)
	}

	lines := []string{fmt.Sprintf(
		`pm.test("status", () => pm.expect(pm.response.code).to.be.oneOf([%s]));`,
		wanted,
	)}

	for _, name := range sorted(s.keep) {
		from := s.keep[name]
		if !strings.HasPrefix(from, "[") {
			from = "." + from
		}

		lines = append(
			lines,
			fmt.Sprintf(
				`pm.collectionVariables.set("%s", pm.response.json()%s);`,
				name,
				from,
			),
		)
	}

	return lines
}

// addressOf is the address of a path, whose variables Postman marks with a colon.
func addressOf(path string) address {
	a := address{Host: []string{"{{baseUrl}}"}}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if strings.HasPrefix(part, "{") {
			part = ":" + strings.Trim(part, "{}")
		}
		a.Path = append(a.Path, part)
	}

	a.Raw = "{{baseUrl}}/" + strings.Join(a.Path, "/")

	return a
}

// parameter puts a parameter where it belongs. One that is not needed is listed and not sent.
func (r *request) parameter(p parameter) {
	q := pair{
		Key:         p.Name,
		Value:       plain(p.Example),
		Description: p.Description,
		Disabled:    !p.Required,
	}

	switch p.In {
	case "path":
		r.URL.Variable = append(r.URL.Variable, q)
	case "query":
		r.URL.Query = append(r.URL.Query, q)
	case "header":
		r.Header = append(r.Header, q)
	}
}

// body gives the request the document's example of it, or a text in its place.
func (r *request) body(op operation, instead string) {
	kinds := sorted(op.RequestBody.Content)
	if len(kinds) == 0 {
		return
	}

	kind := kinds[0]
	example := op.RequestBody.Content[kind].Example
	r.Header = append(r.Header, pair{Key: "Content-Type", Value: kind})

	fields, isForm := example.(map[string]any)
	if !isForm || !strings.HasSuffix(kind, "urlencoded") {
		// it was read from JSON
		text, _ := json.MarshalIndent(example, "", "  ")
		if instead == "" {
			instead = string(text)
		}
		r.Body = map[string]any{"mode": "raw", "raw": instead}
		return
	}

	var list []pair
	for _, name := range sorted(fields) {
		value := plain(fields[name])
		if name == "username" || name == "password" {
			value = "{{" + name + "}}"
		}
		list = append(list, pair{Key: name, Value: value})
	}

	r.Body = map[string]any{"mode": "urlencoded", "urlencoded": list}
}

// query is the query of the parameters that are needed.
func query(ps []pair) string {
	v := url.Values{}
	for _, p := range ps {
		if !p.Disabled {
			v.Set(p.Key, p.Value)
		}
	}

	return v.Encode()
}

// plain is an example as it stands in an address or a form.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}

	b, _ := json.Marshal(v) // it was read from JSON

	return string(b)
}
