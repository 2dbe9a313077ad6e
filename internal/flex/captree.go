package flex

import (
	"maps"
	"slices"
	"strings"
)

// CapTree is which constraint group each one lies in, by its name: empty for none but the fleet.
type CapTree map[string]string

// Tree is which of the groups lies in which.
func (c *Caps) Tree() CapTree {
	t := make(CapTree, len(c.Groups))
	for i := range c.Groups {
		t[c.Groups[i].Name] = c.Groups[i].Parent
	}

	return t
}

// Path are the names of all caps that bind what lies in a group: the fleet's, which is empty, the group's own, and those of
// the groups around it, outwards.
func (t CapTree) Path(group string) []string {
	path := []string{""}
	for name := group; name != "" && len(path) <= CapDepthMax; name = t[name] {
		path = append(path, name)
	}

	return path
}

// Inside are the names of a group and of all groups that lie in it, in order.
func (t CapTree) Inside(group string) []string {
	names := []string{group}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if name != group && slices.Contains(t.Path(name), group) {
			names = append(names, name)
		}
	}

	return names
}

// CheckNesting refuses groups that lie in one that there is not, in themselves, or in too many.
func (c *Caps) CheckNesting() error {
	tree := c.Tree()
	for i := range c.Groups {
		g := &c.Groups[i]
		if _, known := tree[g.Parent]; g.Parent != "" && !known {
			return Fail(
				Malformed,
				"group %q lies in group %q, which is not among the groups",
				g.Name,
				g.Parent,
			)
		}

		if err := tree.checkPath(g.Name); err != nil {
			return err
		}
	}

	return nil
}

// checkPath refuses a group that lies in itself, or in too many.
func (t CapTree) checkPath(group string) error {
	path := []string{group}
	for name := t[group]; name != ""; name = t[name] {
		around := slices.Contains(path, name)
		path = append(path, name)
		if around {
			return Fail(
				Malformed,
				"a group cannot lie in itself: %s",
				strings.Join(path, " in "),
			)
		}
	}

	if len(path) > CapDepthMax {
		return Fail(
			Malformed,
			"%d groups lie in each other: there may be %d: %s",
			len(path),
			CapDepthMax,
			strings.Join(path, " in "),
		)
	}

	return nil
}
