package flexd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The pages for somebody who is going to change flexd name packages, functions, tables and files.
// Each name exists.
var pagesOfNames = []string{"ARCHITECTURE.md", "CONTRIBUTING.md"}

// known are the names that a page may use.
type known struct {
	declared map[string]bool // Service.Event, Event, and the same behind the package: control.Event
	packages map[string]bool // engine/charge, and its last part
	stored   map[string]bool // tables, and columns behind their table: session.due_at
}

// TestNamedPages looks every name up.
func TestNamedPages(t *testing.T) {
	names := knownNames(t)
	for _, page := range pagesOfNames {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		all := namesIn(string(text))
		if len(all) < 10 {
			t.Errorf("%s: found %d names alone", page, len(all))
		}
		for _, name := range all {
			if !names.has(name) {
				t.Errorf("%s names %q, which is no package, function, table, column or file", page, name)
			}
		}
	}

	for _, planted := range []string{"control.Evented", "session.due_to", "internal/stor/site.go", "Tx.ReplaceAll", "roads"} {
		if names.has(planted) {
			t.Errorf("%q is not missed", planted)
		}
	}
}

// namesIn lists what a page writes in backticks and is a name: no command, no SQL, no JSON.
func namesIn(page string) (names []string) {
	name := regexp.MustCompile("`([A-Za-z_][A-Za-z0-9_/.]*)`")
	page = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(page, "")
	for _, m := range name.FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

func (k *known) has(name string) bool {
	if k.declared[name] || k.packages[name] || k.stored[name] {
		return true
	}

	if strings.Contains(name, "/") || slices.Contains([]string{".go", ".md", ".yml", ".txt", ".yaml"}, path.Ext(name)) {
		return isFile(name)
	}

	// A method behind its package and type.
	pkg, rest, ok := strings.Cut(name, ".")
	return ok && k.packages[pkg] && k.declared[rest] && strings.Contains(rest, ".")
}

// isFile reports whether there is such a file, or one of that name in some folder.
func isFile(name string) bool {
	for _, pattern := range []string{name, "internal/" + name, "*/" + name, "internal/*/" + name} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return true
		}
	}
	return false
}

func knownNames(t *testing.T) *known {
	k := &known{declared: map[string]bool{}, packages: map[string]bool{}, stored: map[string]bool{}}
	for _, pkg := range packages(t, ".") {
		k.packages[short(pkg.ImportPath)] = true
		k.packages[pkg.Name] = true

		for _, file := range pkg.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range f.Decls {
				k.declare(pkg.Name, decl)
			}
		}
	}

	migrations, err := filepath.Glob("internal/store/migration/*.sql")
	if err != nil || len(migrations) == 0 {
		t.Fatal("no migrations: ", err)
	}
	for _, file := range migrations {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		k.tables(string(text))
	}

	return k
}

// declare adds what a declaration of a package declares.
func (k *known) declare(pkg string, decl ast.Decl) {
	add := func(name string) {
		k.declared[name] = true
		k.declared[pkg+"."+name] = true
	}

	switch d := decl.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
			k.declared[pkg+"."+d.Name.Name] = true // control.Event for control.Service.Event
		}

		add(name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				add(s.Name.Name)

			case *ast.ValueSpec:
				for i, name := range s.Names {
					add(name.Name)
					if pkg == "store" && i < len(s.Values) {
						k.constant(s.Values[i])
					}
				}
			}
		}
	}
}

// constant adds a text that the store names: a topic, a cause, a kind of job.
func (k *known) constant(e ast.Expr) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	if text, err := strconv.Unquote(lit.Value); err == nil {
		k.stored[text] = true
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

var (
	tableMade   = regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*?)\n\)`)
	columnMade  = regexp.MustCompile(`(?m)^ +([a-z_]+) +[A-Z]`)
	columnAdded = regexp.MustCompile(`ALTER TABLE (\w+) ADD COLUMN (\w+)`)
)

// tables adds the tables and columns that a migration makes.
func (k *known) tables(migration string) {
	for _, table := range tableMade.FindAllStringSubmatch(migration, -1) {
		k.stored[table[1]] = true
		for _, column := range columnMade.FindAllStringSubmatch(table[2], -1) {
			k.stored[table[1]+"."+column[1]] = true
			k.stored[column[1]] = true
		}
	}
	for _, column := range columnAdded.FindAllStringSubmatch(migration, -1) {
		k.stored[column[1]+"."+column[2]] = true
		k.stored[column[2]] = true
	}
}
