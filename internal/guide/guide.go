package guide

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"flexd/docs"
)

//go:embed page/*.md
var sources embed.FS

// Style is the style sheet of the pages.
//
//go:embed style.css
var Style []byte

// CopyScript gives the pages' examples buttons that copy them.
//
//go:embed copy.js
var CopyScript []byte

// Icon is the pages' icon.
//
//go:embed favicon-32x32.png
var Icon []byte

//go:embed frame.html
var frameText string

var frame = template.Must(template.New("frame").Parse(frameText))

// Page is one guide.
type Page struct {
	Name    string // as in its address, /docs/NAME
	Title   string
	Summary string // its first paragraph
	Source  string // Markdown
}

// order is the order in which the guides are listed.
var order = []string{
	"quickstart",
	"webhooks",
	"clock",
	"rewards",
	"chargers",
	"limited-pause",
	"batteries",
	"components",
	"roles",
	"errors",
	"clients",
	"going-live",
	"glossary",
	"changelog",
}

// Pages are the guides, in the order in which they are to be read.
var Pages = func() []Page {
	var all []Page
	for _, name := range order {
		b, err := sources.ReadFile("page/" + name + ".md")
		if err != nil {
			panic(err) // the pages are part of the program
		}
		all = append(all, parse(name, string(b)))
	}
	return all
}()

// manualOrder is the order in which the pages of the manual are listed.
var manualOrder = []string{
	"interface",
	"divergences",
	"delivery",
	"money",
	"payments",
	"market",
	"ocpp",
	"operating",
	"security",
	"decisions",
}

// Manual is the pages that say what holds, in the order in which they are listed.
var Manual = func() []Page {
	var all []Page
	for _, name := range manualOrder {
		b, err := docs.Pages.ReadFile(name + ".md")
		if err != nil {
			panic(err) // the pages are part of the program
		}
		all = append(all, parse(name, string(b)))
	}
	return all
}()

// parse takes title and summary from a page's source.
func parse(name, source string) Page {
	head, rest, _ := strings.Cut(source, "\n\n")
	summary, _, _ := strings.Cut(rest, "\n\n")

	return Page{
		Name:    name,
		Source:  source,
		Title:   strings.TrimPrefix(head, "# "),
		Summary: strings.ReplaceAll(summary, "\n", " "),
	}
}

// Find returns the guide, or the page of the manual, of a name.
func Find(name string) (Page, bool) {
	for _, p := range slices.Concat(Pages, Manual) {
		if p.Name == name {
			return p, true
		}
	}

	return Page{}, false
}

// HTML is the guide as a page.
func (p Page) HTML() []byte {
	return fill(p.Name, p.Title, render(served(p.Source)))
}

// pageLink is a link of the manual to another of its pages, by file name.
var pageLink = regexp.MustCompile(`\]\(([a-z-]+)\.md(#[^)]*)?\)`)

// served leads the links between pages of the manual to where they are served. A link to a
// page that is not served stays its text.
func served(source string) string {
	return pageLink.ReplaceAllStringFunc(source, func(link string) string {
		m := pageLink.FindStringSubmatch(link)
		if !slices.Contains(manualOrder, m[1]) {
			return "](/docs#the-manual)"
		}
		return "](/docs/" + m[1] + m[2] + ")"
	})
}

// Index is the page that leads to all of them.
func Index() []byte {
	var b strings.Builder
	b.WriteString(
		"# Build with flexd\n\nRegister sites and their chargers, cars and batteries; receive schedules; report what came of them.\n\n",
	)

	for _, p := range Pages {
		fmt.Fprintf(
			&b,
			"## [%s](/docs/%s)\n\n%s\n\n",
			p.Title,
			p.Name,
			p.Summary,
		)
	}

	b.WriteString("## The manual\n\n")
	for _, p := range Manual {
		fmt.Fprintf(&b, "- [%s](/docs/%s)\n", p.Title, p.Name)
	}

	b.WriteString("\n## For programs\n\n" + forPrograms(""))

	return fill("", "Build with flexd", render(b.String()))
}

// forPrograms lists what machines read, with the service's address before each path.
func forPrograms(base string) string {
	return fmt.Sprintf(`- [The interface](%[1]s/openapi.json): every operation, as OpenAPI 3.1.
- [A Postman collection](%[1]s/docs/postman.json) of every operation, with its example.
- [llms.txt](%[1]s/llms.txt): this list, for a language model.
`, base)
}

// LLMs is /llms.txt of the service at an address: what there is to read, and where.
func LLMs(base string) []byte {
	var b strings.Builder
	b.WriteString(
		"# flexd\n\n> Energy flexibility: sites and their chargers, cars and batteries are registered, planned against tariffs and market prices, and sent by webhook what to do.\n\n## Guides\n\n",
	)

	for _, p := range Pages {
		fmt.Fprintf(
			&b,
			"- [%s](%s/docs/%s.md): %s\n",
			p.Title,
			base,
			p.Name,
			p.Summary,
		)
	}

	b.WriteString("\n## The manual\n\n")
	for _, p := range Manual {
		fmt.Fprintf(&b, "- [%s](%s/docs/%s.md)\n", p.Title, base, p.Name)
	}

	b.WriteString("\n## For programs\n\n" + forPrograms(base))

	return []byte(b.String())
}

// fill puts a page's body into the frame that all of them share.
func fill(name, title string, body string) []byte {
	var b bytes.Buffer
	err := frame.Execute(&b, map[string]any{
		"Name":  name,
		"Title": title,
		"Body":  template.HTML(body),
		"Pages": Pages,
	})
	if err != nil {
		panic(err) // the frame takes what it is given
	}

	return b.Bytes()
}
