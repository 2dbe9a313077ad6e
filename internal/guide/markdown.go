package guide

import (
	"fmt"
	"html"
	"strings"
	"unicode"
)

// The guides use a part of Markdown: headings, paragraphs, lists, tables, fenced blocks, and
// within a line code, emphasis and links. HTML is not taken: it is shown as it was written.

// Block is a fenced block of a page: an example.
type Block struct {
	Line int    // in the page's source, from 1
	Info string // what stands behind the fence: the language, and what the example is
	Text string
}

// Blocks returns the examples of a page in order.
func (p Page) Blocks() (all []Block) {
	lines := strings.Split(p.Source, "\n")
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

// render makes HTML of Markdown.
func render(source string) string {
	var b strings.Builder
	lines := strings.Split(strings.TrimSpace(source), "\n")
	for i := 0; i < len(lines); {
		switch n := extent(lines[i:]); {
		case lines[i] == "":
			i++
		case strings.HasPrefix(lines[i], "```"):
			fenced(&b, lines[i], lines[i+1:i+n-1])
			i += n
		case strings.HasPrefix(lines[i], "#"):
			heading(&b, lines[i])
			i++
		case strings.HasPrefix(lines[i], "|"):
			table(&b, lines[i:i+n])
			i += n
		case bullet(lines[i]) > 0:
			list(&b, lines[i:i+n])
			i += n
		default:
			fmt.Fprintf(&b, "<p>%s</p>\n", inline(strings.Join(lines[i:i+n], "\n")))
			i += n
		}
	}
	return b.String()
}

// extent is how many lines the part has that begins with the first: a fenced block up to its
// end, anything else up to the next empty line.
func extent(lines []string) int {
	ends := func(l string) bool { return l == "" }
	if strings.HasPrefix(lines[0], "```") {
		ends = func(l string) bool { return l == "```" }
	}
	for n := 1; n < len(lines); n++ {
		if ends(lines[n]) {
			if lines[n] == "" {
				return n
			}
			return n + 1
		}
	}
	return len(lines)
}

func fenced(b *strings.Builder, info string, lines []string) {
	words := strings.Fields(strings.TrimPrefix(info, "```"))
	what := map[string]string{"output": "What it says", "json": "JSON", "sh": "Shell", "python": "Python"}[words[0]]
	fmt.Fprintf(b, "<pre class=\"%s\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><code>", words[0], what)
	for _, l := range lines {
		b.WriteString(html.EscapeString(l) + "\n")
	}
	b.WriteString("</code></pre>\n")
}

func heading(b *strings.Builder, line string) {
	text := strings.TrimLeft(line, "#")
	level := len(line) - len(text)
	text = strings.TrimSpace(text)
	if id := slug(text); level > 1 {
		fmt.Fprintf(b, "<h%d id=\"%s\">%s</h%d>\n", level, id, inline(text), level)
		return
	}
	fmt.Fprintf(b, "<h1>%s</h1>\n", inline(text))
}

// slug is the anchor of a heading.
func slug(text string) string {
	if open := strings.Index(text, "]("); open > 0 { // a heading that is a link
		text = text[:open]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_', r == '-':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, text)
}

// bullet is how long the mark of a list's item is that the line begins with, or 0.
func bullet(line string) int {
	if strings.HasPrefix(line, "- ") {
		return 2
	}
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	if digits > 0 && strings.HasPrefix(line[digits:], ". ") {
		return digits + 2
	}
	return 0
}

func list(b *strings.Builder, lines []string) {
	tag := "ol"
	if lines[0][0] == '-' {
		tag = "ul"
	}
	fmt.Fprintf(b, "<%s>\n", tag)
	for i := 0; i < len(lines); {
		text := lines[i][bullet(lines[i]):]
		for i++; i < len(lines) && bullet(lines[i]) == 0; i++ {
			text += "\n" + strings.TrimSpace(lines[i])
		}
		fmt.Fprintf(b, "<li>%s</li>\n", inline(text))
	}
	fmt.Fprintf(b, "</%s>\n", tag)
}

func table(b *strings.Builder, lines []string) {
	b.WriteString("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table>\n<thead><tr>")
	for _, c := range cells(lines[0]) {
		if c == "" {
			c = "<span class=\"unseen\">meaning</span>"
		} else {
			c = inline(c)
		}
		fmt.Fprintf(b, "<th scope=\"col\">%s</th>", c)
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, l := range lines[2:] {
		b.WriteString("<tr>")
		for _, c := range cells(l) {
			fmt.Fprintf(b, "<td>%s</td>", inline(c))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table></div>\n")
}

func cells(line string) []string {
	parts := strings.Split(strings.Trim(line, "|"), "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// inline makes HTML of text within a line. A mark without its partner is shown as it is.
func inline(text string) string {
	var b strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "`*[")
		if i < 0 {
			break
		}
		b.WriteString(html.EscapeString(text[:i]))
		text = text[i:]
		made, rest, ok := marked(text)
		if !ok {
			made, rest = text[:1], text[1:]
		}
		b.WriteString(made)
		text = rest
	}
	return b.String() + html.EscapeString(text)
}

// marked makes HTML of the code, emphasis or link that text begins with.
func marked(text string) (made, rest string, ok bool) {
	switch {
	case text[0] == '`':
		if inner, rest, ok := strings.Cut(text[1:], "`"); ok {
			return "<code>" + html.EscapeString(inner) + "</code>", rest, true
		}
	case strings.HasPrefix(text, "**"):
		if inner, rest, ok := strings.Cut(text[2:], "**"); ok {
			return "<strong>" + inline(inner) + "</strong>", rest, true
		}
	case text[0] == '[':
		label, rest, ok := strings.Cut(text[1:], "](")
		if address, rest, closed := strings.Cut(rest, ")"); ok && closed {
			return fmt.Sprintf("<a href=\"%s\">%s</a>", html.EscapeString(address), inline(label)), rest, true
		}
	}
	return "", "", false
}
