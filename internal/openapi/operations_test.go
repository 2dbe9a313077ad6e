package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"flexd/internal/api"
	"flexd/internal/wire"
)

// made returns the maker of the operations of this module.
func made(t *testing.T) operations {
	t.Helper()
	types, err := readTypes(filepath.Join(root, "internal", "wire"))
	if err != nil {
		t.Fatal(err)
	}

	source, err := readSource(filepath.Join(root, "internal", "api"))
	if err != nil {
		t.Fatal(err)
	}

	return operations{newSchemas(types), source}
}

// find returns where the routes have one.
func find(t *testing.T, routes []api.Route, method, pattern string) int {
	t.Helper()
	at := slices.IndexFunc(routes, func(rt api.Route) bool { return rt.Method == method && rt.Pattern == pattern })
	if at < 0 {
		t.Fatalf("no route %s %s", method, pattern)
	}

	return at
}

// TestPaths_Refuses plants a fault in one description at a time.
func TestPaths_Refuses(t *testing.T) {
	cases := map[string]struct {
		plant func(*api.Route)
		want  string
	}{
		"a route without a description": {func(rt *api.Route) { rt.Operation = nil }, "PUT /caps has no Operation"},
		"a body without an example":     {func(rt *api.Route) { rt.Operation.Body = api.Sample{} }, "says of none"},
		"a body of another type":        {func(rt *api.Route) { rt.Operation.Body = api.Sample{Type: reflect.TypeFor[wire.SiteRequest]()} }, "it reads a Caps"},
		"a body that may be left out":   {func(rt *api.Route) { rt.Operation.OptionalBody = true }, "cannot be left out"},
		"an example with a wrong field": {func(rt *api.Route) { rt.Operation.Answer.Body.JSON = `{"grops": []}` }, "is no wire.Caps"},
		"an example with a wrong type":  {func(rt *api.Route) { rt.Operation.Answer.Body.JSON = `{"groups": 3}` }, "is no wire.Caps"},
	}

	o := made(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			routes := api.Routes()
			rt := &routes[find(t, routes, "PUT", "/caps")]
			operation := *rt.Operation
			rt.Operation = &operation
			c.plant(rt)

			if _, err := o.paths(routes); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("answered %v, not %q", err, c.want)
			}
		})
	}
}

// TestPaths_RefusesARequiredBody holds that a body that may be left out is not described as required.
func TestPaths_RefusesARequiredBody(t *testing.T) {
	routes := api.Routes()
	rt := &routes[find(t, routes, "POST", "/entities/asset/{asset_id}/event/plug-in")]
	operation := *rt.Operation
	operation.OptionalBody = false
	rt.Operation = &operation

	o := made(t)
	if _, err := o.paths(routes); err == nil || !strings.Contains(err.Error(), "does not say so") {
		t.Errorf("answered %v", err)
	}
}

// TestPaths_RefusesAnOrphan holds that a description without a route is an error: a group of
// routes that is not in the surface.
func TestPaths_RefusesAnOrphan(t *testing.T) {
	routes := api.Routes()
	at := find(t, routes, "PUT", "/caps")

	o := made(t)
	_, err := o.paths(slices.Delete(routes, at, at+1))
	if err == nil || !strings.Contains(err.Error(), "belongs into the surface") {
		t.Errorf("answered %v", err)
	}
}

// TestSource_Read says what is found of a handler, itself and in the functions that it gives
// the request to.
func TestSource_Read(t *testing.T) {
	cases := map[string]parts{
		"listSites":      {query: "SiteListQuery"},
		"plugIn":         {path: "AssetPath", body: "PlugInEventRequest", mayBeEmpty: true},
		"endpoint":       {path: "EndpointPath"},
		"callback":       {path: "CallbackPath", query: "CallbackQuery", body: "EventResponse"},
		"login":          {body: "TokenForm", isForm: true},
		"exceptions":     {},
		"tariffUpdate":   {path: "AssetPath"},
		"componentToken": {body: "ComponentTokenForm", isForm: true},
	}

	source := made(t).source
	for handler, want := range cases {
		if got, err := source.read(handler); got != want || err != nil {
			t.Errorf("%s reads %+v, %v, not %+v", handler, got, err, want)
		}
	}

	for _, rt := range api.Routes() {
		if source.functions["Server."+rt.Handler()] == nil {
			t.Errorf("%s %s is answered by %q, which is no handler", rt.Method, rt.Pattern, rt.Handler())
		}
	}
}

// TestParts_ReadTwice holds that a part which is read as two types is an error.
func TestParts_ReadTwice(t *testing.T) {
	var p parts
	first := p.take("path", "wire.SitePath")
	second := p.take("path", "wire.AssetPath")

	if first != nil || second == nil {
		t.Errorf("read with %v, then with %v", first, second)
	}
}

// TestSource_Named holds that a request which is not called r is an error, for what is read of
// it would not be found.
func TestSource_Named(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cars.go")
	source := "package api\n\nfunc (s *Server) cars(in *request) (answer, error) {\n\tquery[wire.CarQuery](in)\n\treturn none(), nil\n}\n"
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}

	s, err := readSource(filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}

	if _, err := s.read("cars"); err == nil || !strings.Contains(err.Error(), "call it r") {
		t.Errorf("read with %v", err)
	}
}
