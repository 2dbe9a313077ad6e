package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// wireType is a struct of package wire.
type wireType struct {
	name   string // in Go
	schema string // in the document; empty if it is no schema
	file   string // where it is declared
	doc    comment
	fields []wireField
}

// wireField is a field of such a struct.
type wireField struct {
	goName   string // empty if it is embedded
	name     string // in JSON
	optional bool   // left out of answers when it is absent
	tag      string // the whole tag
	json     string // what of it is for JSON
	beside   string // the comment at the line's end
	rules    map[string]string
	expr     ast.Expr
	doc      comment
}

// comment is the one above a type or a field.
type comment struct {
	text     string
	addition bool
	required bool
	optional bool
	none     bool
	client   bool
	schema   string
	merge    []member
}

// readTypes returns the structs of the package in the folder, in the order of its files.
func readTypes(dir string) ([]wireType, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}

	var types []wireType
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		found, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		types = append(types, found...)
	}

	return types, nil
}

func readFile(name string) ([]wireType, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}

	file, err := parser.ParseFile(
		token.NewFileSet(),
		name,
		source,
		parser.ParseComments,
	)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}

	var types []wireType
	for _, decl := range file.Decls {
		made, ok := decl.(*ast.GenDecl)
		if !ok || made.Tok != token.TYPE {
			continue
		}

		for _, spec := range made.Specs {
			t, err := readType(made, spec.(*ast.TypeSpec))
			if err != nil {
				return nil, err
			}

			if t != nil {
				t.file = name
				types = append(types, *t)
			}
		}
	}

	return types, nil
}

// readType returns nil for what is no body of the interface: not exported, no struct, or
// without names for JSON.
func readType(made *ast.GenDecl, spec *ast.TypeSpec) (*wireType, error) {
	body, ok := spec.Type.(*ast.StructType)
	if !ok || !spec.Name.IsExported() {
		return nil, nil
	}

	group := spec.Doc
	if group == nil {
		group = made.Doc
	}

	doc, err := readComment(group)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name.Name, err)
	}

	t := &wireType{
		name:   spec.Name.Name,
		schema: spec.Name.Name,
		doc:    doc,
	}

	if doc.schema != "" {
		t.schema = doc.schema
	}

	if doc.none || isParameters(t.name) {
		t.schema = ""
	}

	for _, f := range body.Fields.List {
		field, err := readField(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}

		if field.goName != "" && field.name == "" {
			return nil, nil
		}

		t.fields = append(t.fields, field)
	}

	return t, nil
}

// isParameters reports whether a type holds the parameters of a path or a query.
func isParameters(name string) bool {
	return strings.HasSuffix(name, "Query") || strings.HasSuffix(name, "Path")
}

func readField(f *ast.Field) (wireField, error) {
	field := wireField{expr: f.Type}
	if f.Tag != nil {
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			return field, fmt.Errorf("the tag %s: %w", f.Tag.Value, err)
		}

		field.tag = tag
	}

	field.json = reflect.StructTag(field.tag).Get("json")
	name, options, _ := strings.Cut(field.json, ",")
	field.name = name
	field.optional = strings.Contains(options, "omit")
	field.rules = readRules(reflect.StructTag(field.tag).Get("wire"))
	if len(f.Names) > 0 {
		field.goName = f.Names[0].Name
	}

	if f.Comment != nil {
		field.beside = strings.TrimSpace(f.Comment.Text())
	}

	doc, err := readComment(f.Doc)
	field.doc = doc

	return field, err
}

// readRules takes the tag of a field apart, as package wire does.
func readRules(tag string) map[string]string {
	rules := map[string]string{}
	for word := range strings.SplitSeq(tag, ",") {
		name, value, _ := strings.Cut(word, "=")
		rules[name] = value
	}

	return rules
}

func readComment(group *ast.CommentGroup) (comment, error) {
	if group == nil {
		return comment{}, nil
	}

	var c comment
	c.text = strings.TrimSpace(group.Text())
	for _, line := range group.List {
		order, isOurs := strings.CutPrefix(line.Text, "//openapi:")
		if !isOurs {
			continue
		}

		if err := c.obey(order); err != nil {
			return c, fmt.Errorf("%s: %w", line.Text, err)
		}
	}

	return c, nil
}

// obey does what a line of the comment asks for.
func (c *comment) obey(order string) error {
	word, value, _ := strings.Cut(order, " ")
	switch word {
	case "addition":
		c.addition = true

	case "required":
		c.required = true

	case "optional":
		c.optional = true

	case "none":
		c.none = true

	case "client":
		c.client = true

	case "schema":
		c.schema = value

	case "merge":
		members, err := readMembers([]byte(value))
		c.merge = members

		return err

	default:
		return fmt.Errorf("no such word")
	}

	return nil
}

// readMembers reads a JSON object in its own order.
func readMembers(source []byte) ([]member, error) {
	values := map[string]any{}
	if err := json.Unmarshal(source, &values); err != nil {
		return nil, fmt.Errorf("read the JSON: %w", err)
	}

	return sorted(values), nil
}

// readJSON reads one value of JSON, with the members of objects in their own order.
func readJSON(in *json.Decoder) (any, error) {
	token, err := in.Token()
	if err != nil {
		return nil, fmt.Errorf("read the JSON: %w", err)
	}

	switch token {
	case json.Delim('{'):
		return readObject(in)

	case json.Delim('['):
		return readList(in)
	}

	return token, nil
}

// readObject reads on after the beginning of an object.
func readObject(in *json.Decoder) (any, error) {
	members := []member{}
	for in.More() {
		name, err := readJSON(in)
		if err != nil {
			return nil, err
		}

		value, err := readJSON(in)
		if err != nil {
			return nil, err
		}

		members = append(members, member{name.(string), value})
	}

	_, err := in.Token() // its end

	return members, err
}

// readList reads on after the beginning of a list.
func readList(in *json.Decoder) (any, error) {
	list := []any{}
	for in.More() {
		item, err := readJSON(in)
		if err != nil {
			return nil, err
		}

		list = append(list, item)
	}

	_, err := in.Token() // its end

	return list, err
}
