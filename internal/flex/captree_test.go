package flex

import (
	"slices"
	"strings"
	"testing"
)

// nestedCaps are groups that lie in each other, given as "group in group".
func nestedCaps(lines ...string) *Caps {
	var c Caps
	for _, line := range lines {
		name, parent, _ := strings.Cut(line, " in ")
		c.Groups = append(c.Groups, CapGroup{Name: name, Parent: parent})
	}

	return &c
}

// TestCaps_Nesting checks what groups may lie in, to the edge of what is allowed.
func TestCaps_Nesting(t *testing.T) {
	for _, c := range []struct{ says, groups string }{
		{"", "a"},
		{"", "b in a,a"},
		{"", "d in c,c in b,b in a,a"}, // as deep as may be
		{"", "x in a,y in a,a"},
		{"there may be 4: e in d in c in b in a", "e in d,d in c,c in b,b in a,a"},
		{`group "b" lies in group "a", which is not among`, "b in a"},
		{"cannot lie in itself: a in a", "a in a"},
		{"cannot lie in itself: a in b in a", "a in b,b in a"},
		{"cannot lie in itself: x in a in b in c in a", "x in a,a in b,b in c,c in a"},
	} {
		err := nestedCaps(strings.Split(c.groups, ",")...).Check()
		if c.says == "" && err != nil || c.says != "" && (KindOf(err) != Malformed || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", c.groups, err, c.says)
		}
	}
}

// TestCapTree finds what binds a group, and what lies in it.
func TestCapTree(t *testing.T) {
	tree := nestedCaps("feeder in substation", "street in feeder", "substation", "yard in substation", "other").Tree()
	for _, c := range []struct{ group, path, inside string }{
		{"", "", ""},
		{"other", ",other", "other"},
		{"street", ",street,feeder,substation", "street"},
		{"feeder", ",feeder,substation", "feeder,street"},
		{"substation", ",substation", "substation,feeder,street,yard"},
		{"unknown", ",unknown", "unknown"},
	} {
		if got := strings.Join(tree.Path(c.group), ","); got != c.path {
			t.Errorf("%q is bound by %q, not %q", c.group, got, c.path)
		}
		if got := tree.Inside(c.group); c.group != "" && !slices.Equal(got, strings.Split(c.inside, ",")) {
			t.Errorf("in %q lie %q, not %q", c.group, got, c.inside)
		}
	}

	if n := len(nestedCaps("a in b", "b in a").Tree().Path("a")); n > CapDepthMax+1 {
		t.Errorf("a circle has a path of %d", n)
	}
}
