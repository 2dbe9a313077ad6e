package wire

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Limits of what is kept and said of names that the interface does not have.
const (
	MaxIgnored         = 100 // names of a request that are kept; all are counted
	MaxIgnoredName     = 64  // bytes of a name; what is longer is cut, and ends in ...
	MaxIgnoredWarnings = 10  // lines of a list of warnings
	MaxIgnoredShown    = 10  // names of Ignored.Header
	maxIgnoredHeader   = 512 // bytes of Ignored.Header
)

// Ignored are the names of a request that the interface does not have, and which were
// passed over. Its zero value has none.
type Ignored struct {
	Names []IgnoredName // the first MaxIgnored
	Count int           // of all
}

// IgnoredName is one of them.
type IgnoredName struct {
	In   []string // the place of the object that has it: names, and positions of lists
	Name string   // shortened to MaxIgnoredName
	Like string   // the one published name that it may stand for, or ""
}

// add counts a name, which it does not keep, and notes the first ones.
func (g *Ignored) add(s *shape, in []place, name string) {
	g.Count++
	if len(g.Names) >= MaxIgnored {
		return
	}

	n := IgnoredName{Name: shorten(name), Like: s.like(name)}
	for _, p := range in {
		n.In = append(n.In, p.text())
	}

	g.Names = append(g.Names, n)
}

// join adds the names of another part of the request. A nil g takes none.
func (g *Ignored) join(part Ignored) {
	if g != nil {
		g.Count += part.Count
		g.Names = append(g.Names, part.Names...)
		g.Names = g.Names[:min(len(g.Names), MaxIgnored)]
	}
}

// has reports whether the outermost object has the name.
func (g *Ignored) has(name string) bool {
	return slices.ContainsFunc(g.Names, func(n IgnoredName) bool {
		return len(n.In) == 0 && n.Name == name
	})
}

// shorten returns a copy of at most MaxIgnoredName bytes and the dots, so that a long name is not held.
func shorten(name string) string {
	if len(name) <= MaxIgnoredName {
		return strings.Clone(name)
	}

	return strings.ToValidUTF8(name[:MaxIgnoredName], "") + "..."
}

// Warnings says for each name at a place that is wanted that it was ignored, in one line: at most
// MaxIgnoredWarnings, of which the last then counts the others.
func (g *Ignored) Warnings(wanted func(in []string) bool) []string {
	var lines []string
	for _, n := range g.Names {
		if wanted(n.In) {
			lines = append(lines, n.warning())
		}
	}

	if more := len(lines) - (MaxIgnoredWarnings - 1); more > 1 {
		lines = append(
			lines[:MaxIgnoredWarnings-1],
			strconv.Itoa(more)+" more unknown names: ignored",
		)
	}

	return lines
}

func (n IgnoredName) warning() string {
	where := "the body"
	if len(n.In) > 0 {
		where = strings.Join(n.In, ".")
	}

	line := "unknown name " + strconv.Quote(n.Name) + " in " + where + ": ignored"
	if n.Like != "" {
		line += "; did you mean " + strconv.Quote(n.Like) + "?"
	}

	return line
}

// Header lists the names for a field of an answer's header: with their places, each once whatever
// its positions in lists are, in printable ASCII, with ? for any other character. It ends in ... if there are
// more than MaxIgnoredShown. It is "" if there are none.
func (g *Ignored) Header() string {
	var (
		field strings.Builder
		shown []string
	)

	for _, n := range g.Names {
		kind := n.withoutPositions()
		if slices.Contains(shown, kind) {
			continue
		}

		text := printable(strings.Join(append(slices.Clone(n.In), cmp.Or(n.Name, "?")), "."))
		full := field.Len()+len(text)+len(", ...") > maxIgnoredHeader
		if full || len(shown) == MaxIgnoredShown {
			field.WriteString(", ...")
			return strings.TrimPrefix(field.String(), ", ")
		}

		if len(shown) > 0 {
			field.WriteString(", ")
		}

		field.WriteString(text)
		shown = append(shown, kind)
	}

	return field.String()
}

// withoutPositions is the name with its place, but without positions in lists.
func (n IgnoredName) withoutPositions() string {
	kind := n.Name
	for _, step := range n.In {
		if _, err := strconv.Atoi(step); err != nil {
			kind = step + "." + kind
		}
	}

	return kind
}

func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' || c == ',' {
			return '?'
		}
		return c
	}, text)
}

// like returns the one name that an unknown name of an object may stand for, or "": one of its own names in
// another case or within maxEdits, one of which it is the first or last part, or one of an object in it.
func (s *shape) like(name string) string {
	if len(name) > MaxIgnoredName {
		return ""
	}

	lower := strings.ToLower(name)
	tests := []func(known string) bool{
		func(known string) bool { return strings.ToLower(known) == lower },
		func(known string) bool { return near(known, lower) },
		func(known string) bool {
			return strings.HasPrefix(known, lower+"_") || strings.HasSuffix(known, "_"+lower)
		},
	}

	for _, fits := range tests {
		found, n := "", 0
		for _, f := range s.fields {
			if fits(f.name) {
				found = f.name
				n++
			}
		}

		if n == 1 {
			return found
		}
	}

	return s.likeWithin(name)
}

// likeWithin returns the one name of an object in this one that an unknown name is exactly.
func (s *shape) likeWithin(name string) string {
	found := ""
	for _, f := range s.fields {
		if _, has := f.byName[name]; !has {
			continue
		}
		if found != "" {
			return ""
		}

		found = f.name + "." + name
	}

	return found
}

// maxEdits is the most that a misspelt name differs from the right one; a swap of two letters counts as 2.
const maxEdits = 2

// near reports whether the names differ by at most maxEdits letters that are inserted, deleted
// or replaced, and agree in more than half of the known one.
func near(known, name string) bool {
	apart := len(known) - len(name)
	if max(apart, -apart) > maxEdits || len(known) <= 2*maxEdits {
		return false
	}

	row := make([]int, len(name)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(known) {
		diagonal := row[0]
		row[0] = i + 1

		for j := range len(name) {
			edits := diagonal
			if known[i] != name[j] {
				edits++
			}

			diagonal = row[j+1]
			row[j+1] = min(edits, row[j]+1, row[j+1]+1)
		}
	}

	return row[len(name)] <= maxEdits
}

// missing is the fault of a required field that was not given. It names the one unknown name that
// may stand for it.
func missing(field string, unknown []IgnoredName) *fault {
	name, n := "", 0
	for _, u := range unknown {
		if u.Like == field {
			name = u.Name
			n++
		}
	}

	if n != 1 {
		return faultMissing
	}

	return wrong(
		faultMissing.word,
		"%s; there is %s, which is unknown",
		faultMissing.msg,
		strconv.Quote(name),
	)
}
