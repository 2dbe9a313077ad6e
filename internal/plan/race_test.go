//go:build race

package plan

// Raced says that the race detector is on, under which arithmetic takes ten to twenty
// times as long: tests then look at less of the same. The plain run of this package, which
// "make test" has too, looks at all.
const Raced = true
