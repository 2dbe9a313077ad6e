package flexd_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Limits of one function. They are there so that a step can be read without decoding it;
// where one of them makes code worse, change it here, with the reason.
const (
	functionIdentifiers = 120 // names that a reader keeps in mind
	conditionOperators  = 2   // && and || of one if
	blockLines          = 12  // lines without a blank one
	assignedAtOnce      = 2   // values in an assignment that are not one call's results
)

// density is how many identifiers a line may have on average, over all code that is neither
// generated nor a test. Long signatures, calls and literals are written one part a line, at
// about 80 columns; a row of a table may be longer.
const density = 1.9

// privateWords are not to be part of a name: the field has a word of its own for each.
var privateWords = []string{
	"house", "desk", "lane", "crowd", "purse", "journey", "reckon", "reckoning", "reckoned", "hand", "told", "seen", "yard", "dice", "nudge", "nudged",
	"stood", "weighed", "glance", "aside", "houses", "street", "streets", "tolds",
	"standing", "stands", "door", "taught", "teach", "lesson", "vain", "anew",
}

// switchCases is the least number of cases of a switch without a tag: fewer are read better as ifs, but for
// shortSwitches of them in all.
const switchCases, shortSwitches = 3, 3

// contextHolders are the structs that may keep a context: what outlives the call that made it.
var contextHolders = []string{
	"Bridge",      // the connections of chargers end with Serve
	"queuedWrite", // a write that waits for the shared commit, as a request waits for its answer
}

// departure is one place that departs from a rule.
type departure struct {
	rule string
	at   token.Position
	what string
}

// TestStyle looks at every function and name for what departs from the rules.
func TestStyle(t *testing.T) {
	files, switches := 0, 0
	for _, pkg := range packages(t, ".") {
		for _, file := range pkg.GoFiles {
			files++

			for _, d := range departures(filepath.Join(pkg.Dir, file)) {
				if d.rule == "switch" {
					if switches++; switches <= shortSwitches {
						continue
					}
				}

				t.Errorf("%s:%d: %s: %s", d.at.Filename, d.at.Line, d.rule, d.what)
			}
		}
	}

	if files == 0 {
		t.Error("no file was looked at")
	}
}

// TestStyle_Tests looks at the air in tests: they are read as often as what they test.
func TestStyle_Tests(t *testing.T) {
	files := 0
	for _, pkg := range packages(t, ".") {
		for _, file := range slices.Concat(pkg.TestGoFiles, pkg.XTestGoFiles) {
			files++
			for _, d := range departures(filepath.Join(pkg.Dir, file)) {
				if d.rule == "air" {
					t.Errorf("%s:%d: %s", d.at.Filename, d.at.Line, d.what)
				}
			}
		}
	}

	if files == 0 {
		t.Error("no file was looked at")
	}
}

// TestStyle_Density holds the average number of identifiers a line, blank lines and comments
// counted as lines.
func TestStyle_Density(t *testing.T) {
	names, lines := 0, 0
	for _, pkg := range packages(t, ".") {
		for _, file := range pkg.GoFiles {
			n, l := densityOf(t, filepath.Join(pkg.Dir, file))
			names += n
			lines += l
		}
	}

	got := float64(names) / float64(lines)
	t.Logf("%d identifiers in %d lines: %.3f a line", names, lines, got)
	dense := filepath.Join(t.TempDir(), "dense.go")
	if err := os.WriteFile(dense, []byte("package p\n\nvar a, b, c, d, e, f, g = h(i), j(k), l, m, n, o, q\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, l := densityOf(t, dense); float64(n)/float64(l) <= density {
		t.Errorf("a file with %d identifiers in %d lines does not count as dense", n, l)
	}

	if lines == 0 || got > density {
		t.Errorf("%.3f identifiers a line, at most %.1f are allowed: break what is long, never pack", got, density)
	}
}

// densityOf counts the identifiers and the lines of a file; of a generated one, nothing.
func densityOf(t *testing.T, path string) (names, lines int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(f) {
		return 0, 0
	}

	ast.Inspect(f, func(n ast.Node) bool {
		if _, ok := n.(*ast.Ident); ok {
			names++
		}
		return true
	})
	return names, strings.Count(string(text), "\n")
}

// departures lists what in a file departs from the rules.
func departures(path string) []departure {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		return []departure{{"syntax", token.Position{Filename: path}, err.Error()}}
	}
	if ast.IsGenerated(f) {
		return nil
	}

	s := &style{fset: fset}
	if s.lines, err = readLines(path); err != nil {
		return []departure{{"syntax", token.Position{Filename: path}, err.Error()}}
	}
	for _, decl := range f.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			s.function(function)
		}
	}
	ast.Inspect(f, s.node)
	return s.found
}

func readLines(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	return strings.Split(string(text), "\n"), err
}

// style collects the departures of one file.
type style struct {
	fset  *token.FileSet
	lines []string
	found []departure
}

func (s *style) add(rule string, n ast.Node, format string, args ...any) {
	s.found = append(s.found, departure{rule, s.fset.Position(n.Pos()), fmt.Sprintf(format, args...)})
}

// function looks at a function's size and air.
func (s *style) function(f *ast.FuncDecl) {
	s.name(f.Name)
	if f.Body == nil {
		return
	}

	names := 0
	ast.Inspect(f, func(n ast.Node) bool {
		if _, ok := n.(*ast.Ident); ok {
			names++
		}
		return true
	})
	if names > functionIdentifiers {
		s.add("identifiers", f, "%s has %d names, more than %d", f.Name.Name, names, functionIdentifiers)
	}

	first := s.fset.Position(f.Body.Lbrace).Line
	last := s.fset.Position(f.Body.Rbrace).Line
	listed := s.listed(f.Body)
	together := 0

	for line := first + 1; line < last; line++ {
		text := strings.TrimSpace(s.lines[line-1])
		if text == "" {
			together = 0
			continue
		}

		if listed[line] {
			continue
		}
		if together++; together == blockLines+1 {
			s.add("air", f, "%s has more than %d lines without a blank one", f.Name.Name, blockLines)
		}
	}
}

// listed finds the lines that hold a further part of one list: arguments or fields that stand
// one a line are read as one step, however many they are.
func (s *style) listed(body *ast.BlockStmt) map[int]bool {
	lines := map[int]bool{}
	at := func(pos token.Pos) int { return s.fset.Position(pos).Line }
	add := func(open, shut token.Pos, parts []ast.Expr) {
		for _, part := range parts {
			if hasFunction(part) || at(part.Pos()) == at(open) {
				continue
			}
			for line := at(part.Pos()); line <= at(part.End()); line++ {
				lines[line] = true
			}
		}

		if at(open) != at(shut) {
			lines[at(shut)] = true
		}
	}

	list := func(n ast.Node) {
		for line := at(n.Pos()) + 1; line <= at(n.End()); line++ {
			lines[line] = true
		}
	}

	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			add(n.Lparen, n.Rparen, n.Args)
		case *ast.CompositeLit:
			add(n.Lbrace, n.Rbrace, n.Elts)
		case *ast.BasicLit: // a text, or the fields of a type, are one step too
			list(n)
		case *ast.StructType:
			list(n.Fields)
		}

		return true
	})
	return lines
}

func hasFunction(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			found = true
		}
		return !found
	})
	return found
}

// node looks at one statement or name.
func (s *style) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		s.results(n.Type, n.Body)
	case *ast.FuncLit:
		s.results(n.Type, n.Body)
	case *ast.IfStmt:
		if operators(n.Cond) > conditionOperators {
			s.add("condition", n, "a condition with more than %d operators", conditionOperators)
		}

		if assign, ok := n.Init.(*ast.AssignStmt); ok && assign.Tok != token.DEFINE {
			s.add("side-effect", n, "an if that assigns")
		}
	case *ast.AssignStmt:
		if len(n.Lhs) > assignedAtOnce && len(n.Rhs) == len(n.Lhs) {
			s.add("fused", n, "%d assignments in one", len(n.Lhs))
		}

	case *ast.ReturnStmt:
		s.returned(n)
	case *ast.SwitchStmt:
		if n.Tag == nil && n.Init == nil && len(n.Body.List) < switchCases && readsAsIf(n) {
			s.add("switch", n, "a switch of %d cases without a tag: write it as if", len(n.Body.List))
		}
	case *ast.TypeSpec:
		s.name(n.Name)

		s.contexts(n)
	case *ast.ValueSpec:
		for _, name := range n.Names {
			s.name(name)
		}
	case *ast.Field:
		for _, name := range n.Names {
			s.name(name)
		}
	}
	return true
}

// results looks for results with a name that they do not need, and for returns that do not say what they return.
func (s *style) results(function *ast.FuncType, body *ast.BlockStmt) {
	if function.Results == nil || body == nil {
		return
	}

	names, kinds, needed := map[string]bool{}, map[string]int{}, false
	for _, field := range function.Results.List {
		kind := types.ExprString(field.Type)
		_, callable := field.Type.(*ast.FuncType)
		needed = needed || function.Results.NumFields() > 1 && (kind == "bool" || callable)
		for _, name := range field.Names {
			names[name.Name] = true
			kinds[kind]++
			needed = needed || kinds[kind] > 1
		}
	}

	if len(names) == 0 {
		return
	}

	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			needed = needed || mentions(n, names)
		case *ast.ReturnStmt:
			if len(n.Results) == 0 {
				s.add("bare", n, "a return that does not say what it returns")
			}
		case *ast.FuncLit:
			return false
		}
		return true
	})

	if !needed {
		s.add("named", function, "results are named that need no name")
	}
}

// mentions reports whether a deferred call uses one of the names, or recovers.
func mentions(call *ast.DeferStmt, names map[string]bool) (found bool) {
	ast.Inspect(call, func(n ast.Node) bool {
		name, ok := n.(*ast.Ident)
		found = found || ok && (names[name.Name] || name.Name == "recover")
		return !found
	})
	return found
}

// contexts looks for a context that a struct keeps: a context belongs to a call.
func (s *style) contexts(t *ast.TypeSpec) {
	fields, ok := t.Type.(*ast.StructType)
	if !ok || slices.Contains(contextHolders, t.Name.Name) {
		return
	}

	for _, field := range fields.Fields.List {
		kind, ok := field.Type.(*ast.SelectorExpr)
		if !ok || kind.Sel.Name != "Context" {
			continue
		}
		if pkg, ok := kind.X.(*ast.Ident); ok && pkg.Name == "context" {
			s.add("context", field, "%s keeps a context: pass it to what needs it", t.Name.Name)
		}
	}
}

// readsAsIf reports whether each case of a switch would be a condition that an if may have.
func readsAsIf(s *ast.SwitchStmt) bool {
	for _, c := range s.Body.List {
		of, ok := c.(*ast.CaseClause)
		if !ok {
			continue
		}

		n := len(of.List) - 1
		for _, e := range of.List {
			n += operators(e)
		}
		if n > conditionOperators {
			return false
		}
	}
	return true
}

// operators counts && and || of a condition, without those of functions within.
func operators(cond ast.Expr) (n int) {
	ast.Inspect(cond, func(node ast.Node) bool {
		if _, ok := node.(*ast.FuncLit); ok {
			return false
		}
		if b, ok := node.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
			n++
		}
		return true
	})
	return n
}

// returned looks for a value that is returned beside a call that changes it: Go does not say
// which is done first.
func (s *style) returned(r *ast.ReturnStmt) {
	values := map[string]bool{}
	for _, result := range r.Results {
		if name, ok := result.(*ast.Ident); ok {
			values[name.Name] = true
		}
	}
	for _, result := range r.Results {
		call, ok := result.(*ast.CallExpr)
		if ok && len(values) > 0 && changes(call, values) {
			s.add("order", r, "a value returned beside the call that changes it")
		}
	}
}

// changes reports whether a call takes one of the values' address, or a function that
// assigns it.
func changes(call *ast.CallExpr, values map[string]bool) (found bool) {
	named := func(e ast.Expr) bool {
		if selector, ok := e.(*ast.SelectorExpr); ok {
			e = selector.X
		}
		name, ok := e.(*ast.Ident)
		return ok && values[name.Name]
	}

	ast.Inspect(call, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && named(n.X)
		case *ast.AssignStmt:
			found = found || n.Tok == token.ASSIGN && slices.ContainsFunc(n.Lhs, named)
		}
		return true
	})
	return found
}

// name looks at the words of a declared name. A street of an address is one.
func (s *style) name(name *ast.Ident) {
	inDirectory := strings.Contains(s.fset.Position(name.Pos()).Filename, "internal/directory/")
	ofAddress := inDirectory || name.Name == "StreetAddress"
	for _, word := range words(name.Name) {
		if word == "street" && ofAddress {
			continue
		}
		if slices.Contains(privateWords, word) {
			s.add("word", name, "%s: %q is a private word", name.Name, word)
		}
	}
}

// words splits a name in camel case, in lower case.
func words(name string) (all []string) {
	start := 0
	for i, r := range name {
		if i > start && unicode.IsUpper(r) {
			all = append(all, strings.ToLower(name[start:i]))
			start = i
		}
	}
	return append(all, strings.ToLower(name[start:]))
}

// TestStyle_Files looks for private words in the names of files: templates and pages have no other name.
func TestStyle_Files(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("not a checkout:", err)
	}

	for _, path := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		if word := privateWordOf(path); word != "" {
			t.Errorf("%s: %q is a private word", path, word)
		}
	}

	if privateWordOf("internal/portal/template/the_purse.html") != "purse" {
		t.Error("a planted file was not found")
	}
}

// privateWordOf returns the first private word in the name of a file, or "". Migrations keep the names
// that they were applied under.
func privateWordOf(path string) string {
	if strings.Contains(path, "/migration/") {
		return ""
	}

	parts := strings.FieldsFunc(path, func(r rune) bool { return !unicode.IsLetter(r) })
	at := slices.IndexFunc(parts, func(part string) bool { return slices.Contains(privateWords, strings.ToLower(part)) })
	if at < 0 {
		return ""
	}
	return parts[at]
}

// TestStyle_TestNames looks for private words in the names of tests, and of what tests declare.
func TestStyle_TestNames(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() == "node_modules" {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, "_test.go") || path == "style_test.go" {
			return nil
		}

		files++
		for _, d := range departures(path) {
			if d.rule == "word" {
				t.Errorf("%s:%d: %s", d.at.Filename, d.at.Line, d.what)
			}
		}
		return nil
	})
	if files == 0 || err != nil {
		t.Errorf("%d files were looked at: %v", files, err)
	}
}

// TestStyle_PlantedFaults proves that each rule finds its fault, and leaves good code alone.
func TestStyle_PlantedFaults(t *testing.T) {
	for _, c := range []struct{ rule, body string }{
		{"identifiers", strings.Repeat("\t_ = a\n\n", 130)},
		{"air", strings.Repeat("\tprintln()\n", 13)},
		{"condition", "\tif a > 1 && a < 2 || a == 3 && a != 4 {\n\t}\n"},
		{"side-effect", "\tif a = 1; a > 0 {\n\t}\n"},
		{"fused", "\tx, y, z := 1, 2, 3\n"},
		{"order", "\treturn a, g(&a)\n"},
		{"order", "\treturn a, g(func() { a = 1 })\n"},
		{"word", "\ttype theCrowd struct{}\n"},
		{"word", "\tvar oneLane = 1\n"},
		{"word", "\ttype longStreet struct{}\n"},
		{"switch", "\tswitch {\n\tcase a > 1:\n\t\treturn 1, nil\n\tcase a < 1:\n\t\treturn 2, nil\n\t}\n"},
		{"named", "\t_ = func() (n int, err error) { return 0, nil }\n"},
		{"bare", "\t_ = func() (n, m int) { return }\n"},
		{"", "\t_ = func() (n int, ok bool) { return 0, true }\n\n\t_ = func() (err error) {\n\t\tdefer g(&err)\n\t\treturn nil\n\t}\n"},
		{"context", "\ttype holder struct{ ctx context.Context }\n"},
		{"", "\tif b := g(&a); b == nil && a > 0 || a < -1 {\n\t}\n\n\tx, y := 1, 2\n"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "planted.go")
			text := "package planted\n\nfunc f(a int) (int, error) {\n" + c.body + "}\n"
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}

			found := departures(path)
			if c.rule == "" && len(found) > 0 {
				t.Fatalf("found in good code: %v", found)
			}
			if c.rule != "" && !slices.ContainsFunc(found, func(d departure) bool { return d.rule == c.rule }) {
				t.Fatalf("not found: %v", found)
			}
		})
	}
}
