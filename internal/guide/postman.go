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
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]operation
	Components struct{ Parameters map[string]parameter }
}

type operation struct {
	Tags                 []string
	Summary, Description string
	Security             *[]any // empty where no token is needed
	Parameters           []parameter
	RequestBody          struct {
		Content map[string]struct{ Example any }
	}
}

type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Example               any
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

// keepToken is run by Postman after the login: the other requests bear its token.
const keepToken = `pm.collectionVariables.set("token", pm.response.json().access_token);`

// PostmanBase is the address that a collection calls unless another is put in its place.
const PostmanBase = "http://127.0.0.1:8080"

// Postman makes a Postman collection of an OpenAPI document in JSON: a request of every
// operation, with the document's examples, a folder for each tag. The address, name,
// password and token are variables of the collection.
func Postman(openAPI []byte) ([]byte, error) {
	var d document
	if err := json.Unmarshal(openAPI, &d); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}

	c := collection{
		Info: map[string]string{"name": d.Info.Title + " " + d.Info.Version, "description": d.Info.Description,
			"schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
		Auth:     map[string]any{"type": "bearer", "bearer": []map[string]string{{"key": "token", "value": "{{token}}", "type": "string"}}},
		Variable: []pair{{Key: "baseUrl", Value: PostmanBase}, {Key: "username"}, {Key: "password"}, {Key: "token"}},
	}

	for _, t := range d.Tags {
		f := folder{Name: t.Name, Description: t.Description}
		for _, path := range sorted(d.Paths) {
			for _, method := range []string{"get", "post", "put", "patch", "delete"} {
				if op, ok := d.Paths[path][method]; ok && slices.Contains(op.Tags, t.Name) {
					f.Item = append(f.Item, d.call(path, method, op))
				}
			}
		}

		// The login is the first request of all, for the others bear its token.
		slices.SortStableFunc(f.Item, func(a, b call) int { return len(b.Event) - len(a.Event) })
		c.Item = append(c.Item, f)
	}

	return json.MarshalIndent(c, "", " ")
}

func sorted[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// call is the request of one operation.
func (d *document) call(path, method string, op operation) call {
	r := request{
		Method:      strings.ToUpper(method),
		Description: op.Description,
		Header:      []pair{},
		URL:         addressOf(path),
	}

	for _, p := range op.Parameters {
		if p.Ref != "" {
			name := p.Ref[strings.LastIndex(p.Ref, "/")+1:]
			p = d.Components.Parameters[name]
		}
		r.parameter(p)
	}

	if q := query(r.URL.Query); q != "" {
		r.URL.Raw += "?" + q
	}

	if op.Security != nil && len(*op.Security) == 0 {
		r.Auth = map[string]any{"type": "noauth"}
	}

	r.body(op)
	c := call{Name: op.Summary, Request: r}

	if path == "/auth/token-form" {
		script := map[string]any{"type": "text/javascript", "exec": []string{keepToken}}
		c.Event = []map[string]any{{"listen": "test", "script": script}}
	}

	return c
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
	q := pair{Key: p.Name, Value: plain(p.Example), Description: p.Description, Disabled: !p.Required}
	switch p.In {
	case "path":
		r.URL.Variable = append(r.URL.Variable, q)
	case "query":
		r.URL.Query = append(r.URL.Query, q)
	case "header":
		r.Header = append(r.Header, q)
	}
}

// body gives the request the document's example of it.
func (r *request) body(op operation) {
	kinds := sorted(op.RequestBody.Content)
	if len(kinds) == 0 {
		return
	}

	kind := kinds[0]
	example := op.RequestBody.Content[kind].Example
	r.Header = append(r.Header, pair{Key: "Content-Type", Value: kind})

	fields, isForm := example.(map[string]any)
	if !isForm || !strings.HasSuffix(kind, "urlencoded") {
		text, _ := json.MarshalIndent(example, "", "  ") // it was read from JSON
		r.Body = map[string]any{"mode": "raw", "raw": string(text)}
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
