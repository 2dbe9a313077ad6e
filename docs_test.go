package flexd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurityPage holds the page of claims to what it names: each test exists.
func TestSecurityPage(t *testing.T) {
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}

	var tests bytes.Buffer
	err = filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		tests.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	names := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w*`).FindAllString(string(page), -1)
	if len(names) < 40 {
		t.Errorf("the page names %d tests alone", len(names))
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "\nfunc "+name+"(") {
			t.Errorf("docs/security.md names %s, which is no test", name)
		}
	}
}

// TestDocs_Packages holds that README says of every package what it is for.
func TestDocs_Packages(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}

	folders, err := filepath.Glob("internal/*")
	if err != nil || len(folders) == 0 {
		t.Fatal("there are no packages", err)
	}

	for _, folder := range folders {
		if !strings.Contains(string(text), "`"+folder+"`") {
			t.Errorf("README's table of packages has no %s", folder)
		}
	}
}

var (
	goTest   = regexp.MustCompile("go test ([^`;\n]*)")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
)

// testsOf names the tests of packages that are named as a command names them.
func testsOf(t *testing.T, packages []string) []string {
	t.Helper()
	var names []string

	for _, p := range packages {
		folder, below := strings.CutSuffix(p, "/...")

		err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != folder && !below:
				return filepath.SkipDir
			case !strings.HasSuffix(path, "_test.go"):
				return nil
			}

			b, err := os.ReadFile(path)
			for _, m := range testFunc.FindAllStringSubmatch(string(b), -1) {
				names = append(names, m[1])
			}

			return err
		})

		if err != nil {
			t.Fatal(err)
		}
	}

	return names
}

// runsNothing returns the commands of a page that run no test: go test says so in a warning alone, and passes.
func runsNothing(t *testing.T, page string) []string {
	t.Helper()
	var found []string
	for _, m := range goTest.FindAllStringSubmatch(strings.ReplaceAll(page, `\|`, "|"), -1) {
		var packages []string
		var pattern string

		words := strings.Fields(m[1])
		for i, word := range words {
			if word == "." || strings.HasPrefix(word, "./") {
				packages = append(packages, word)
			}

			if word == "-run" && i+1 < len(words) {
				pattern = strings.Trim(words[i+1], "'")
			}
		}

		// Benchmarks are run with a pattern that is to match no test; NAME and … stand for any.
		ofNone := slices.Contains([]string{"", "^$", "xxx", "XXX", "NAME", "…"}, pattern)
		if ofNone || len(packages) == 0 {
			continue
		}

		// What is behind a slash names subtests.
		top, _, _ := strings.Cut(pattern, "/")
		test, err := regexp.Compile(top)
		if err != nil || !slices.ContainsFunc(testsOf(t, packages), test.MatchString) {
			found = append(found, m[0])
		}
	}

	return found
}

var (
	faultInCode = regexp.MustCompile(`"((?:value|type)_error(?:\.[a-z_]+)*)"`)
	faultOnPage = regexp.MustCompile("`((?:value|type)_error(?:\\.[a-z_]+)*|\\.[a-z_]+)`")
)

// faultsOf returns the types of fault in a page's table. Behind `value_error.date` in a row, `.time` stands for `value_error.time`.
func faultsOf(page string) map[string]bool {
	types := map[string]bool{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}

		var family string
		for _, m := range faultOnPage.FindAllStringSubmatch(cells[1], -1) {
			name := m[1]
			if strings.HasPrefix(name, ".") {
				name = family + name
			}
			if end := strings.LastIndexByte(name, '.'); end >= 0 {
				family = name[:end]
			}

			types[name] = true
		}
	}

	return types
}

// faultsSent returns the types of fault that the program names.
func faultsSent(t *testing.T) map[string]bool {
	t.Helper()
	sent := map[string]bool{}

	err := filepath.WalkDir("internal", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}

		b, err := os.ReadFile(path)
		for _, m := range faultInCode.FindAllStringSubmatch(string(b), -1) {
			sent[m[1]] = true
		}

		return err
	})
	if err != nil || len(sent) < 30 {
		t.Fatal("the program names few types of fault", len(sent), err)
	}

	return sent
}

// TestDocs_Faults holds that both pages list each type of fault that is sent, and no other.
func TestDocs_Faults(t *testing.T) {
	sent := faultsSent(t)
	for _, page := range []string{"docs/interface.md", "internal/guide/page/errors.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		listed := faultsOf(string(text))
		for name := range sent {
			if !listed[name] {
				t.Errorf("%s does not list %s", page, name)
			}
		}

		for name := range listed {
			if !sent[name] {
				t.Errorf("%s lists %s, which is never sent", page, name)
			}
		}
	}
}

// TestDocs_Runs holds that each test that the docs tell the reader to run is there.
func TestDocs_Runs(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("there are no pages", err)
	}

	for _, page := range append(pages, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		for _, command := range runsNothing(t, string(text)) {
			t.Errorf("%s: %s runs no test", page, command)
		}
	}

	if got := runsNothing(t, "`go test . -run 'NoSuchTest\\|NorThis'`"); len(got) != 1 {
		t.Errorf("a planted command without a test: %q", got)
	}
}
