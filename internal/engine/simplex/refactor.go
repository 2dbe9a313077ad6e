package simplex

import (
	"cmp"
	"math"
	"slices"
)

// leastPivot is the least size of a pivot; a column without one would make the basis singular.
const leastPivot = 1e-8

// refactor makes the factors of the basis again, and puts each variable to the row of its
// pivot. One that would make the basis singular leaves it for the logical one of its row.
func (s *Solver) refactor() {
	f := &s.factor
	f.begin(s)
	f.singletons(s)
	f.nucleus(s)

	for r := range f.hasPivotRow {
		if f.hasPivotRow[r] {
			continue
		}
		f.pivot[r] = 1
		f.order = append(f.order, int32(r))
		f.upper.end()
		s.basis[r] = int32(s.columns + r)
		s.savedWeights[s.columns+r] = 1
	}

	f.turn(s.rows)
}

// clear empties what the factors of a basis of n rows are kept in.
func (f *factor) clear(n int) {
	f.order, f.lowerOf = f.order[:0], f.lowerOf[:0]
	f.etaOf, f.etaSize = f.etaOf[:0], f.etaSize[:0]
	f.lower.reset()
	f.upper.reset()
	f.eta.reset()
	f.pivot = zeros(f.pivot, n)
	f.work, f.marked = zeros(f.work, n), zeros(f.marked, n)
	f.rowCount, f.colCount = zeros(f.rowCount, n), zeros(f.colCount, n)
	f.hasPivotRow, f.hasPivotPlace = zeros(f.hasPivotRow, n), zeros(f.hasPivotPlace, n)
}

// begin counts the entries of the basis.
func (f *factor) begin(s *Solver) {
	n := s.rows
	f.clear(n)
	f.basisBefore = append(f.basisBefore[:0], s.basis...)

	f.byRow.start = zeros(f.byRow.start, n+1)
	for p, j := range f.basisBefore {
		rows, _ := s.entries(j)
		f.colCount[p] = int32(len(rows))
		for _, r := range rows {
			f.rowCount[r]++
		}
	}

	sum := int32(0)
	for r, c := range f.rowCount {
		f.byRow.start[r] = sum
		sum += c
	}

	f.byRow.start[n] = sum
	f.byRow.at = zeros(f.byRow.at, int(sum))
	f.fill(s)
}

// fill lists the places of the basis that have an entry in each row.
func (f *factor) fill(s *Solver) {
	next := zeros(f.next, len(f.rowCount))
	copy(next, f.byRow.start)

	for p, j := range f.basisBefore {
		rows, _ := s.entries(j)
		for _, r := range rows {
			f.byRow.at[next[r]] = int32(p)
			next[r]++
		}
	}

	f.next = next
}

// singletons takes pivots from columns with one row left, and from rows with one column
// left, as long as there are any. Nothing is filled in by them.
func (f *factor) singletons(s *Solver) {
	f.columns, f.rows = f.columns[:0], f.rows[:0]
	for p, c := range f.colCount {
		if c == 1 {
			f.columns = append(f.columns, int32(p))
		}
	}

	for r, c := range f.rowCount {
		if c == 1 {
			f.rows = append(f.rows, int32(r))
		}
	}

	for len(f.columns)+len(f.rows) > 0 {
		if n := len(f.columns); n > 0 {
			p := f.columns[n-1]
			f.columns = f.columns[:n-1]
			f.columnSingleton(s, p)
			continue
		}

		n := len(f.rows)
		r := f.rows[n-1]
		f.rows = f.rows[:n-1]
		f.rowSingleton(s, r)
	}
}

// columnSingleton takes the one row that a column has left.
func (f *factor) columnSingleton(s *Solver, p int32) {
	if f.hasPivotPlace[p] || f.colCount[p] != 1 {
		return
	}

	rows, values := s.entries(f.basisBefore[p])
	at := slices.IndexFunc(rows, func(r int32) bool { return !f.hasPivotRow[r] })
	if math.Abs(values[at]) < leastPivot {
		return
	}

	f.addPivot(s, p, rows[at], values[at])
	for i, r := range rows {
		if i != at {
			f.upper.add(r, values[i])
		}
	}

	f.upper.end()
}

// rowSingleton takes the one column that a row has left.
func (f *factor) rowSingleton(s *Solver, r int32) {
	if f.hasPivotRow[r] || f.rowCount[r] != 1 {
		return
	}

	p := int32(-1)
	for e := f.byRow.start[r]; e < f.byRow.start[r+1]; e++ {
		if !f.hasPivotPlace[f.byRow.at[e]] {
			p = f.byRow.at[e]
		}
	}

	rows, values := s.entries(f.basisBefore[p])
	pivot := values[slices.Index(rows, r)]
	if math.Abs(pivot) < leastPivot {
		return
	}

	f.addPivot(s, p, r, pivot)
	below := len(f.lower.at)

	for i, other := range rows {
		switch {
		case other == r:
		case f.hasPivotRow[other]:
			f.upper.add(other, values[i])
		default:
			f.lower.add(other, values[i]/pivot)
			f.rowCount[other]--

			if f.rowCount[other] == 1 {
				f.rows = append(f.rows, other)
			}
		}
	}

	f.upper.end()
	f.below(r, below)
}

// below ends the column below the pivot of a row, if there is anything in it.
func (f *factor) below(r int32, from int) {
	if len(f.lower.at) > from {
		f.lower.end()
		f.lowerOf = append(f.lowerOf, r)
	}
}

// addPivot makes an entry the next pivot.
func (f *factor) addPivot(s *Solver, p, r int32, pivot float64) {
	f.hasPivotPlace[p], f.hasPivotRow[r] = true, true
	f.order = append(f.order, r)
	f.pivot[r] = pivot
	s.basis[r] = f.basisBefore[p]

	for e := f.byRow.start[r]; e < f.byRow.start[r+1]; e++ {
		other := f.byRow.at[e]
		f.colCount[other]--
		if f.colCount[other] == 1 && !f.hasPivotPlace[other] {
			f.columns = append(f.columns, other)
		}
	}
}

// nucleus takes the pivots of what is left, sparse columns first.
func (f *factor) nucleus(s *Solver) {
	f.rest = f.rest[:0]
	for p, done := range f.hasPivotPlace {
		if !done {
			f.rest = append(f.rest, int32(p))
		}
	}

	slices.SortFunc(f.rest, func(a, b int32) int {
		return cmp.Or(int(f.colCount[a]-f.colCount[b]), int(a-b))
	})

	first := len(f.lowerOf)
	for _, p := range f.rest {
		rows, values := s.entries(f.basisBefore[p])
		f.hit = f.hit[:0]
		for i, r := range rows {
			f.spread(r, values[i])
		}

		f.eliminate(first)
		f.choose(s, p)
	}
}

// spread adds to an entry of the column in work.
func (f *factor) spread(r int32, x float64) {
	if !f.marked[r] {
		f.marked[r] = true
		f.hit = append(f.hit, r)
	}
	f.work[r] += x
}

// eliminate takes from the column in work what lies in the rows of earlier pivots.
func (f *factor) eliminate(first int) {
	for k := first; k < len(f.lowerOf); k++ {
		x := f.work[f.lowerOf[k]]
		if x == 0 {
			continue
		}

		for e := f.lower.start[k]; e < f.lower.start[k+1]; e++ {
			f.spread(f.lower.at[e], -x*f.lower.value[e])
		}
	}
}

// choose takes the pivot of the column in work: of the rows in which it is large enough the
// one with the fewest entries.
func (f *factor) choose(s *Solver, p int32) {
	const share = 0.1
	most := 0.0
	for _, r := range f.hit {
		if !f.hasPivotRow[r] {
			most = max(most, math.Abs(f.work[r]))
		}
	}

	best := int32(-1)
	for _, r := range f.hit {
		if f.hasPivotRow[r] || math.Abs(f.work[r]) < share*most {
			continue
		}
		if best < 0 || f.rowCount[r] < f.rowCount[best] {
			best = r
		}
	}

	if most < leastPivot {
		best = -1
	}

	f.store(s, p, best)
}

// store keeps the column in work with its pivot in row r, if there is one, and clears work.
func (f *factor) store(s *Solver, p, r int32) {
	pivot, below := 1.0, len(f.lower.at)
	if r >= 0 {
		pivot = f.work[r]
	}

	for _, i := range f.hit {
		x := f.work[i]
		f.work[i], f.marked[i] = 0, false

		switch {
		case r < 0 || i == r || math.Abs(x) < tiny:
		case f.hasPivotRow[i]:
			f.upper.add(i, x)
		default:
			f.lower.add(i, x/pivot)
		}
	}

	if r < 0 {
		return
	}

	f.hasPivotPlace[p], f.hasPivotRow[r] = true, true
	f.order = append(f.order, r)
	f.pivot[r] = pivot
	s.basis[r] = f.basisBefore[p]
	f.upper.end()
	f.below(r, below)
}

// turn writes the columns above the pivots down by rows.
func (f *factor) turn(n int) {
	count := zeros(f.transposed.start, n+1)
	for _, r := range f.upper.at {
		count[r+1]++
	}

	for r := range n {
		count[r+1] += count[r]
	}

	f.transposed.start = count
	f.transposed.at = zeros(f.transposed.at, len(f.upper.at))
	f.transposed.value = zeros(f.transposed.value, len(f.upper.at))
	next := zeros(f.next, n)
	copy(next, count)

	for k, r := range f.order {
		for e := f.upper.start[k]; e < f.upper.start[k+1]; e++ {
			to := next[f.upper.at[e]]
			f.transposed.at[to], f.transposed.value[to] = r, f.upper.value[e]
			next[f.upper.at[e]]++
		}
	}

	f.next = next
}
