package openadr_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"flexd/internal/openadr"
)

// published is the specification as it was published.
func published(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("testdata/openadr-3.1.0.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// specification is the published one, with two schemas that no document can fulfil mended: a
// VEN is an object whose objectType is VEN and whose objectType is BL_VEN_REQUEST, and a
// resource likewise. The first of the two is taken.
var specification = sync.OnceValue(func() *openapi3.T {
	doc, err := openapi3.NewLoader().LoadFromFile("testdata/openadr-3.1.0.yaml")
	if err != nil {
		panic(err)
	}

	for name, request := range map[string]string{"ven": "BlVenRequest", "resource": "BlResourceRequest"} {
		mended := *doc.Components.Schemas[request].Value
		mended.Properties = maps.Clone(mended.Properties)
		delete(mended.Properties, "objectType")
		doc.Components.Schemas[name].Value.AllOf[1] = &openapi3.SchemaRef{Value: &mended}
	}
	return doc
})

// operationOf finds the operation of a request in a specification; nil if there is none.
func operationOf(doc *openapi3.T, method, path string) (template string, found *openapi3.Operation) {
	asked := strings.Split(strings.TrimPrefix(path, openadr.Root), "/")
	for template, item := range doc.Paths.Map() {
		parts := strings.Split(template, "/")
		same := len(parts) == len(asked)
		for i := range parts {
			same = same && (strings.HasPrefix(parts[i], "{") || parts[i] == asked[i])
		}
		if same {
			return template, item.GetOperation(method)
		}
	}
	return "", nil
}

// lookahead is the part of the specification's pattern of a duration that Go's expressions do
// not have: a digit, or a T and a digit, follow the P.
const lookahead = `(?=\d|T\d)`

type bothMatch []*regexp.Regexp

// MatchString reports whether all of them match.
func (b bothMatch) MatchString(s string) bool {
	for _, r := range b {
		if !r.MatchString(s) {
			return false
		}
	}
	return true
}

var goPatterns = openapi3.SetSchemaRegexCompiler(func(pattern string) (openapi3.RegexMatcher, error) {
	if !strings.Contains(pattern, lookahead) {
		return regexp.Compile(pattern)
	}
	rest, err := regexp.Compile(strings.Replace(pattern, lookahead, "", 1))
	return bothMatch{rest, regexp.MustCompile(`^-?P(\d|T\d)`)}, err
})

// beyond are the statuses that the specification does not list, and says nothing against: a
// token that is missing, and too many requests.
var beyond = []int{http.StatusUnauthorized, http.StatusTooManyRequests}

// fault says where an answer departs from a specification; "" if it does not.
func fault(doc *openapi3.T, method, path string, status int, header http.Header, body []byte) string {
	if kind := header.Get("Content-Type"); kind != "application/json" {
		return "Content-Type " + kind
	}

	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return "no JSON: " + err.Error()
	}

	schema := doc.Components.Schemas["problem"]
	_, op := operationOf(doc, method, path)
	switch {
	case op == nil && status != http.StatusNotFound && status != http.StatusMethodNotAllowed:
		return "no operation, and yet " + strconv.Itoa(status)
	case op == nil || slices.Contains(beyond, status):
	case op.Responses.Status(status) == nil:
		return "the operation has no status " + strconv.Itoa(status)
	default:
		schema = op.Responses.Status(status).Value.Content.Get("application/json").Schema
	}

	if err := schema.Value.VisitJSON(v, openapi3.VisitAsResponse(), goPatterns); err != nil {
		return err.Error()
	}
	return ""
}

// requestFault says where a request departs from a specification; "" if it does not.
func requestFault(doc *openapi3.T, r *http.Request, body []byte) string {
	_, op := operationOf(doc, r.Method, r.URL.Path)
	if op == nil {
		return "no operation " + r.Method + " " + r.URL.Path
	}

	query := r.URL.Query()
	for _, p := range op.Parameters {
		text := query.Get(p.Value.Name)
		given := query.Has(p.Value.Name)
		query.Del(p.Value.Name)
		if p.Value.In != "query" || !given {
			continue
		}

		var v any = text
		if !p.Value.Schema.Value.Type.Is("string") {
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return p.Value.Name + ": " + err.Error()
			}
		}
		if err := p.Value.Schema.Value.VisitJSON(v, goPatterns); err != nil {
			return p.Value.Name + ": " + err.Error()
		}
	}

	if len(query) > 0 {
		return "parameters that there are not: " + query.Encode()
	}

	if op.RequestBody == nil {
		if len(body) > 0 {
			return "a body where there is none"
		}
		return ""
	}
	if r.Header.Get("Content-Type") == formForm {
		return "" // of a token, which the server reads
	}

	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return "no JSON: " + err.Error()
	}
	schema := op.RequestBody.Value.Content.Get("application/json").Schema.Value
	if err := schema.VisitJSON(v, openapi3.VisitAsRequest(), goPatterns); err != nil {
		return err.Error()
	}
	return unknownMembers(schema, v, op.OperationID)
}

// formForm is the media type of a form.
const formForm = "application/x-www-form-urlencoded"

// unknownMembers names a member of a body that its schema does not have.
func unknownMembers(schema *openapi3.Schema, v any, at string) string {
	fields, isObject := v.(map[string]any)
	if items, isList := v.([]any); isList && schema.Items != nil {
		for _, item := range items {
			if said := unknownMembers(schema.Items.Value, item, at); said != "" {
				return said
			}
		}
	}
	if !isObject || len(schema.Properties) == 0 {
		return ""
	}

	for name, value := range fields {
		of := schema.Properties[name]
		if of == nil {
			return at + "." + name + " is not in the specification"
		}
		if said := unknownMembers(of.Value, value, at+"."+name); said != "" {
			return said
		}
	}
	return ""
}

// TestFault_Planted shows that what departs from the specification is found.
func TestFault_Planted(t *testing.T) {
	const program = `{"id":"a","objectType":"PROGRAM","createdDateTime":"2026-01-01T00:00:00Z","modificationDateTime":"2026-01-01T00:00:00Z","programName":"x"}`
	const ven = `{"id":"a","objectType":"VEN","createdDateTime":"2026-01-01T00:00:00Z","modificationDateTime":"2026-01-01T00:00:00Z","venName":"x","clientID":"c"}`
	isJSON := http.Header{"Content-Type": {"application/json"}}

	for _, at := range []struct {
		method, path string
		status       int
		body         string
		right        bool
	}{
		{"POST", "/programs", 201, program, true},
		{"POST", "/programs", 200, program, false},
		{"POST", "/programs", 201, strings.Replace(program, `"id":"a"`, `"id":"a b"`, 1), false},
		{"POST", "/programs", 201, strings.Replace(program, `,"programName":"x"`, ``, 1), false},
		{"POST", "/programs", 201, strings.Replace(program, `PROGRAM`, `THING`, 1), false},
		{"POST", "/programs", 422, `{}`, false},
		{"POST", "/programs", 400, `{"status":700}`, false},
		{"POST", "/programs", 400, `{"status":400}`, true},
		{"POST", "/vens", 201, ven, true},
		{"POST", "/vens", 409, `{}`, false},
		{"GET", "/nowhere", 404, `{}`, true},
		{"GET", "/nowhere", 200, `{}`, false},
	} {
		said := fault(specification(), at.method, openadr.Root+at.path, at.status, isJSON, []byte(at.body))
		if (said == "") != at.right {
			t.Errorf("%s %s %d %s: %q", at.method, at.path, at.status, at.body, said)
		}
	}

	for _, at := range []struct {
		method, path, body string
		right              bool
	}{
		{"GET", "/events?programID=a&active=true&skip=0&limit=50", "", true},
		{"GET", "/events?limit=51", "", false},
		{"GET", "/events?color=red", "", false},
		{"GET", "/event", "", false},
		{"POST", "/vens", `{"objectType":"VEN_VEN_REQUEST","venName":"x"}`, true},
		{"POST", "/vens", `{"venName":"x"}`, false},
		{"POST", "/reports", `{"eventID":"a","clientName":"x","resources":[]}`, true},
		{"POST", "/reports", `{"eventID":"a","clientName":"x","resources":[],"color":1}`, false},
		{"POST", "/reports", `{"eventID":"a","clientName":"x"}`, false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), at.method, openadr.Root+at.path, nil)
		if said := requestFault(specification(), r, []byte(at.body)); (said == "") != at.right {
			t.Errorf("%s %s %s: %q", at.method, at.path, at.body, said)
		}
	}

	if fault(published(t), "POST", openadr.Root+"/vens", 201, isJSON, []byte(ven)) == "" {
		t.Error("the published schema of a VEN can be fulfilled: the mended one is not needed any more")
	}
}
