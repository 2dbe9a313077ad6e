package flexd_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a column holds as JSON is written and read in files of this beginning alone, where every
// field has its name in a tag. Services that keep something give it to the store as a struct.
const recordFiles = "record"

// TestStoredRecords holds the store to that.
func TestStoredRecords(t *testing.T) {
	files, err := filepath.Glob("internal/store/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, fault := range recordFaults(file) {
			t.Error(fault)
		}
	}
}

// recordFaults lists where a file of the store departs from the rule.
func recordFaults(path string) (found []string) {
	if strings.HasSuffix(path, "_test.go") {
		return nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		return []string{err.Error()}
	}

	name := filepath.Base(path)
	if !strings.HasPrefix(name, recordFiles) {
		if slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return strings.HasPrefix(s.Path.Value, `"encoding/json`) }) {
			found = append(found, name+" imports encoding/json: what a column holds has its struct in a file record*.go")
		}
		return found
	}

	ast.Inspect(f, func(n ast.Node) bool {
		s, isStruct := n.(*ast.StructType)
		if !isStruct {
			return true
		}
		for _, field := range s.Fields.List {
			if field.Tag == nil || !strings.HasPrefix(field.Tag.Value, "`json:\"") || strings.HasPrefix(field.Tag.Value, "`json:\",") {
				found = append(found, fmt.Sprintf("%s:%d: a field without its name in a tag", name, fset.Position(field.Pos()).Line))
			}
		}
		return true
	})
	return found
}

// TestStoredRecords_PlantedFaults proves that the rule bites.
func TestStoredRecords_PlantedFaults(t *testing.T) {
	for file, text := range map[string]string{
		"org.go":       "package store\nimport \"encoding/json\"\nvar marshal = json.Marshal\n",
		"record.go":    "package store\ntype settingsRecord struct{ Share float64 }\n",
		"record_of.go": "package store\ntype settingsRecord struct {\n\tShare float64 `json:\",omitempty\"`\n}\n",
	} {
		path := filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if found := recordFaults(path); len(found) != 1 {
			t.Errorf("%s: found %q, want one fault", file, found)
		}
	}
}
