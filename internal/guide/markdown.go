package guide

import (
	"fmt"
	"html"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// Block is a fenced block of a page: an example.
type Block struct {
	Line int // in the page's source, from 1
	// what stands behind the fence: the language, and what the example is
	Info string
	Text string
}

// Blocks returns the examples of a page in order.
func (p Page) Blocks() []Block {
	lines := strings.Split(p.Source, "\n")

	var all []Block
	for i := 0; i < len(lines); i++ {
		if info, fenced := strings.CutPrefix(lines[i], "```"); fenced {
			b := Block{Line: i + 1, Info: info}
			for i++; i < len(lines) && lines[i] != "```"; i++ {
				b.Text += lines[i] + "\n"
			}
			all = append(all, b)
		}
	}

	return all
}

// markdown makes HTML of the guides. HTML in them is left out.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(accessible{}, 100))),
)

// render makes HTML of Markdown.
func render(source string) string {
	var b strings.Builder
	err := markdown.Convert(
		[]byte(source),
		&b,
		parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))),
	)
	if err != nil {
		panic(err) // a Builder takes everything
	}

	return b.String()
}

// anchors are the ids of headings: their words in lower case, joined by hyphens. They stand
// in the errors' links, so each heading's is its own alone by its text.
type anchors struct{}

func (anchors) Generate(text []byte, _ ast.NodeKind) []byte {
	heading := string(text)
	open := strings.Index(heading, "](")
	if open > 0 { // a heading that is a link
		heading = heading[:open]
	}

	return []byte(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_', r == '-':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}

		return -1
	}, heading))
}

func (anchors) Put([]byte) {}

// accessible renders what scrolls sideways on a phone so that the keyboard reaches it and a
// screen reader names it.
type accessible struct{}

func (accessible) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, example)
	r.Register(ast.KindCodeBlock, example)
	r.Register(table.KindTable, scrolled)

	r.Register(
		table.KindTableHeader,
		around("<thead><tr>", "</tr></thead>\n<tbody>\n"),
	)

	r.Register(table.KindTableRow, around("<tr>", "</tr>\n"))
	r.Register(table.KindTableCell, cell)
}

// place is where a block stands among those of its kind, from 1, so that each has a name of its own.
func place(n ast.Node) int {
	nth := 0
	count := func(at ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && at.Kind() == n.Kind() {
			nth++
		}
		if at == n {
			return ast.WalkStop, nil
		}

		return ast.WalkContinue, nil
	}

	// walking fails where count does
	_ = ast.Walk(n.OwnerDocument(), count)

	return nth
}

func scrolled(
	w util.BufWriter,
	source []byte,
	n ast.Node,
	entering bool,
) (ast.WalkStatus, error) {
	before := fmt.Sprintf(
		`<div class="scroll" tabindex="0" role="region" aria-label="Table %d"><table>`+"\n",
		place(n),
	)

	return around(before, "</tbody></table></div>\n")(w, source, n, entering)
}

func around(before, after string) renderer.NodeRendererFunc {
	return func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			w.WriteString(before)
		} else {
			w.WriteString(after)
		}

		return ast.WalkContinue, nil
	}
}

func cell(
	w util.BufWriter,
	_ []byte,
	n ast.Node,
	entering bool,
) (ast.WalkStatus, error) {
	before, after := "<td>", "</td>"
	if n.Parent().Kind() == table.KindTableHeader {
		before, after = `<th scope="col">`, "</th>"
	}

	if !entering {
		w.WriteString(after)
		return ast.WalkContinue, nil
	}

	w.WriteString(before)

	if after == "</th>" && !n.HasChildren() {
		w.WriteString(`<span class="unseen">meaning</span>`)
	}

	return ast.WalkContinue, nil
}

func example(
	w util.BufWriter,
	source []byte,
	n ast.Node,
	entering bool,
) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}

	language := ""
	if block, fenced := n.(*ast.FencedCodeBlock); fenced {
		language = string(block.Language(source))
	}

	what := map[string]string{
		"output": "What it says",
		"json":   "JSON",
		"sh":     "Shell",
		"python": "Python",
	}[language]
	if what == "" {
		what = "Code"
	}

	fmt.Fprintf(
		w,
		`<pre class="%s" tabindex="0" role="region" aria-label="%s, example %d"><code>`,
		html.EscapeString(language),
		what,
		place(n),
	)

	w.WriteString(html.EscapeString(string(n.Lines().Value(source))))
	w.WriteString("</code></pre>\n")

	return ast.WalkContinue, nil
}
