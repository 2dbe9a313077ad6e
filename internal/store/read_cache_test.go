package store

import (
	"errors"
	"testing"
)

// A transaction that only reads asks once for a record, up to as many as it keeps, and again
// for one that was not found; one that writes asks each time. A list is each caller's own.
func TestOnce(t *testing.T) {
	asked := 0
	ask := func(tx *Tx, i int, err error) {
		t.Helper()
		_, got := readOnce(tx, "number", [16]byte{byte(i), byte(i >> 8)}, func() (int, error) {
			asked++
			return i, err
		})
		if !errors.Is(got, err) {
			t.Fatalf("%v, want %v", got, err)
		}
	}

	reads, writes := &Tx{readCache: map[cacheKey]any{}}, &Tx{}
	for _, test := range []struct {
		name string
		tx   *Tx
		i    int
		err  error
		want int // of two
	}{
		{"a read", reads, 0, nil, 1},
		{"another record", reads, 1, nil, 1},
		{"an error", reads, 2, errors.New("odd"), 2},
		{"a write", writes, 0, nil, 2},
	} {
		asked = 0

		ask(test.tx, test.i, test.err)
		ask(test.tx, test.i, test.err)
		if asked != test.want {
			t.Errorf("%s: asked %d times, want %d", test.name, asked, test.want)
		}
	}

	for i := range readCacheMax { // two are kept already
		ask(reads, 10+i, nil)
	}
	asked = 0
	ask(reads, 10+readCacheMax-3, nil) // the last that is kept
	ask(reads, 10+readCacheMax-2, nil)
	if asked != 1 || len(reads.readCache) != readCacheMax {
		t.Errorf("asked %d times, %d kept", asked, len(reads.readCache))
	}

	clear(reads.readCache)
	list := func() []int {
		l, _ := readListOnce(reads, "list", [16]byte{}, func() ([]int, error) { return []int{1, 2}, nil })
		return l
	}
	list()[0] = 9
	if got := list(); got[0] != 1 {
		t.Errorf("another caller's list: %v", got)
	}
}
