package flexd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// suiteRunner says which tests run under the race detector.
const suiteRunner = "test/suite.sh"

// TestSuite finds tests that start goroutines and that the race detector would not watch: their package is not watched
// as a whole, and their names say nothing of it.
func TestSuite(t *testing.T) {
	runner := readSuite(t)

	watched := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		dir := "./" + filepath.ToSlash(filepath.Dir(path))
		if err != nil || !strings.HasSuffix(path, "_test.go") || runner.whole[dir] || runner.others[dir] {
			return err
		}

		for _, name := range startGoroutines(t, path) {
			watched++
			if why := runner.misses(dir, name); why != "" {
				t.Errorf("%s of %s starts goroutines and is not run with the race detector: %s", name, dir, why)
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if watched < 10 {
		t.Errorf("only %d tests start goroutines: the search is broken", watched)
	}
}

// Of the packages watched in part, what runs with the race detector is not run a second time without it, and everything else is: what
// is left out there, and nowhere else, is what at_once names.
func TestSuite_RunOnce(t *testing.T) {
	text, err := os.ReadFile(suiteRunner)
	if err != nil {
		t.Fatal(err)
	}

	for _, line := range []string{
		`-run "$at_once" "${partly_raced[@]}"`,
		`-skip "$at_once" "${rest_of[@]}"`,
		`rest_of=($(go list "${rest_of[@]}") $(go list "${partly_raced[@]}" | grep -vxFf <(go list "${rest_of[@]}")))`,
		`grep -vxFf <(go list "${raced[@]}" "${partly_raced[@]}" "${longest[@]}")`,
	} {
		if strings.Count(string(text), line) != 1 {
			t.Errorf("%s does not have %s once", suiteRunner, line)
		}
	}

	runner := readSuite(t)
	first := regexp.MustCompile(`\nrest_of=\((\./[^)]*)\)`).FindSubmatch(text)
	if first == nil || strings.Count(string(text), "-skip") != 1 {
		t.Fatalf("%s leaves out more, or has no list rest_of", suiteRunner)
	}

	for _, dir := range strings.Fields(string(first[1])) {
		if !runner.partly[dir] {
			t.Errorf("%s: what at_once names in %s is run nowhere", suiteRunner, dir)
		}
	}
}

// What one command of `make test` has compiled, the next reuses: its target gives the flags to all of them, no line has
// others, and the runner of the tests adds none but those that are there.
func TestSuite_CompiledOnce(t *testing.T) {
	for path, line := range map[string]string{
		"Makefile":  "\ntest race: export GOFLAGS := $(shell go env GOFLAGS) -trimpath\n",
		suiteRunner: "\nexport GOFLAGS=\"${GOFLAGS:-$(go env GOFLAGS)} -trimpath\"\n",
		".ci/run":   "\nexport GOFLAGS=\"$(go env GOFLAGS) -gcflags=all=-dwarf=false\"\n",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		if strings.Count(string(text), line) != 1 || strings.Count(string(text), "GOFLAGS=") > strings.Count(line, "GOFLAGS=") {
			t.Errorf("%s does not have %q once, or gives one command other flags", path, line)
		}
	}

	runner, err := os.ReadFile(suiteRunner)
	if err != nil {
		t.Fatal(err)
	}

	// given for a part of the packages, they take the place of those for all
	if of := regexp.MustCompile(`-gcflags=[^"]*`).FindString(string(runner)); !strings.Contains(of, "-dwarf=false") {
		t.Errorf("%s compiles SQLite with %q, and all else without what debuggers read", suiteRunner, of)
	}
}

// TestSuite_PlantedFault has a test in a package that is not named, and one whose name says nothing.
func TestSuite_PlantedFault(t *testing.T) {
	runner := readSuite(t)

	for _, c := range []struct{ dir, name, want string }{
		{"./internal/control", "TestCaps_AtOnce", ""},
		{"./internal/control", "TestCaps", "at_once"},
		{"./test/pairs", "TestCaps_AtOnce", "partly_raced"},
	} {
		got := runner.misses(c.dir, c.name)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s in %s: %q, want %q", c.name, c.dir, got, c.want)
		}
	}

	file := filepath.Join(t.TempDir(), "planted_test.go")
	text := "package p\nfunc TestA(t *testing.T) { go t.Log() }\nfunc TestB(t *testing.T) { w.Go(f) }\nfunc TestC(t *testing.T) {}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	if got := strings.Join(startGoroutines(t, file), " "); got != "TestA TestB" {
		t.Errorf("found %q, want the two tests that start goroutines", got)
	}
}

// suite is what the runner says of the race detector.
type suite struct {
	// packages, as the runner writes them: watched as a whole, watched in part, and not watched, as other
	// processes do the work
	whole, partly, others map[string]bool

	names *regexp.Regexp // of the tests that run in those partly watched
}

// misses says why a test is not run with the race detector, or nothing.
func (s suite) misses(dir, test string) string {
	if !s.partly[dir] {
		return "the package is in neither list of " + suiteRunner + ", raced and partly_raced"
	}

	if !s.names.MatchString(test) {
		return "its name matches nothing of at_once in " + suiteRunner
	}

	return ""
}

func readSuite(t *testing.T) suite {
	t.Helper()
	text, err := os.ReadFile(suiteRunner)
	if err != nil {
		t.Fatal(err)
	}

	list := func(name string) map[string]bool {
		found := regexp.MustCompile(`(?s)\n` + name + `=\(([^)]*)\)`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no list %s", suiteRunner, name)
		}

		dirs := map[string]bool{}
		for _, dir := range strings.Fields(string(found[1])) {
			dirs[dir] = true
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("%s: %s names a package that is not there: %v", suiteRunner, name, err)
			}
		}

		return dirs
	}

	names := regexp.MustCompile(`at_once='([^']*)'`).FindSubmatch(text)
	if names == nil {
		t.Fatalf("%s has no at_once", suiteRunner)
	}

	return suite{
		whole:  list("raced"),
		partly: list("partly_raced"),
		others: list("processes"),
		names:  regexp.MustCompile(string(names[1])),
	}
}

// startGoroutines returns the tests of a file that have a go statement, or a call of a method named Go as a group of
// goroutines has it.
func startGoroutines(t *testing.T, path string) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}

	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
			continue
		}

		starts := false
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts = true
			case *ast.SelectorExpr:
				starts = starts || n.Sel.Name == "Go"
			}

			return !starts
		})

		if starts {
			found = append(found, f.Name.Name)
		}
	}

	return found
}
