package api_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"flexd/internal/api"
	"flexd/internal/flex"
)

var update = flag.Bool("update", false, "write golden files anew")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -update and read the difference\n%s", name, got)
	}
}

// TestRoutes_Golden shows who may call what as one readable table.
func TestRoutes_Golden(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-7s%-66s%-15s%s\n", "METHOD", "PATH", "ROLE", "COMPONENT TOKEN")

	for _, rt := range api.Routes() {
		component := "no"
		if rt.Component {
			component = "own site"
		}
		if rt.Role == api.Public {
			component = "-"
		}
		fmt.Fprintf(&b, "%-7s%-66s%-15s%s\n", rt.Method, rt.Pattern, rt.Role, component)
	}
	golden(t, "roles.golden", b.String())
}

// unlisted are routes that the document does not have.
var unlisted = []string{"/openapi.json", "/docs", "/docs/{file}", "/llms.txt", "/oauth/callback", "/metrics"}

// TestRoutes_Document holds the routes and the document together, both ways: paths,
// methods, roles, and that a route without a body has none in the document.
func TestRoutes_Document(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}

	seen := map[string]bool{}
	for _, rt := range api.Routes() {
		if rt.Operation == nil != slices.Contains(unlisted, rt.Pattern) {
			t.Errorf("%s %s has an operation: %v", rt.Method, rt.Pattern, rt.Operation != nil)
		}
		if rt.Operation == nil {
			continue
		}

		name := rt.Method + " " + rt.Pattern
		seen[name] = true
		item := doc.Paths.Value(rt.Pattern)
		if item == nil || item.GetOperation(rt.Method) == nil {
			t.Errorf("%s is not in the document", name)
			continue
		}

		op := item.GetOperation(rt.Method)
		want := flex.Role("")
		switch rt.Role {
		case api.Public:
			if op.Security == nil || len(*op.Security) != 0 {
				t.Errorf("%s is public, and the document wants a token", name)
			}
		case api.Anyone:
		default:
			want = rt.Role
		}

		if role, _ := op.Extensions["x-flexd-role"].(string); flex.Role(role) != want {
			t.Errorf("%s asks for the role %q, the document for %q", name, want, role)
		}
		if (rt.Limit > 0) != (op.RequestBody != nil) {
			t.Errorf("%s takes a body of %d bytes, the document says %v", name, rt.Limit, op.RequestBody != nil)
		}
	}

	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if !seen[method+" "+path] {
				t.Errorf("the document has %s %s, which is no route", method, path)
			}
		}
	}
}
