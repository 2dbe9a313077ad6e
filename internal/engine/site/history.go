package site

// history has the pseudo-costs: how much the division of a column has raised the bound, for
// each unit by which the column had to move.
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

// learn records how much one half has raised the bound. part is above 0 for the lower half,
// and below 0 for the upper one.
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

// rate returns by how much a move of one unit is expected to raise the bound.
func (h *history) rate(side, j int) float64 {
	if n := h.count[side][j]; n > 0 {
		return h.sum[side][j] / float64(n)
	}

	if n := h.cuts[h.kind(j)][side]; n > 0 {
		return h.all[h.kind(j)][side] / float64(n)
	}

	return 1
}

// score returns how promising it is to divide a column.
func (h *history) score(j int, part float64) float64 {
	const least = 1e-4

	return max(least, h.rate(0, j)*part) * max(least, h.rate(1, j)*(1-part))
}

// pair returns how promising it is to set either of two columns to 0. a and b are their
// values, as fractions of their greatest values.
func (h *history) pair(topic int, a, b float64) float64 {
	const least = 1e-4

	return max(least, h.rate(0, topic)) * max(least, h.rate(1, topic)) * min(a, b)
}
