package simplex

import (
	"math"
	"slices"
)

// Solve finds the optimum under the bounds as they are now. It gives up when the objective
// passes cutoff or after the given number of pivots.
func (s *Solver) Solve(cutoff float64, pivots int) Status {
	s.apply()

	for range pivots {
		if s.objective > cutoff {
			return Cutoff
		}

		if s.since >= rebuildAt || s.factor.heavy() {
			s.rebuild()
		}

		r := s.leaving()
		if r < 0 {
			if s.isVerified() {
				return Optimal
			}
			continue
		}

		if !s.pivot(r) {
			if s.since > 0 && s.residual < doubtful {
				// what looks infeasible is tried once more on an exact inverse
				s.rebuild()
				continue
			}
			return Infeasible
		}
	}

	return Exhausted
}

// isVerified reports whether the values keep the rows; if not, the inverse is made again.
func (s *Solver) isVerified() bool {
	if s.since == 0 {
		return true
	}

	worst := 0.0
	for i, row := range s.across {
		sum := -s.right[i]
		for _, e := range row {
			sum += e.value * s.value[e.column]
		}
		worst = max(worst, math.Abs(sum))
	}

	if worst <= 10*feasible {
		return true
	}

	s.rebuild()

	return false
}

// leaving is the row whose variable misses its bounds most, for its weight, or -1.
func (s *Solver) leaving() int {
	best, most := -1, 0.0
	for i, miss := range s.miss {
		if miss == 0 {
			continue
		}

		if score := miss / s.weight[i]; score > most {
			best, most = i, score
		}
	}

	return best
}

// pivot takes the variable of row r out of the basis. It is false if nothing can come in:
// the row shows that there is no solution.
func (s *Solver) pivot(r int) bool {
	out := s.basis[r]
	target, direction := s.lower[out], -1.0

	if s.value[out] > s.upper[out] {
		target, direction = s.upper[out], 1.0
	}

	s.gatherRow(r)
	s.price(direction)

	in := s.entering(math.Abs(s.value[out] - target))
	if in < 0 {
		s.ray = direction
		s.forget()
		return false
	}

	s.apply() // of what was flipped
	s.column(in, s.pivotCol)
	s.gatherColumn()

	s.stepReduced(in, out)
	s.stepValues(r, in, target)
	s.reweigh(r)
	s.exchange(r, int(in))
	s.Pivots++
	s.since++

	return true
}

// stepReduced takes the step in the reduced costs that makes that of the entering variable
// zero. What it was is the slope of the objective in the step that follows.
func (s *Solver) stepReduced(in, out int32) {
	theta := s.reduced[in] / s.alpha[in]

	s.slope = s.reduced[in]
	for _, j := range s.touched {
		s.reduced[j] -= theta * s.alpha[j]
	}

	s.reduced[in] = 0
	s.reduced[out] = -theta
	s.forget()
}

// stepValues takes the step in the values that brings the leaving variable to its bound.
func (s *Solver) stepValues(r int, in int32, target float64) {
	out := s.basis[r]
	step := (s.value[out] - target) / s.pivotCol[r]

	for _, i := range s.colList {
		s.value[s.basis[i]] -= step * s.pivotCol[i]
		s.measure(int(i))
	}

	s.value[out] = target
	s.value[in] += step
	s.objective += s.slope * step
}

// gatherRow works out row r of the inverse with the list of its nonzeros.
func (s *Solver) gatherRow(r int) {
	clear(s.pivotRow)
	s.pivotRow[r] = 1
	s.factor.btran(s.pivotRow)

	s.rowList = s.rowList[:0]
	for k, v := range s.pivotRow {
		if v < tiny && v > -tiny {
			s.pivotRow[k] = 0
			continue
		}
		s.rowList = append(s.rowList, int32(k))
	}
}

// gatherColumn lists the nonzeros of the entering column.
func (s *Solver) gatherColumn() {
	s.colList = s.colList[:0]
	for i, v := range s.pivotCol {
		if v <= tiny && v >= -tiny {
			s.pivotCol[i] = 0
			continue
		}
		s.colList = append(s.colList, int32(i))
	}
}

// price works out the entries of the pivot row, and lists those that may enter.
func (s *Solver) price(direction float64) {
	s.touched, s.breaks = s.touched[:0], s.breaks[:0]
	for _, k := range s.rowList {
		v := s.pivotRow[k]
		for _, e := range s.across[k] {
			if s.place[e.column] >= 0 {
				continue
			}

			if !s.mark[e.column] {
				s.mark[e.column] = true
				s.touched = append(s.touched, e.column)
			}

			s.alpha[e.column] += v * e.value
		}
	}

	for _, j := range s.touched {
		if s.lower[j] == s.upper[j] {
			continue
		}

		a := direction * s.alpha[j]
		if s.value[j] == s.upper[j] {
			a = -a
		}

		if a > leastTurn {
			ratio := math.Abs(s.reduced[j]) / a
			s.breaks = append(s.breaks, candidate{j, ratio, a})
		}
	}
}

// entering is the bound flipping ratio test: variables whose whole range does not mend the
// row are taken to their other bound, the next one enters. It is -1 if none is left; what none of them mends
// is noted then.
func (s *Solver) entering(miss float64) int32 {
	const scanLimit = 8 // steps in which looking for the next one takes less than sorting
	sorted := false

	for i := 0; i < len(s.breaks); i++ {
		if i < scanLimit {
			swapEarliestFirst(s.breaks[i:])
		} else if !sorted {
			slices.SortFunc(s.breaks[i:], earlier)
			sorted = true
		}

		c := s.breaks[i]
		span := c.size * (s.upper[c.column] - s.lower[c.column])
		if span < miss-feasible {
			miss -= span
			continue
		}

		if c.size < leastStep {
			slices.SortFunc(s.breaks[i:], earlier)
			i = s.larger(i)
		}

		for _, flip := range s.breaks[:i] {
			s.flip(flip.column)
		}

		return s.breaks[i].column
	}

	s.residual = miss

	return -1
}

// earlier compares candidates by their ratio.
func earlier(a, b candidate) int {
	if a.ratio < b.ratio {
		return -1
	}

	if a.ratio > b.ratio {
		return 1
	}

	return int(a.column - b.column)
}

// swapEarliestFirst exchanges the first of some candidates for the earliest one.
func swapEarliestFirst(all []candidate) {
	at := 0
	for i := 1; i < len(all); i++ {
		if all[i].ratio < all[at].ratio || all[i].ratio == all[at].ratio && all[i].column < all[at].column {
			at = i
		}
	}

	all[0], all[at] = all[at], all[0]
}

// larger exchanges a pivot that is too small for a larger one of nearly the same ratio, or
// an earlier one.
func (s *Solver) larger(i int) int {
	for k := i + 1; k < len(s.breaks) && s.breaks[k].ratio < s.breaks[i].ratio+1e-9; k++ {
		if s.breaks[k].size >= leastStep {
			s.breaks[i], s.breaks[k] = s.breaks[k], s.breaks[i]
			return i
		}
	}

	for k := i - 1; k >= 0; k-- {
		if s.breaks[k].size >= leastStep {
			return k
		}
	}

	return i
}

// flip takes a variable to its other bound.
func (s *Solver) flip(j int32) {
	to := s.lower[j]
	if s.value[j] == s.lower[j] {
		to = s.upper[j]
	}
	s.move(int(j), to)
}

// forget clears the pivot row.
func (s *Solver) forget() {
	for _, j := range s.touched {
		s.alpha[j] = 0
		s.mark[j] = false
	}
}

// reweigh updates the weights, the squares of the lengths of the rows of the inverse, for a
// pivot in row r, whose row is gathered.
func (s *Solver) reweigh(r int) {
	const least = 1e-4
	own := 0.0
	for _, k := range s.rowList {
		own += s.pivotRow[k] * s.pivotRow[k]
	}

	s.factor.ftran(s.pivotRow)
	pivot := s.pivotCol[r]

	for _, i := range s.colList {
		ratio := s.pivotCol[i] / pivot
		w := s.weight[i] + ratio*(ratio*own-2*s.pivotRow[i])
		s.weight[i] = max(w, least, ratio*ratio*least)
	}

	s.weight[r] = max(own/(pivot*pivot), least)
}

// exchange puts a variable, whose column is gathered, into the basis at row r.
func (s *Solver) exchange(r, in int) {
	s.factor.update(r, s.pivotCol, s.colList)
	s.place[s.basis[r]] = -1
	s.basis[r] = int32(in)
	s.place[in] = int32(r)
	s.measure(r)
}
