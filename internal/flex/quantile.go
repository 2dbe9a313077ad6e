package flex

import "cmp"

// Quantile returns the value that so many of a hundred are not above, of sorted values; zero of
// none.
func Quantile[N cmp.Ordered](sorted []N, percent int) N {
	var v N
	if len(sorted) == 0 {
		return v
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}
