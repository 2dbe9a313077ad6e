package flexd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
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
