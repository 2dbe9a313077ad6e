package guide

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	for source, want := range map[string]string{
		"# A <b> title":                   "<h1 id=\"a-b-title\">A <!-- raw HTML omitted --> title</h1>\n",
		"## not_found":                    "<h2 id=\"not_found\">not_found</h2>\n",
		"### Grade, your *endpoint*!":     "<h3 id=\"grade-your-endpoint\">Grade, your <em>endpoint</em>!</h3>\n",
		"two\nlines":                      "<p>two\nlines</p>\n",
		"`a <b>` & **c `d`** *e":          "<p><code>a &lt;b&gt;</code> &amp; <strong>c <code>d</code></strong> *e</p>\n",
		"[`x`](/y?a&b) and [z":            "<p><a href=\"/y?a&amp;b\"><code>x</code></a> and [z</p>\n",
		"- one\n  more\n- two\n\nafter":   "<ul>\n<li>one\nmore</li>\n<li>two</li>\n</ul>\n<p>after</p>\n",
		"1. one\n2. two":                  "<ol>\n<li>one</li>\n<li>two</li>\n</ol>\n",
		"a ` mark alone":                  "<p>a ` mark alone</p>\n",
		"```sh\n# no heading\n\n- a\n```": "<pre class=\"sh\" tabindex=\"0\" role=\"region\" aria-label=\"Shell, example 1\"><code># no heading\n\n- a\n</code></pre>\n",
		"| a | |\n| --- | --- |\n| 1 | `2` |": "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table 1\"><table>\n<thead><tr><th scope=\"col\">a</th>" +
			"<th scope=\"col\"><span class=\"unseen\">meaning</span></th></tr></thead>\n<tbody>\n<tr><td>1</td><td><code>2</code></td></tr>\n</tbody></table></div>\n",
	} {
		if got := render(source); got != want {
			t.Errorf("%q becomes\n%s\nwant\n%s", source, got, want)
		}
	}
}

// Pages say nothing in Markdown that the renderer does not know.
func TestPages(t *testing.T) {
	code := regexp.MustCompile(`(?s)<(pre|code).*?</(pre|code)>`)
	left := regexp.MustCompile("```|\\*\\*|\\]\\(|^#|\n#|\n> |<p>\\||raw HTML omitted")
	for _, p := range slices.Concat(Pages, Manual) {
		if p.Title == "" || p.Summary == "" || strings.HasPrefix(p.Summary, "#") {
			t.Errorf("%s: title %q, summary %q", p.Name, p.Title, p.Summary)
		}
		if text := code.ReplaceAllString(render(p.Source), ""); left.MatchString(text) {
			t.Errorf("%s: Markdown is left: %s", p.Name, left.FindString(text))
		}

		for i, line := range strings.Split(p.Source, "\n") {
			if strings.TrimRight(line, " \t") != line {
				t.Errorf("%s:%d: blanks at the end", p.Name, i+1)
			}
		}
	}
}

// TestManual_LinksLead follows every link of the manual's pages to a page that is served.
func TestManual_LinksLead(t *testing.T) {
	links := regexp.MustCompile(`href="/docs/([a-z-]+)`)
	for _, p := range Manual {
		for _, m := range links.FindAllStringSubmatch(render(served(p.Source)), -1) {
			if _, found := Find(m[1]); !found {
				t.Errorf("%s links to /docs/%s, which is not served", p.Name, m[1])
			}
		}
	}

	if got := served("see [fleets](engine-fleet.md#caps), [money](money.md#supply)"); got != "see [fleets](/docs#the-manual), [money](/docs/money#supply)" {
		t.Error(got)
	}
}

func TestPostman_NoDocument(t *testing.T) {
	if _, err := Postman([]byte("[]")); err == nil {
		t.Error("a collection of nothing")
	}
}
