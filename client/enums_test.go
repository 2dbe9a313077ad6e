package client_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"flexd/internal/wire"
)

// TestEnumerations holds that each type of words that package wire has for a field has the same words as the
// field's enumeration, both in the client and in package flex, and none besides.
func TestEnumerations(t *testing.T) {
	want := map[string]map[string]bool{} // words by type
	for _, file := range parsed(t, "../internal/wire") {
		ast.Inspect(file, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || field.Tag == nil {
				return true
			}

			kind, enum := wordsOf(field)
			if kind == "" || enum == "" {
				return true
			}

			if want[kind] == nil {
				want[kind] = map[string]bool{}
			}

			for _, word := range wire.Enum(enum) {
				want[kind][word] = true
			}

			return true
		})
	}

	if len(want) < 6 {
		t.Fatalf("%d types of words are in package wire", len(want))
	}

	for where, folder := range map[string]string{"client": ".", "flex": "../internal/flex"} {
		declared := constantsOf(t, folder)
		for kind, words := range want {
			if !maps.Equal(words, declared[kind]) {
				t.Errorf("the constants of %s.%s are %q, and internal/wire/enum.go has %q",
					where, kind, slices.Sorted(maps.Keys(declared[kind])), slices.Sorted(maps.Keys(words)))
			}
		}
	}
}

// wordsOf returns the type of a field that is of package flex, or a list or pointer of it, and its enumeration.
func wordsOf(field *ast.Field) (kind, enum string) {
	expr := field.Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
			continue

		case *ast.ArrayType:
			expr = e.Elt
			continue

		case *ast.SelectorExpr:
			kind = e.Sel.Name
		}

		break
	}

	tag, _ := strconv.Unquote(field.Tag.Value)
	for rule := range strings.SplitSeq(reflect.StructTag(tag).Get("wire"), ",") {
		if name, is := strings.CutPrefix(rule, "enum="); is {
			enum = name
		}
	}

	return kind, enum
}

// constantsOf returns the words of each type's constants in a folder.
func constantsOf(t *testing.T, folder string) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	for _, file := range parsed(t, folder) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Type == nil || len(spec.Values) != 1 {
				return true
			}

			kind, typed := spec.Type.(*ast.Ident)
			value, literal := spec.Values[0].(*ast.BasicLit)
			if !typed || !literal || value.Kind != token.STRING {
				return true
			}

			if found[kind.Name] == nil {
				found[kind.Name] = map[string]bool{}
			}

			word, _ := strconv.Unquote(value.Value)
			if word != "" { // never given
				found[kind.Name][word] = true
			}

			return true
		})
	}

	return found
}

func parsed(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		files = append(files, file)
	}

	return files
}
