// Package flexd_test holds the plan of the packages and fails where the code departs from it.
package flexd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers is the plan: a package may import only packages of lower layers. Packages of one
// layer do not know each other. A name stands for its folder under the module, internal/
// left out.
var layers = map[string]int{
	// domain types and small tools
	"flex": 0, "trace": 0, "wire": 1, "egress": 1, "worker": 1, "csvfile": 1, "keyring": 1, "docs": 0, "bridge": 5, "guide": 1, "web": 1,
	"engine/buffer": 0, "engine/random": 0, "engine/bitselect": 0, "engine/piecewise": 1, "engine/simplex": 1, "engine/paths": 1,
	// pure packages: arguments in, values out
	"tariff": 2, "ocpp": 2, "settle": 2, "ledger": 3, "forecast": 2, "pricing": 2, "bankfile": 2,
	"engine/charge": 2, "engine/rate": 2, "engine/pause": 2, "engine/battery": 2, "engine/fleet": 2, "engine/envelope": 2, "engine/tank": 2, "engine/heat": 2,
	"signin":          2,
	"engine/headroom": 3, "engine/home": 3, "engine/site": 3, "engine/check": 4, "engine/discharge": 4, "engine/instruct": 3, "engine/ramp": 3, "backtest": 4,
	// the database, and what is looked up
	"store": 4, "directory": 5, "cell": 5,
	// services
	"access": 6, "registry": 6, "control": 6, "reading": 6, "market": 6, "reward": 6, "operations": 6, "grid": 6, "books": 6, "delivery": 6,
	// the public client, which imports nothing of flexd
	"client": 0,
	"adr":    6,
	// what services answer, in the interface's form
	"contract": 8,
	// what grids buy, which control carries out
	"product": 7,
	// what is done to many assets at once, by the services that own each action
	"selection": 7,
	// transports
	"api": 9, "console": 9, "portal": 9, "ocppserver": 9, "homeassistant": 9,
	"openadr": 9, "mcp": 9,
	// what is generated from the routes and the contract
	"openapi": 10,
	// wiring: store opened, services made, background jobs running, transports served
	"app": 10,
	// the simulation, the program, and what is tested from outside
	"sim": 11, "cmd/flexd": 16,
	// research planners, above the service so that nothing of it can import them
	"lab/slots": 11, "lab/wave": 11, "lab/sample": 11, "lab/certificate": 12, "lab/verify": 13, "lab/problem": 14, "lab/bench": 15,
	"store/storetest": 12, "test/port": 10, "test/axe": 11, "test/browser": 11, "test/postgres": 11, "test/seed": 12, "test/draws": 12, "test/withpg": 13, "test/figures": 13, "test/fuzz": 13, "test/crash": 13, "test/probe": 13, "test/load": 13, "test/sums": 13, "test/pairs": 13,
}

// required names the packages that the plan has from the first day; others may come.
var required = []string{"flex", "store"}

// restricted says which packages alone may import a dangerous one.
var restricted = map[string][]string{
	"database/sql": {"store", "store/storetest"},
	"encoding/csv": {"csvfile", "sim"}, // one writer, so that no cell begins a formula
	"net/http":     {"web", "homeassistant", "openadr", "mcp", "api", "console", "portal", "ocppserver", "client", "egress", "app", "sim", "cmd/flexd", "test/crash", "test/probe", "test/load"},
	"os/exec":      {"cmd/flexd", "test/postgres", "test/withpg", "test/crash", "test/load", "test/probe", "test/figures", "test/fuzz"},
	"testing":      {"store/storetest", "sim", "test/browser"},
	// the interface's form, which services know nothing of
	"flexd/internal/wire": {"openapi", "contract", "api", "console", "cmd/flexd"},
}

// transports answer people and programs, and contract puts the answers into the interface's form: what they show
// comes from services, and none of them knows the database.
var transports = []string{"api", "console", "portal", "ocppserver", "homeassistant", "openadr", "mcp", "contract"}

// restrictedPrefixes are the packages that count as a restricted one by their path's beginning.
var restrictedPrefixes = map[string]string{"github.com/jackc/": "database/sql", "modernc.org/": "database/sql"}

// purePackages read no clock, draw no random numbers and look at no environment.
var purePackages = []string{"flex", "wire", "tariff", "ocpp", "settle", "ledger", "forecast", "pricing", "bankfile", "backtest",
	"engine/buffer", "engine/random", "engine/bitselect", "engine/piecewise", "engine/charge", "engine/rate", "engine/pause", "engine/battery", "engine/home",
	"engine/headroom", "engine/fleet", "engine/check", "engine/simplex", "engine/site", "engine/tank", "engine/heat", "engine/paths", "engine/envelope", "engine/instruct", "engine/ramp", "engine/discharge",
	"lab/slots", "lab/wave", "lab/sample", "lab/certificate", "lab/verify", "lab/problem"}

var pureBans = []string{"time.Now", "time.Since", "time.Until", "time.After", "time.Sleep", "time.NewTicker", "time.NewTimer", "rand.", "os.", "uuid.New", "uuid.NewV7", "uuid.NewRandom"}

// environmentReaders may read the environment.
var environmentReaders = []string{"cmd/flexd", "store/storetest", "test/postgres", "test/seed", "test/withpg", "test/crash", "test/load", "test/probe", "test/axe", "test/browser"}

var environmentBans = []string{"os.Getenv", "os.LookupEnv", "os.Environ"}

var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "base", "misc", "types", "models", "service", "services", "manager", "impl", "core", "lib"}

// Blank lines do not count: air is not to be saved.
const funcLines, fileLines = 70, 600

type goPackage struct {
	ImportPath, Dir, Name, Doc string
	Imports, GoFiles           []string
	TestImports, XTestImports  []string
	TestGoFiles, XTestGoFiles  []string
}

func packages(t *testing.T, dir string) (found []goPackage) {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Name,Doc,Imports,GoFiles,TestImports,XTestImports,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}

	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var r goPackage
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if len(r.GoFiles) > 0 {
			found = append(found, r)
		}
	}
}

// short returns the name of a package of this module, or "".
func short(importPath string) string {
	name, ours := strings.CutPrefix(importPath, "flexd/")
	if !ours {
		return ""
	}
	return strings.TrimPrefix(name, "internal/")
}

// TestArchitecture compares the code with the plan.
func TestArchitecture(t *testing.T) {
	present := map[string]bool{}
	for _, r := range packages(t, ".") {
		present[short(r.ImportPath)] = true
		for _, fault := range r.faults() {
			t.Error(fault)
		}
	}
	for _, name := range required {
		if !present[name] {
			t.Errorf("the plan names %s, which is not there", name)
		}
	}
}

// faults lists where a package departs from the plan.
func (r goPackage) faults() (found []string) {
	name := short(r.ImportPath)
	fault := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	layer, ok := layers[name]
	if !ok {
		fault("%s is in no layer: add it to the plan in architecture_test.go", name)
	}

	if slices.Contains(vagueNames, r.Name) {
		fault("%s: a package named %q says nothing of what is in it", name, r.Name)
	}
	if r.Doc == "" {
		fault("%s has no package comment", name)
	}
	if slices.Contains(r.Imports, "flexd/internal/store") && slices.Contains(transports, name) {
		fault("%s imports store: a transport draws what a service's view says", name)
	}

	for _, imp := range r.Imports {
		if s := short(imp); s != "" && layers[s] >= layer {
			fault("%s (layer %d) imports %s (layer %d)", name, layer, s, layers[s])
		}

		counted := imp
		for prefix, k := range restrictedPrefixes {
			if strings.HasPrefix(imp, prefix) {
				counted = k
			}
		}
		if allowed, ok := restricted[counted]; ok && !slices.Contains(allowed, name) {
			fault("%s imports %s, which only %v may", name, imp, allowed)
		}
	}

	if tests := slices.Concat(r.TestImports, r.XTestImports); slices.Contains(tests, "pgregory.net/rapid") && !slices.Contains(tests, "flexd/test/seed") {
		fault("%s draws another sequence on each run: its tests import rapid without flexd/test/seed", name)
	}

	for _, f := range r.GoFiles {
		found = append(found, fileFaults(name, filepath.Join(r.Dir, f))...)
	}
	return found
}

func fileFaults(name, path string) (found []string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		return []string{err.Error()}
	}
	fault := func(n ast.Node, format string, args ...any) {
		p := fset.Position(n.Pos())
		found = append(found, fmt.Sprintf("%s/%s:%d: ", name, filepath.Base(p.Filename), p.Line)+fmt.Sprintf(format, args...))
	}

	text, err := readLines(path)
	if err != nil {
		return []string{err.Error()}
	}
	if n := filled(text); n > fileLines && !ast.IsGenerated(f) {
		fault(f, "%d lines, more than %d", n, fileLines)
	}
	program := strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "test/")
	if f.Doc != nil && filepath.Base(path) != "doc.go" && !program {
		fault(f, "the comment of the package: it stands in doc.go, where a reader looks for it")
	}

	pure := slices.Contains(purePackages, name)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			first, last := fset.Position(n.Pos()).Line, fset.Position(n.End()).Line
			if l := filled(text[min(first, last-1) : last-1]); l > funcLines {
				fault(n, "%s has %d lines, more than %d", n.Name.Name, l, funcLines)
			}

			if n.Name.IsExported() && n.Doc == nil && n.Recv == nil {
				fault(n, "%s has no comment", n.Name.Name)
			}
		case *ast.GenDecl:
			checkSpecs(n, fault)
		case *ast.TypeSpec:
			checkView(n, name, filepath.Base(path), fault)

			checkRecords(n, name, fault)
		case *ast.Field:
			if n.Tag != nil && name == "flex" {
				fault(n, "a tag on a domain type: wire and store have their own structs")
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}

			s := x.Name + "." + n.Sel.Name
			if pure && banned(s, pureBans) {
				fault(n, "%s in the pure package %s", s, name)
			}
			if s == "http.NewServeMux" && name != "web" {
				fault(n, "a router whose routes nobody can list: take web.NewMux, so that the table of who may do what has them")
			}
			if !slices.Contains(environmentReaders, name) && banned(s, environmentBans) {
				fault(n, "%s, which only cmd may ask", s)
			}
		}

		return true
	})
	return found
}

// checkView refuses a record of the database in what is shown: in a type whose name ends in View, or
// that stands in a file of views. A view has fields of its own, so that a page and its JSON hold what
// was meant to be shown and nothing else.
func checkView(t *ast.TypeSpec, name, file string, fault func(ast.Node, string, ...any)) {
	shown := strings.HasSuffix(t.Name.Name, "View") || strings.HasPrefix(file, "view")
	structure, isStruct := t.Type.(*ast.StructType)
	if name == "store" || !shown || !isStruct {
		return
	}

	ast.Inspect(structure, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "store" {
			fault(s, "%s shows store.%s: a view has fields of its own", t.Name.Name, s.Sel.Name)
		}
		return false
	})
}

// recordHolders are the types of services that still have a record of the database in them: what the
// record gets, they show. None may come, and one that is mended goes from here.
var recordHolders = []string{
	"control.InForce",
	"control.Past", "control.PastEvent", "control.PastSchedule",
	"operations.AlertPage", "operations.Fleet",
	"reward.Visit",
}

// holdsRecord returns the record of the database that an exported type has in it, as a part or as an
// exported field, however deep in lists, maps and type arguments, or "". A field that is not
// exported is seen by no other package.
func holdsRecord(t *ast.TypeSpec) (record string) {
	structure, isStruct := t.Type.(*ast.StructType)
	if !isStruct || !t.Name.IsExported() {
		return ""
	}

	ast.Inspect(structure, func(n ast.Node) bool {
		if _, isFunc := n.(*ast.FuncType); isFunc {
			return false
		}
		if field, isField := n.(*ast.Field); isField && hidden(field) {
			return false
		}

		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "store" && s.Sel.Name != "DB" {
			record = "store." + s.Sel.Name
		}
		return true
	})
	return record
}

// hidden reports whether none of a field's names is exported.
func hidden(field *ast.Field) bool {
	return len(field.Names) > 0 && !slices.ContainsFunc(field.Names, (*ast.Ident).IsExported)
}

// checkRecords refuses a record of the database within what a service gives away: whoever adds a
// column would show it without meaning to.
func checkRecords(t *ast.TypeSpec, name string, fault func(ast.Node, string, ...any)) {
	record := holdsRecord(t)
	wired := name == "app" || strings.HasPrefix(name, "store")
	if record == "" || wired || slices.Contains(recordHolders, name+"."+t.Name.Name) {
		return
	}
	fault(t, "%s has %s in it: what a service gives away has fields of its own", t.Name.Name, record)
}

// TestArchitecture_RecordHolders holds that the list above names only what is so.
func TestArchitecture_RecordHolders(t *testing.T) {
	found := map[string]bool{}
	for _, r := range packages(t, ".") {
		for _, file := range r.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(r.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}

			ast.Inspect(parsed, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok && holdsRecord(spec) != "" {
					found[short(r.ImportPath)+"."+spec.Name.Name] = true
				}
				return true
			})
		}
	}

	for _, name := range recordHolders {
		if !found[name] {
			t.Errorf("%s has no record in it any more: take it from recordHolders", name)
		}
	}
}

// filled counts the lines that are not blank.
func filled(lines []string) (n int) {
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

// checkSpecs wants a comment on every exported type, and on the group of every exported
// constant or variable.
func checkSpecs(n *ast.GenDecl, fault func(ast.Node, string, ...any)) {
	for _, spec := range n.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && n.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				fault(spec, "%s has no comment", spec.Name.Name)
			}
		case *ast.ValueSpec:
			if spec.Names[0].IsExported() && n.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				fault(spec, "%s has no comment", spec.Names[0].Name)
			}
		}
	}
}

func banned(s string, bans []string) bool {
	for _, ban := range bans {
		if s == ban || strings.HasSuffix(ban, ".") && strings.HasPrefix(s, ban) {
			return true
		}
	}
	return false
}

// TestArchitecture_PlantedFaults proves that each rule bites: a small module with one fault of
// each kind, and every fault is named.
func TestArchitecture_PlantedFaults(t *testing.T) {
	for fault, plant := range map[string]struct{ path, text string }{
		"is in no layer":             {"internal/attic", "// Package attic is not planned.\npackage attic\n"},
		"says nothing of what":       {"internal/util", "// Package util is vague.\npackage util\n"},
		"no package comment":         {"internal/tariff", "package tariff\n"},
		"(layer 4) imports":          {"internal/store", "// Package store looks up.\npackage store\nimport _ \"flexd/internal/api\"\n"},
		"(layer 6) imports delivery": {"internal/control", "// Package control looks sideways.\npackage control\nimport _ \"flexd/internal/delivery\"\n"},
		"imports database/sql":       {"internal/control", "// Package control queries.\npackage control\nimport _ \"database/sql\"\n"},
		"imports net/http":           {"internal/delivery", "// Package delivery sends.\npackage delivery\nimport _ \"net/http\"\n"},
		"a transport draws":          {"internal/console", "// Package console reads.\npackage console\nimport _ \"flexd/internal/store\"\n"},
		"SiteView shows store.Site":  {"internal/control", "// Package control shows records.\npackage control\n// SiteView is a record.\ntype SiteView struct{ store.Site }\n"},
		"Entry has store.Line":       {"internal/reward", "// Package reward gives records away.\npackage reward\n// Entry is a record.\ntype Entry struct{ *store.Line; Note string }\n"},
		"Mark has store.Recorded":    {"internal/registry", "// Package registry gives records away.\npackage registry\n// Mark is a record.\ntype Mark[V any] struct{ store.Recorded[V] }\n"},
		"Sum has store.Run in it":    {"internal/reward", "// Package reward gives records away.\npackage reward\n// Sum has records deep in it.\ntype Sum struct{ Runs map[string][]*store.Run }\n"},
		"imports testing":            {"internal/tariff", "// Package tariff tests in production.\npackage tariff\nimport _ \"testing\"\n"},
		"time.Now in the pure":       {"internal/tariff", "// Package tariff reads a clock.\npackage tariff\nimport \"time\"\nvar at = time.Now()\n"},
		"only cmd may ask":           {"internal/control", "// Package control asks the environment.\npackage control\nimport \"os\"\nvar home = os.Getenv(\"HOME\")\n"},
		"a tag on a domain":          {"internal/flex", "// Package flex is tagged.\npackage flex\n// A is tagged.\ntype A struct{ B int `json:\"b\"` }\n"},
		"Loud has no comment":        {"internal/tariff", "// Package tariff is silent.\npackage tariff\nfunc Loud() {}\n"},
		"more than 70":               {"internal/tariff", "// Package tariff is long.\npackage tariff\nfunc long() {" + strings.Repeat("\n_ = 1", 75) + "\n}\n"},
		"stands in doc.go":           {"internal/tariff", "// Package tariff hides its page.\npackage tariff\n"},
		"another sequence":           {"internal/wire", "package wire\nimport _ \"pgregory.net/rapid\"\n"},
		"more than 600":              {"internal/tariff", "// Package tariff is longer.\npackage tariff\n" + strings.Repeat("// A line.\n", 700)},
	} {
		t.Run(fault, func(t *testing.T) {
			dir := t.TempDir()
			write := func(path, text string) {
				full := filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}

			write("go.mod", "module flexd\n\ngo 1.26\n")
			write("internal/api/api.go", "// Package api is a transport.\npackage api\n")
			write("internal/delivery/other.go", "// Package delivery is a service.\npackage delivery\n")
			write("internal/wire/wire.go", "// Package wire is read and written.\npackage wire\n")
			file := "/planted.go"
			if strings.Contains(plant.text, "rapid") {
				file = "/planted_test.go"
			}

			write(plant.path+file, plant.text)
			var all []string
			for _, r := range packages(t, dir) {
				all = append(all, r.faults()...)
			}
			if !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, fault) }) {
				t.Errorf("a planted fault was not found: %q in %q", fault, all)
			}
		})
	}
}

// fileBytes is how large a file of the project may be: nothing that is built belongs into it.
const fileBytes = 2 << 20

// TestArchitecture_Files looks for files too large to be written by hand, such as a program that was
// committed by mistake.
func TestArchitecture_Files(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("not a checkout:", err)
	}

	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(name)
		if err == nil && info.Size() > fileBytes {
			t.Errorf("%s has %d bytes, more than %d: what is built is no part of the project", name, info.Size(), fileBytes)
		}
	}
}
