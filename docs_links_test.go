package flexd_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	codeBlock    = regexp.MustCompile("(?sm)^ *```.*?^ *```")
	inlineCode   = regexp.MustCompile("`[^`\n]*`")
	pageLink     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageHeading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	namedAnchor  = regexp.MustCompile(`<a id="([^"]+)"`)
	headingLink  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	servedManual = regexp.MustCompile(`^/docs/([a-z-]+)$`)
)

// notOurs are the folders without pages of this project: what npm installs, and the clients of others' generators.
var notOurs = map[string]bool{".git": true, "node_modules": true, "generated": true}

// TestDocs_Links follows each link within the repository: the file is there, and so is the heading.
func TestDocs_Links(t *testing.T) {
	texts, anchors, links := map[string]string{}, map[string]map[string]bool{}, 0

	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && notOurs[d.Name()]:
			return filepath.SkipDir
		case path.Ext(name) != ".md":
			return nil
		}

		text, err := os.ReadFile(name)
		name = filepath.ToSlash(name)
		texts[name], anchors[name] = string(text), anchorsOf(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	for name, text := range texts {
		found := linksOf(text)
		links += len(found)
		for _, link := range found {
			if why := brokenLink(anchors, name, link); why != "" {
				t.Errorf("%s links to %s: %s", name, link, why)
			}
		}
	}

	if links < 300 {
		t.Errorf("only %d links were found", links)
	}
}

// TestDocs_Links_PlantedFault has links of each kind that lead nowhere, among ones that lead.
func TestDocs_Links_PlantedFault(t *testing.T) {
	pages := map[string]map[string]bool{
		"docs/a.md":                    anchorsOf("# A `b`, and c!\n\n<a id=\"here\"></a>\n"),
		"internal/guide/page/start.md": anchorsOf("## First step\n"),
	}

	leadsNowhere := map[string]bool{
		"#a-b-and-c":             false,
		"#here":                  false,
		"#nowhere":               true,
		"a.md#a-b-and-c":         false,
		"b.md":                   true,
		"/docs/start#first-step": false,
		"/docs/start#last-step":  true,
		"/docs/a":                false,
		"/docs/b":                true,
		"https://example.com/b":  false,
	}

	for link, broken := range leadsNowhere {
		if why := brokenLink(pages, "docs/a.md", link); (why != "") != broken {
			t.Errorf("%s: %q", link, why)
		}
	}

	if got := linksOf("[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n"); len(got) != 1 || got[0] != "b.md" {
		t.Errorf("the links of a page with code: %q", got)
	}
}

// linksOf returns where a page's links lead, without those in code.
func linksOf(page string) []string {
	text := inlineCode.ReplaceAllString(codeBlock.ReplaceAllString(page, ""), "")

	var found []string
	for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}

	return found
}

// brokenLink says why a link of a page leads nowhere, or nothing, by the anchors of all pages. Links to other hosts and
// to what only a running flexd has are not followed.
func brokenLink(pages map[string]map[string]bool, page, link string) string {
	target, anchor, _ := strings.Cut(link, "#")
	switch {
	case strings.Contains(target, "://"), strings.HasPrefix(target, "/console"), target == "/docs", target == "/docs/reference":
		return ""
	case target == "":
		target = page
	case strings.HasPrefix(target, "/"):
		target = servedPage(pages, target)
	default:
		target = path.Join(path.Dir(page), target)
	}

	anchors, isPage := pages[target]
	if !isPage {
		if _, err := os.Stat(target); err != nil {
			return "there is no such file"
		}
		return ""
	}

	if anchor != "" && !anchors[anchor] {
		return "the page has no such heading"
	}

	return ""
}

// servedPage is the file of a page that a running flexd has under /docs: a guide, or a page of the manual.
func servedPage(pages map[string]map[string]bool, address string) string {
	m := servedManual.FindStringSubmatch(address)
	if m == nil {
		return address
	}

	guide := "internal/guide/page/" + m[1] + ".md"
	if _, ok := pages[guide]; ok {
		return guide
	}

	return "docs/" + m[1] + ".md"
}

// anchorsOf returns what a link to a page can name behind its #: the headings, as GitHub and flexd itself write them,
// and named anchors.
func anchorsOf(page string) map[string]bool {
	all := map[string]bool{}
	text := codeBlock.ReplaceAllString(page, "")
	for _, m := range pageHeading.FindAllStringSubmatch(text, -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '_', r == '-':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}

			return -1
		}, headingLink.ReplaceAllString(m[1], "$1"))] = true
	}

	for _, m := range namedAnchor.FindAllStringSubmatch(text, -1) {
		all[m[1]] = true
	}

	return all
}
