package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// parts are the types of package wire that a handler reads a request as. Empty ones are not
// read.
type parts struct {
	path       string
	query      string
	body       string
	isForm     bool // the body is one
	mayBeEmpty bool // the body may be left out
}

// readers are the functions of package api that read a part of a request, each as the type
// in its brackets.
var readers = map[string]func(*parts, string){
	"path":  func(p *parts, name string) { p.path = name },
	"query": func(p *parts, name string) { p.query = name },
	"body":  func(p *parts, name string) { p.body = name },
	"emptyBody": func(p *parts, name string) {
		p.body, p.mayBeEmpty = name, true
	},
	"form": func(p *parts, name string) { p.body, p.isForm = name, true },
}

// source is the code of package api.
type source struct {
	// by name; those of the server as "Server.name"
	functions  map[string]*ast.FuncDecl
	operations int // how many are written down
}

// readSource reads the package in the folder.
func readSource(dir string) (*source, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}

	s := &source{functions: map[string]*ast.FuncDecl{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}

		s.add(file)
	}

	return s, nil
}

// add takes the functions of a file, and counts the operations in it.
func (s *source) add(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			s.functions[functionName(n)] = n

		case *ast.CompositeLit:
			if n.Type != nil && nameOf(n.Type) == "Operation" {
				s.operations++
			}
		}

		return true
	})
}

// functionName is a function's own, or type and name of a method.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}

	return nameOf(f.Recv.List[0].Type) + "." + f.Name.Name
}

// read returns what the handler of a name reads, itself or in functions that it gives the
// request to.
func (s *source) read(handler string) (parts, error) {
	var p parts
	err := s.collect(&p, "Server."+handler, map[string]bool{})
	return p, err
}

func (s *source) collect(
	p *parts,
	name string,
	visited map[string]bool,
) error {
	f := s.functions[name]
	if f == nil || visited[name] {
		return nil
	}

	visited[name] = true
	if err := isNamed(f); err != nil {
		return err
	}

	var err error
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || err != nil {
			return err == nil
		}

		if reader, typed := call.Fun.(*ast.IndexExpr); typed {
			err = p.take(nameOf(reader.X), nameOf(reader.Index))
		} else if givesRequest(call) {
			err = s.collect(p, called(call), visited)
		}

		return err == nil
	})

	return err
}

// take notes that the part is read as a type. A part is read as one type alone.
func (p *parts) take(reader, typ string) error {
	note, ok := readers[reader]
	name, isWire := strings.CutPrefix(typ, "wire.")
	if !ok || !isWire {
		return nil
	}

	before := *p
	note(p, name)

	for _, part := range [][2]string{
		{before.path, p.path},
		{before.query, p.query},
		{before.body, p.body},
	} {
		if part[0] != "" && part[0] != part[1] {
			return fmt.Errorf(
				"one part is read as %s and as %s",
				part[0],
				part[1],
			)
		}
	}

	return nil
}

// isNamed holds that a function calls its request r, for reads are found by that name.
func isNamed(f *ast.FuncDecl) error {
	for _, p := range f.Type.Params.List {
		if nameOf(p.Type) != "request" {
			continue
		}

		for _, name := range p.Names {
			if name.Name != "r" && name.Name != "_" {
				return fmt.Errorf(
					"%s calls its request %s: call it r",
					f.Name.Name,
					name.Name,
				)
			}
		}
	}

	return nil
}

// givesRequest reports whether the call passes the request on, which is always called r.
func givesRequest(call *ast.CallExpr) bool {
	for _, arg := range call.Args {
		if name, ok := arg.(*ast.Ident); ok && name.Name == "r" {
			return true
		}
	}

	return false
}

// called is the name of what is called: a function's, or that of a method of the server.
func called(call *ast.CallExpr) string {
	return strings.Replace(nameOf(call.Fun), "s.", "Server.", 1)
}
