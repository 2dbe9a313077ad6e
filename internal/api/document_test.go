package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// documents are ours and the published one, whose operations ours has all of.
var documents = sync.OnceValues(func() (map[string]*openapi3.T, error) {
	docs := map[string]*openapi3.T{}
	for name, path := range map[string]string{"ours": "openapi.yaml", "the published": "../wire/testdata/published-1.4.6.openapi.json"} {
		doc, err := openapi3.NewLoader().LoadFromFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		docs[name] = doc
	}
	return docs, nil
})

// operation finds the operation that a request is for, preferring paths without
// parameters, as routers do.
func operation(doc *openapi3.T, method, path string) (found *openapi3.Operation, pattern string) {
	parts := strings.Split(path, "/")
	fewest := len(parts) + 1
	for candidate, item := range doc.Paths.Map() {
		op, variables := item.GetOperation(method), 0
		wanted := strings.Split(candidate, "/")
		if op == nil || len(wanted) != len(parts) {
			continue
		}

		fits := true
		for i, w := range wanted {
			if strings.HasPrefix(w, "{") && parts[i] != "" {
				variables++
			} else if w != parts[i] {
				fits = false
			}
		}

		if fits && variables < fewest {
			found, pattern, fewest = op, candidate, variables
		}
	}
	return found, pattern
}

// departures are where we leave the published document, and docs/divergences.md says why.
var departures = []struct{ path, why string }{
	{"/price-curve", "a price that is not known is null"},
	{"/offboard-site-and-assets", "a site without assets has none to show"},
}

func departs(path string) bool {
	for _, d := range departures {
		if strings.HasSuffix(path, d.path) {
			return true
		}
	}
	return false
}

// conforms holds an answer against both documents: ours must have its status, and every
// schema that either gives must take its body. An operation is looked up by the path as it
// was sent.
func conforms(t *testing.T, method, path string, r reply) {
	t.Helper()
	docs, err := documents()
	if err != nil {
		t.Fatal(err)
	}

	for name, doc := range docs {
		op, pattern := operation(doc, method, path)
		if op == nil || name == "the published" && departs(path) || r.StatusCode == 405 || r.StatusCode == 307 {
			continue
		}
		if name == "ours" {
			provoked.Lock()
			provoked.names[fmt.Sprint(method, " ", pattern, " ", r.StatusCode)] = true
			provoked.Unlock()
		}

		answer := op.Responses.Status(r.StatusCode)
		if answer == nil {
			if name == "ours" {
				t.Errorf("%s %s: the document has no %d", method, path, r.StatusCode)
			}
			continue
		}

		if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.HasPrefix(kind, "text/") {
			if name == "ours" && answer.Value.Content.Get(kind) == nil {
				t.Errorf("%s %s: the document has no %d as %s", method, path, r.StatusCode, kind)
			}
			continue
		}
		content := answer.Value.Content.Get("application/json")
		if content == nil || content.Schema == nil {
			continue
		}

		var v any
		if err := json.Unmarshal([]byte(r.body), &v); err != nil {
			t.Errorf("%s %s: %d %s is not JSON: %v", method, path, r.StatusCode, r.body, err)
			continue
		}
		if err := content.Schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s %s: %d %s does not fit %s document: %v", method, path, r.StatusCode, r.body, name, err)
		}
	}
}

func flagValue(name string) string {
	f := flag.Lookup(name)
	if f == nil || f.Value.String() == f.DefValue {
		return ""
	}
	return f.Value.String()
}
