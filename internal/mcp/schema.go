package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// confirmation is the argument that a change is made with.
const confirmation = "confirmation"

// object is a JSON object of the document.
type object = map[string]any

// document is what is read of openapi.yaml, as JSON.
type document struct {
	Paths      map[string]map[string]operation
	Components struct {
		Parameters map[string]parameter
		Schemas    map[string]any
	}
}

// readDocument asks the interface for its own description.
func readDocument(api http.Handler) (document, error) {
	r, err := http.NewRequest(http.MethodGet, "/openapi.json", http.NoBody)
	if err != nil {
		return document{}, err
	}

	r.RemoteAddr = inProcess
	r.RequestURI = "/openapi.json"
	w := recorder{header: http.Header{}, code: http.StatusOK}
	api.ServeHTTP(&w, r)

	var d document
	if err := json.Unmarshal(w.body.Bytes(), &d); err != nil {
		return d, fmt.Errorf(
			"read the interface's document (%d): %w",
			w.code,
			err,
		)
	}

	return d, nil
}

// operation is one operation of the document.
type operation struct {
	Summary     string
	Description string
	Parameters  []parameter
	RequestBody struct {
		Required bool
		Content  map[string]struct{ Schema any }
	}
}

// parameter is one parameter of an operation, or a reference to one.
type parameter struct {
	Ref         string `json:"$ref"`
	Name        string
	In          string // "path", "query" or "header"
	Required    bool
	Description string
	Schema      object
}

// described is a tool as an agent is shown it.
type described struct {
	tool
	text   string // what it does
	schema object // of its arguments
	query  []string
	inPath []string
	body   bool
}

// describe finds the tool's operation and makes the schema of its arguments.
func (d *document) describe(t tool) (described, error) {
	op, known := d.Paths[t.path][strings.ToLower(t.method)]
	if !known {
		return described{}, fmt.Errorf(
			"tool %s: the document has no operation %s %s",
			t.name,
			t.method,
			t.path,
		)
	}

	of := described{
		tool: t,
		text: strings.TrimSpace(op.Summary + ". " + op.Description),
	}

	properties := object{}
	required := []string{}

	for _, p := range op.Parameters {
		p = d.resolve(p)
		if !p.argument() {
			continue
		}

		properties[p.Name] = p.shown()
		of.place(p)
		if p.Required {
			required = append(required, p.Name)
		}
	}

	if content, given := op.RequestBody.Content["application/json"]; given {
		of.body = true
		properties["body"] = content.Schema
		if op.RequestBody.Required {
			required = append(required, "body")
		}
	}

	if t.dryRun != nil {
		of.text += " This changes something: the first call changes nothing, shows what would be done and gives a confirmation; call again with the same arguments and that confirmation to do it."
		properties[confirmation] = object{
			"type":        "string",
			"description": "What the first call with these arguments gave. Left out in the first call.",
		}
	}

	of.schema = object{
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	}

	if len(required) > 0 {
		of.schema["required"] = required
	}

	return of, d.include(of.schema)
}

// place notes where the request has a parameter.
func (t *described) place(p parameter) {
	if p.In == "path" {
		t.inPath = append(t.inPath, p.Name)
	} else {
		t.query = append(t.query, p.Name)
	}
}

// argument reports whether an agent gives the parameter. A dry run is the first call, and answers
// are always JSON.
func (p parameter) argument() bool {
	inAddress := p.In == "path" || p.In == "query"
	return inAddress && p.Name != "dry_run" && p.Name != "format"
}

// resolve follows a reference to a shared parameter.
func (d *document) resolve(p parameter) parameter {
	name, shared := strings.CutPrefix(p.Ref, "#/components/parameters/")
	if shared {
		return d.Components.Parameters[name]
	}

	return p
}

// shown is the parameter's schema with its description.
func (p parameter) shown() object {
	schema := object{}
	for name, v := range p.Schema {
		schema[name] = v
	}
	if p.Description != "" {
		schema["description"] = p.Description
	}

	return schema
}

// Where the document has its schemas, and where a schema that stands alone has them.
const (
	sharedSchemas = "#/components/schemas/"
	ownSchemas    = "#/$defs/"
)

// include puts the shared schemas that a schema refers to, at any depth, into it.
func (d *document) include(schema object) error {
	defs := object{}
	wanted := references(schema)

	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		if defs[name] != nil {
			continue
		}

		shared, known := d.Components.Schemas[name]
		if !known {
			return fmt.Errorf("the document has no schema %s", name)
		}

		defs[name] = shared
		wanted = append(wanted, references(shared)...)
	}

	if len(defs) > 0 {
		schema["$defs"] = defs
	}

	return nil
}

// references are the names of shared schemas that a part of the document names.
func references(v any) []string {
	var names []string
	switch v := v.(type) {
	case object:
		if ref, is := v["$ref"].(string); is {
			name, shared := strings.CutPrefix(ref, sharedSchemas)
			if shared {
				names = append(names, name)
			}
		}

		for _, part := range v {
			names = append(names, references(part)...)
		}

	case []any:
		for _, part := range v {
			names = append(names, references(part)...)
		}
	}

	slices.Sort(names)

	return slices.Compact(names)
}

// standalone is the schema as JSON, with references to its own definitions.
func (t *described) standalone() (json.RawMessage, error) {
	b, err := json.Marshal(t.schema)
	if err != nil {
		return nil, err
	}

	return json.RawMessage(strings.ReplaceAll(
		string(b),
		sharedSchemas,
		ownSchemas,
	)), nil
}
