package control

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestGranted holds what is granted of what is asked for against budgets: all where all can be had, nothing more could be added to
// what is granted if there were tries enough, the last question that was answered by yes is what is granted, and the tries are kept.
func TestGranted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for range 2000 {
		asks := make([]int, r.IntN(20))
		for i := range asks {
			asks[i] = 1 + r.IntN(9)
		}
		budget, tries := r.IntN(80), 1+r.IntN(60)

		sum := func(some []int) (s int) {
			for _, v := range some {
				s += v
			}
			return s
		}

		var asked int
		var last []int
		got, err := largestPossible(asks, tries, func(some []int) (bool, error) {
			asked++
			if sum(some) > budget {
				return false, nil
			}
			last = some
			return true, nil
		})

		if err != nil || asked > tries || sum(got) > budget || !slices.Equal(got, last) {
			t.Fatalf("%v of %v within %d in %d of %d tries: %v, last %v", got, asks, budget, asked, tries, err, last)
		}
		if sum(asks) <= budget && !slices.Equal(got, asks) {
			t.Fatalf("%v of %v within %d", got, asks, budget)
		}
		if asked < tries && len(got) < len(asks) {
			left := slices.Clone(asks)

			for _, v := range got {
				left = slices.Delete(left, slices.Index(left, v), slices.Index(left, v)+1)
			}
			if sum(got)+slices.Min(left) <= budget {
				t.Fatalf("%v of %v within %d: %v is left", got, asks, budget, left)
			}
		}
	}

	broken := errors.New("broken")
	if _, err := largestPossible([]int{1, 2}, 9, func([]int) (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}
