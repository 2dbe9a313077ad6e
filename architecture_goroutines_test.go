package flexd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// uncaught are goroutines of services whose panic ends the process, by folder and function, each with the reason.
var uncaught = map[string]string{
	"internal/delivery.record":       "write, all that it does with data, makes an error of a panic itself",
	"internal/delivery.Close":        "it waits, and closes a channel",
	"internal/delivery.claim":        "it runs statements of store alone",
	"internal/delivery.apply":        "send makes an outcome of a panic itself",
	"internal/delivery.run":          "the dispatcher that the other goroutines report to: without it nothing is pushed",
	"internal/control.subscribe":     "each read makes an error of a panic itself",
	"internal/operations.wholeFleet": "readFleet makes an error of a panic itself",
}

// TestGoroutines_Recover finds goroutines of services and engines in which a panic would end the process: what answers a
// request or runs a job makes an error of one, but not of one in a goroutine that works beside it.
func TestGoroutines_Recover(t *testing.T) {
	used := map[string]bool{}
	found := 0

	err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !worksOnRecords(path) {
			return err
		}

		faults, n := uncaughtIn(t, path)
		found += n
		for _, name := range faults {
			if uncaught[name] == "" {
				t.Errorf("%s starts a goroutine that does not begin with defer flex.Recover(&err)", name)
			}
			used[name] = true
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for name := range uncaught {
		if !used[name] {
			t.Errorf("%s has no such goroutine any more", name)
		}
	}

	if found < 10 {
		t.Errorf("only %d goroutines: the search is broken", found)
	}
}

// worksOnRecords reports whether a folder is a service, an engine or what answers requests.
func worksOnRecords(folder string) bool {
	name := filepath.ToSlash(strings.TrimPrefix(folder, "internal"+string(filepath.Separator)))
	layer, ok := layers[name]
	infrastructure := name == "worker" || name == "web" || name == "store" || name == "ocppserver"

	return ok && layer <= layers["api"] && !infrastructure
}

// uncaughtIn returns the functions of a folder that start a goroutine in which nothing catches a panic, and how many
// goroutines there are.
func uncaughtIn(t *testing.T, folder string) (names []string, found int) {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}

	var functions []*ast.FuncDecl
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				functions = append(functions, f)
			}
		}
	}

	catching := map[string]bool{}
	for _, f := range functions {
		if f.Body != nil && catches(f.Body) {
			catching[f.Name.Name] = true
		}
	}

	for _, f := range functions {
		for _, body := range goroutinesOf(f) {
			found++
			if !catchesBody(body, catching) {
				names = append(names, filepath.ToSlash(folder)+"."+f.Name.Name)
			}
		}
	}

	return names, found
}

// goroutinesOf returns what a function runs beside itself: what follows go, and what is given to a method Go.
func goroutinesOf(f *ast.FuncDecl) (started []ast.Expr) {
	if f.Body == nil {
		return nil
	}

	ast.Inspect(f.Body, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			started = append(started, g.Call.Fun)
		}

		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
			started = append(started, call.Args[0])
		}

		return true
	})

	return started
}

// catchesBody reports whether a goroutine makes an error of a panic: by its first statement, or as all that it
// does is to call a function of the same package that does.
func catchesBody(of ast.Expr, catching map[string]bool) bool {
	literal, ok := of.(*ast.FuncLit)
	if !ok {
		return catching[calledName(of)]
	}
	if catches(literal.Body) {
		return true
	}

	// each call within is to one that catches, or to something small of Go's
	all, any := true, false
	ast.Inspect(literal.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}

		name := calledName(call.Fun)
		any = any || catching[name]
		all = all && (catching[name] || name == "stop" || name == "Error")

		return true
	})

	return any && all
}

// catches reports whether a body begins with defer flex.Recover(…).
func catches(body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return false
	}

	d, ok := body.List[0].(*ast.DeferStmt)

	return ok && calledName(d.Call.Fun) == "Recover"
}

func calledName(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}

	return ""
}
