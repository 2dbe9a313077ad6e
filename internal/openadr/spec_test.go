package openadr_test

import (
	"encoding/json"
	"maps"
	"net/http"
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

// specification is the published one, with two schemas that no document can fulfil mended: a VEN is an
// object whose objectType is VEN and whose objectType is BL_VEN_REQUEST, and a resource likewise. The
// first of the two is taken.
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

// lookahead is the part of the specification's pattern of a duration that Go's expressions do not have:
// a digit, or a T and a digit, follow the P.
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

// beyond are the statuses that the specification does not list, and says nothing against: a token that is
// missing, and too many requests.
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

	if fault(published(t), "POST", openadr.Root+"/vens", 201, isJSON, []byte(ven)) == "" {
		t.Error("the published schema of a VEN can be fulfilled: the mended one is not needed any more")
	}
}
