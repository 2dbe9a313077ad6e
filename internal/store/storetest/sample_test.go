package storetest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"flexd/internal/store/storetest"
)

// SQLite has every case of a matrix, and PostgreSQL the same ones in each run: of few cases one at least.
func TestEachOf(t *testing.T) {
	t.Setenv("FLEXD_LONG", "")

	for _, long := range []bool{false, true} {
		if long {
			t.Setenv("FLEXD_LONG", "1")
		}

		for of, want := range map[int][]int{1: {0}, 2: {0}, 3: {0}, 8: {0, 3, 6}} {
			matrix := map[string]int{}
			for n := range of {
				matrix[fmt.Sprint("case ", n)] = n
			}

			ran := map[string][]int{}
			t.Run(fmt.Sprint(of, " cases, long: ", long), func(t *testing.T) {
				for name, n := range storetest.InOrder(matrix) {
					t.Run(name, func(t *testing.T) {
						storetest.EachOf(t, func(t *testing.T, url string) {
							engine, _, _ := strings.Cut(url, ":")
							ran[engine] = append(ran[engine], n)
							if storetest.LeftOut(url, n) {
								t.Errorf("case %d is left out of those that share a store", n)
							}
						})
					})
				}
			})

			all := slices.Collect(func(yield func(int) bool) {
				for n := range of {
					if !yield(n) {
						return
					}
				}
			})
			if long {
				want = all
			}

			if !slices.Equal(ran["sqlite"], all) || len(ran["postgres"]) > 0 && !slices.Equal(ran["postgres"], want) {
				t.Errorf("%d cases, long %t: ran %v, and PostgreSQL is to have %v", of, long, ran, want)
			}
		}
	}
}

// Of a history PostgreSQL has a part.
func TestOneOf(t *testing.T) {
	t.Setenv("FLEXD_LONG", "")
	for url, want := range map[string]int{"sqlite:x": 90, "postgres://x": 30} {
		if got := storetest.OneOf(url, 90, 30); got != want {
			t.Errorf("%d of %s, want %d", got, url, want)
		}
	}

	t.Setenv("FLEXD_LONG", "1")
	if got := storetest.OneOf("postgres://x", 90, 30); got != 90 {
		t.Errorf("%d in a long campaign, want the whole", got)
	}
}
