package site

// history is what cutting a column in two has raised the bound by, for each unit that the
// column was from where it was cut to (pseudo-costs).
type history struct {
	sum   [2][]float64 // downward, upward
	count [2][]int
	all   [2][2]float64 // of columns, of pairs
	cuts  [2][2]int
	pairs int // the first number of a pair
}

func (h *history) reset(columns, pairs int) {
	*h = history{pairs: columns}
	for i := range h.sum {
		h.sum[i] = make([]float64, columns+pairs)
		h.count[i] = make([]int, columns+pairs)
	}
}

// kind is 1 for pairs.
func (h *history) kind(j int) int {
	if j >= h.pairs {
		return 1
	}

	return 0
}

// learn adds what one half has raised the bound by. The part is above 0 downward and below
// it upward.
func (h *history) learn(j int, part, gain float64) {
	side := 0

	if part < 0 {
		side, part = 1, -part
	}

	rate := max(0, gain) / part
	h.sum[side][j] += rate
	h.count[side][j]++
	h.all[h.kind(j)][side] += rate
	h.cuts[h.kind(j)][side]++
}

// rate is what a whole step is thought to raise the bound by.
func (h *history) rate(side, j int) float64 {
	if n := h.count[side][j]; n > 0 {
		return h.sum[side][j] / float64(n)
	}

	if n := h.cuts[h.kind(j)][side]; n > 0 {
		return h.all[h.kind(j)][side] / float64(n)
	}

	return 1
}

// score is how promising it is to cut a column in two.
func (h *history) score(j int, part float64) float64 {
	const least = 1e-4

	return max(least, h.rate(0, j)*part) * max(least, h.rate(1, j)*(1-part))
}

// pair is how promising it is to set either of two columns to 0. a and b are their values, as parts of the most they can be.
func (h *history) pair(topic int, a, b float64) float64 {
	const least = 1e-4

	return max(least, h.rate(0, topic)) * max(least, h.rate(1, topic)) * min(a, b)
}
