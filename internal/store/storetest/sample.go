package storetest

import (
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// everyCase is how many cases of a matrix there are for each that PostgreSQL has, where SQLite has all of them.
const everyCase = 3

// long reports whether every case of a matrix is tried on both engines, as `make long` has it.
func long() bool { return os.Getenv("FLEXD_LONG") != "" }

// EachOf is EachURL for a case of a matrix, in a test of its own: the cases differ in what Go decides and not in their
// statements, so PostgreSQL has the first that is run, and each third after it. With FLEXD_LONG it has all.
func EachOf(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()

	if long() || sampled(t.Name()) {
		EachURL(t, test)
		return
	}

	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
}

// LeftOut reports whether a case of a matrix, by its number from 0, is left out on an engine, which its name or a url says. It is EachOf
// for cases that share a store.
func LeftOut(engine string, number int) bool {
	return !long() && number%everyCase != 0 && !strings.HasPrefix(engine, "sqlite")
}

// OneOf returns how much of a long history an engine plays: SQLite the whole, and PostgreSQL, which takes several times
// as long for it, a part. With FLEXD_LONG both play the whole.
func OneOf(engine string, whole, part int) int {
	if long() || strings.HasPrefix(engine, "sqlite") {
		return whole
	}
	return part
}

// InOrder goes through a map in the order of its keys, so that a sample of its cases is the same each time.
func InOrder[V any](cases map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			if !yield(name, cases[name]) {
				return
			}
		}
	}
}

// tried is how many cases each matrix has run, by the name of its test.
var tried struct {
	sync.Mutex
	cases map[string]int
}

// sampled counts a case by its test's name, and reports whether PostgreSQL has it.
func sampled(name string) bool {
	matrix := name[:max(0, strings.LastIndexByte(name, '/'))]

	tried.Lock()
	defer tried.Unlock()

	if tried.cases == nil {
		tried.cases = map[string]int{}
	}

	n := tried.cases[matrix]
	tried.cases[matrix]++

	return n%everyCase == 0
}
