package guide

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// described is what the reference shows of an OpenAPI document.
type described struct {
	Tags []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tags"`
	Paths      map[string]map[string]*describedCall `json:"paths"`
	Webhooks   map[string]map[string]*describedCall `json:"webhooks"`
	Components struct {
		Parameters map[string]*describedParameter `json:"parameters"`
		Responses  map[string]*content            `json:"responses"`
		Schemas    map[string]*schema             `json:"schemas"`
	} `json:"components"`
}

type describedCall struct {
	Tags        []string              `json:"tags"`
	Summary     string                `json:"summary"`
	Description string                `json:"description"`
	Role        string                `json:"x-flexd-role"`
	Addition    bool                  `json:"x-flexd-addition"`
	Parameters  []*describedParameter `json:"parameters"`
	Body        *content              `json:"requestBody"`
	Responses   map[string]*content   `json:"responses"`

	method, path string
}

type describedParameter struct {
	Ref         string  `json:"$ref"`
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description"`
	Required    bool    `json:"required"`
	Schema      *schema `json:"schema"`
}

// content is a body: of a request, or of an answer.
type content struct {
	Ref         string `json:"$ref"`
	Description string `json:"description"`
	Content     map[string]struct {
		Schema  *schema         `json:"schema"`
		Example json.RawMessage `json:"example"`
	} `json:"content"`
}

type schema struct {
	Ref         string             `json:"$ref"`
	Description string             `json:"description"`
	Type        any                `json:"type"` // a text, or several
	Format      string             `json:"format"`
	Enum        []any              `json:"enum"`
	Items       *schema            `json:"items"`
	AllOf       []*schema          `json:"allOf"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
}

// Reference is the page of all operations of an OpenAPI document, given as JSON.
func Reference(source []byte) ([]byte, error) {
	var d described
	if err := json.Unmarshal(source, &d); err != nil {
		return nil, fmt.Errorf("read the document of the interface: %w", err)
	}

	var b strings.Builder
	b.WriteString("# Reference\n\nEvery operation of the [interface](/docs/interface), as [OpenAPI](/openapi.json) has it." +
		" The [Postman collection](/docs/postman.json) tries them.\n\n")

	for _, tag := range d.Tags {
		d.list(&b, tag.Name)
	}

	for _, tag := range d.Tags {
		d.tag(&b, tag.Name, tag.Description)
	}

	b.WriteString("## Types\n\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		d.schema(&b, name)
	}

	return fill("reference", "Reference", render(b.String())), nil
}

// operations are those of a tag, by path and method.
func operations(paths map[string]map[string]*describedCall, tag string) []*describedCall {
	var found []*describedCall
	for path, methods := range paths {
		for method, o := range methods {
			if o != nil && slices.Contains(o.Tags, tag) {
				o.method, o.path = strings.ToUpper(method), path
				found = append(found, o)
			}
		}
	}

	slices.SortFunc(found, func(a, b *describedCall) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method))
	})

	return found
}

// list names the operations of a tag, each as a link to where it is described.
func (d *described) list(b *strings.Builder, name string) {
	calls := operations(d.Paths, name)
	sent := operations(d.Webhooks, name)
	if len(calls)+len(sent) == 0 {
		return
	}

	fmt.Fprintf(b, "[**%s**](#%s)\n\n", title(name), anchorOf(title(name)))

	for _, o := range calls {
		heading := o.method + " " + o.path
		fmt.Fprintf(b, "- [`%s`](#%s) %s\n", heading, anchorOf(heading), sentence(o.Summary))
	}

	for _, o := range sent {
		heading := "Sent to you: " + o.path
		fmt.Fprintf(b, "- [%s](#%s) %s\n", heading, anchorOf(heading), sentence(o.Summary))
	}

	b.WriteString("\n")
}

// anchorOf is the id of a heading.
func anchorOf(heading string) string { return string(anchors{}.Generate([]byte(heading), 0)) }

func (d *described) tag(b *strings.Builder, name, description string) {
	calls := operations(d.Paths, name)
	sent := operations(d.Webhooks, name)
	if len(calls)+len(sent) == 0 {
		return
	}

	fmt.Fprintf(b, "## %s\n\n%s\n\n", title(name), sentence(description))

	for _, o := range calls {
		fmt.Fprintf(b, "### `%s %s`\n\n", o.method, o.path)
		d.operation(b, o)
	}

	for _, o := range sent {
		fmt.Fprintf(b, "### Sent to you: %s\n\n", o.path)
		d.operation(b, o)
	}
}

func (d *described) operation(b *strings.Builder, o *describedCall) {
	fmt.Fprintf(b, "**%s**\n\n%s\n\n", sentence(o.Summary), o.Description)
	if o.Role != "" {
		fmt.Fprintf(b, "Role: `%s`.", o.Role)
	}
	if o.Addition {
		b.WriteString(" An addition of flexd's.")
	}
	b.WriteString("\n\n")

	d.parameters(b, o.Parameters)
	if o.Body != nil {
		d.content(b, "Request", o.Body)
	}

	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if c := d.response(o.Responses[status]); status < "400" {
			d.content(b, "Answer "+status, c)
		}
	}

	d.refusals(b, o)
}

// refusals is a table of an operation's other answers.
func (d *described) refusals(b *strings.Builder, o *describedCall) {
	begun := false
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if status < "400" {
			continue
		}

		if !begun {
			b.WriteString("| Status | When |\n| --- | --- |\n")
			begun = true
		}

		fmt.Fprintf(
			b,
			"| %s | %s |\n",
			status,
			line(d.response(o.Responses[status]).Description),
		)
	}

	b.WriteString("\n")
}

// response is an answer, looked up where it is one of several operations.
func (d *described) response(c *content) *content {
	if c.Ref == "" {
		return c
	}

	return d.Components.Responses[last(c.Ref)]
}

func (d *described) parameters(b *strings.Builder, ps []*describedParameter) {
	if len(ps) == 0 {
		return
	}

	b.WriteString("| Parameter | In | Type | Meaning |\n| --- | --- | --- | --- |\n")
	for _, p := range ps {
		if p.Ref != "" {
			p = d.Components.Parameters[last(p.Ref)]
		}

		name := "`" + p.Name + "`"
		if p.Required {
			name += ", required"
		}

		fmt.Fprintf(
			b,
			"| %s | %s | %s | %s |\n",
			name,
			p.In,
			kind(p.Schema),
			line(p.Description),
		)
	}

	b.WriteString("\n")
}

func (d *described) content(b *strings.Builder, what string, c *content) {
	fmt.Fprintf(b, "%s: %s", what, line(c.Description))
	for _, media := range slices.Sorted(maps.Keys(c.Content)) {
		body := c.Content[media]
		fmt.Fprintf(b, " %s, `%s`\n\n", kind(body.Schema), media)

		if media == "application/json" && len(body.Example) > 0 {
			var pretty bytes.Buffer
			if json.Indent(&pretty, body.Example, "", "  ") == nil {
				fmt.Fprintf(b, "```json\n%s\n```\n", pretty.String())
			}
		}
	}

	b.WriteString("\n\n")
}

// schema shows a type by its fields.
func (d *described) schema(b *strings.Builder, name string) {
	s := d.Components.Schemas[name]
	fmt.Fprintf(b, "### Type %s\n\n%s\n\n", name, s.Description)

	parts := append([]*schema{s}, s.AllOf...)
	if len(s.Enum) > 0 {
		fmt.Fprintf(b, "%s\n\n", kind(s))
	}

	begun := false
	for _, part := range parts {
		if part.Ref != "" {
			fmt.Fprintf(b, "All of %s.\n\n", kind(part))
		}

		for _, field := range slices.Sorted(maps.Keys(part.Properties)) {
			if !begun {
				b.WriteString("| Field | Type | Meaning |\n| --- | --- | --- |\n")
				begun = true
			}

			shown := "`" + field + "`"
			if slices.Contains(part.Required, field) {
				shown += ", required"
			}

			of := part.Properties[field]
			fmt.Fprintf(b, "| %s | %s | %s |\n", shown, kind(of), line(of.Description))
		}
	}

	b.WriteString("\n")
}

// kind is a type in words, with a link where it has a name.
func kind(s *schema) string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		name := last(s.Ref)
		return fmt.Sprintf("[%s](#type-%s)", name, strings.ToLower(name))

	case s.Items != nil:
		return "list of " + kind(s.Items)
	case len(s.AllOf) == 1:
		return kind(s.AllOf[0])
	case len(s.Enum) > 0:
		return values(s.Enum)
	}

	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Type), " ", " or "), "[]")
	if s.Format != "" {
		text += " (" + s.Format + ")"
	}

	return text
}

func values(all []any) string {
	shown := make([]string, len(all))
	for i, v := range all {
		shown[i] = fmt.Sprintf("`%v`", v)
	}

	return strings.Join(shown, ", ")
}

func last(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// line is a text in a cell of a table.
func line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.ReplaceAll(text, "|", `\|`)
}

func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}

	return text + "."
}

func title(text string) string {
	if text == "" {
		return text
	}

	return strings.ToUpper(text[:1]) + text[1:]
}
