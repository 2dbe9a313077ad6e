package simplex

import "slices"

// Status is how a solution ended.
type Status int

// The ways to end.
const (
	Optimal    Status = iota
	Infeasible        // no x keeps all rows and bounds
	Cutoff            // the objective is above the limit that was given
	Exhausted         // the pivots allowed were used
)

// Tolerances. Problems are scaled so that numbers lie around one.
const (
	feasible  = 1e-9  // by which a bound may be missed
	leastTurn = 1e-9  // entries of a pivot row below it are rounding
	leastStep = 1e-7  // no pivot is smaller
	tiny      = 1e-14 // entries of a solution below it are dropped
	rebuildAt = 64    // pivots after which the factors are made again
	doubtful  = 1e-5  // a smaller part of a miss that nothing can mend may be rounding
)

// Solver holds a programme and the state of its last solution. Its zero value is an empty
// programme; Reset makes it empty again and keeps the memory.
type Solver struct {
	rows, columns int // columns without the logical ones

	// The matrix as it was given; by columns and by rows once the programme is complete.
	triplets []triplet
	start    []int32
	rowOf    []int32
	valOf    []float64
	across   [][]entry

	cost      []float64
	lower     []float64
	upper     []float64
	right     []float64
	perturbed []float64 // the costs that are solved for
	scale     float64   // of the perturbation

	basis        []int32 // variable of each row; rows above columns are logical
	place        []int32 // row of each variable, or -1
	value        []float64
	reduced      []float64
	weight       []float64
	miss         []float64 // of each row, the square of what its variable misses its bounds by
	first        []int32   // what rows began with
	savedWeights []float64 // weight of each variable, while the basis is rearranged
	factor       factor
	shift        []float64 // what bounds moved since, per row of the right side
	shifted      []int32

	pivotRow  []float64
	rowList   []int32
	pivotCol  []float64
	colList   []int32
	touched   []int32
	mark      []bool
	alpha     []float64
	breaks    []candidate
	objective float64
	slope     float64 // of the objective in the step that is taken
	residual  float64 // of what the last row misses, the part that no variable outside the basis can mend
	ray       float64 // sign of the pivot row as multipliers of the rows
	Pivots    int     // in all, since Reset
	since     int     // pivots since the factors were made
}

type triplet struct {
	column int32
	row    int32
	value  float64
}

type entry struct {
	column int32
	value  float64
}

type candidate struct {
	column int32
	ratio  float64
	size   float64
}

// Reset empties the programme.
func (s *Solver) Reset() {
	s.rows, s.columns = 0, 0
	s.triplets = s.triplets[:0]
	s.scale = 1
	s.cost, s.right = s.cost[:0], s.right[:0]
	s.lower, s.upper = s.lower[:0], s.upper[:0]
	s.Pivots = 0
}

// AddRow adds a row and returns its number. All rows come before Start.
func (s *Solver) AddRow(right float64) int {
	s.right = append(s.right, right)
	s.rows++
	return s.rows - 1
}

// AddColumn adds a variable and returns its number.
func (s *Solver) AddColumn(cost, lower, upper float64) int {
	s.cost = append(s.cost, cost)
	s.lower = append(s.lower, lower)
	s.upper = append(s.upper, max(lower, upper))

	s.columns++

	return s.columns - 1
}

// AddEntry adds an entry of the matrix.
func (s *Solver) AddEntry(column, row int, value float64) {
	if value != 0 {
		s.triplets = append(s.triplets, triplet{int32(column), int32(row), value})
	}
}

// Widest lowers the upper bound of a variable before Start.
func (s *Solver) Widest(j int, upper float64) {
	s.upper[j] = min(s.upper[j], upper)
}

// zeros returns a slice of n zeros, in the old memory if it is large enough.
func zeros[T any](old []T, n int) []T {
	if cap(old) < n {
		return make([]T, n, n+n/2)
	}
	old = old[:n]
	clear(old)

	return old
}

// Start completes the programme: crash[i] is the variable that row i begins with in the
// basis, or -1 for its logical one.
func (s *Solver) Start(crash []int) {
	for range s.rows {
		s.lower = append(s.lower, 0)
		s.upper = append(s.upper, 0)
		s.cost = append(s.cost, 0)
	}

	s.arrange()
	s.transpose()
	s.perturb()
	s.allocate()

	for j := range s.place {
		s.place[j] = -1
	}

	for i := range s.rows {
		s.weight[i] = 1
		s.basis[i] = int32(s.columns + i)
		if crash[i] >= 0 {
			s.basis[i] = int32(crash[i])
		}
	}

	s.first = append(s.first[:0], s.basis...)

	s.rebuild()
}

// Basis appends the variables of the basis below a number.
func (s *Solver) Basis(to []int32, below int) []int32 {
	for _, j := range s.basis {
		if int(j) < below {
			to = append(to, j)
		}
	}

	return to
}

// Restart begins from a basis that has the given variables and, where it has places left, those
// that rows began with from the last row up.
func (s *Solver) Restart(with []int32) {
	for i, j := range s.basis {
		s.place[j] = -1
		s.weight[i] = 1
	}

	free := s.rows - len(with)
	next := append([]int32(nil), with...)

	for i := s.rows - 1; i >= 0 && free > 0; i-- {
		if j := s.first[i]; !slices.Contains(next, j) {
			next = append(next, j)
			free--
		}
	}

	copy(s.basis, next)
	s.rebuild()
}

// allocate allocates the state.
func (s *Solver) allocate() {
	all := s.columns + s.rows
	s.basis, s.place = zeros(s.basis, s.rows), zeros(s.place, all)
	s.value, s.reduced = zeros(s.value, all), zeros(s.reduced, all)
	s.weight, s.savedWeights = zeros(s.weight, s.rows), zeros(s.savedWeights, all)
	s.miss = zeros(s.miss, s.rows)
	s.shift, s.shifted = zeros(s.shift, s.rows), s.shifted[:0]

	s.pivotRow, s.pivotCol = zeros(s.pivotRow, s.rows), zeros(s.pivotCol, s.rows)
	s.alpha, s.mark = zeros(s.alpha, all), zeros(s.mark, all)
}

// arrange writes the matrix down by columns.
func (s *Solver) arrange() {
	all := len(s.triplets) + s.rows
	s.start = zeros(s.start, s.columns+s.rows+1)
	s.rowOf, s.valOf = zeros(s.rowOf, all), zeros(s.valOf, all)
	for _, e := range s.triplets {
		s.start[e.column+1]++
	}

	for j := range s.columns {
		s.start[j+1] += s.start[j]
	}

	// Filling moves each start to the next one's; they are moved back afterwards.
	for _, e := range s.triplets {
		at := s.start[e.column]
		s.rowOf[at], s.valOf[at] = e.row, e.value
		s.start[e.column]++
	}

	copy(s.start[1:], s.start[:s.columns])
	s.start[0] = 0

	for i := range s.rows {
		at := len(s.triplets) + i
		s.rowOf[at], s.valOf[at] = int32(i), 1
		s.start[s.columns+i+1] = int32(at + 1)
	}
}

// entries are the rows and values of a variable's column.
func (s *Solver) entries(j int32) ([]int32, []float64) {
	from, to := s.start[j], s.start[j+1]
	return s.rowOf[from:to], s.valOf[from:to]
}

// transpose writes the matrix down by rows.
func (s *Solver) transpose() {
	if cap(s.across) < s.rows {
		s.across = make([][]entry, s.rows, s.rows+s.rows/2)
	}

	s.across = s.across[:s.rows]
	for i := range s.across {
		s.across[i] = s.across[i][:0]
	}

	for j := range s.columns {
		for k := s.start[j]; k < s.start[j+1]; k++ {
			i := s.rowOf[k]
			s.across[i] = append(s.across[i], entry{int32(j), s.valOf[k]})
		}
	}
}

// Perturbation is by how much the perturbed costs can raise an objective, for each column.
const Perturbation = 1.5 * perturbation

// perturbation of the costs, far below what counts. Equal prices would otherwise leave the
// dual simplex method long ways without progress. It grows with the column, so that of two
// equal slots the earlier one is taken.
const perturbation = 2e-8

func (s *Solver) perturb() {
	s.perturbed = zeros(s.perturbed, s.columns+s.rows)
	copy(s.perturbed, s.cost)

	spread := uint32(1)

	for j := range s.columns {
		spread = spread*1664525 + 1013904223
		by := perturbation * (float64(j)/float64(s.columns) +
			0.5*float64(spread>>8)/(1<<24))
		s.perturbed[j] += s.scale * by / max(1, s.upper[j]-s.lower[j])
	}
}

// column writes what the column of a variable is in the basis.
func (s *Solver) column(j int32, to []float64) {
	clear(to)
	rows, values := s.entries(j)
	for i, r := range rows {
		to[r] = values[i]
	}
	s.factor.ftran(to)
}

// rebuild makes the factors of the basis again, and all that follows from it.
func (s *Solver) rebuild() {
	for i, j := range s.basis {
		s.savedWeights[j] = s.weight[i]
		s.place[j] = -1
	}

	s.refactor()

	for i, j := range s.basis {
		s.weight[i] = s.savedWeights[j]
		s.place[j] = int32(i)
	}

	s.since = 0
	s.restate()
}

// restate works out reduced costs, bounds at which variables stand, and values.
func (s *Solver) restate() {
	for j := range s.reduced {
		s.reduced[j] = s.perturbed[j]
	}

	s.multipliers()
	for k, y := range s.pivotRow {
		s.reduced[s.columns+k] -= y

		if y != 0 {
			for _, e := range s.across[k] {
				s.reduced[e.column] -= y * e.value
			}
		}
	}

	for j := range s.reduced {
		if s.place[j] >= 0 {
			s.reduced[j] = 0
			continue
		}

		s.value[j] = s.lower[j]
		if s.reduced[j] < 0 {
			s.value[j] = s.upper[j]
		}
	}

	s.revalue()
}

// multipliers works out those of the rows into pivotRow.
func (s *Solver) multipliers() {
	for i, j := range s.basis {
		s.pivotRow[i] = s.perturbed[j]
	}
	s.factor.btran(s.pivotRow)
}

// revalue works out the values of the basis from those outside it.
func (s *Solver) revalue() {
	leaving := s.pivotRow
	copy(leaving, s.right)

	for j := range s.columns {
		if s.place[j] >= 0 || s.value[j] == 0 {
			continue
		}

		for k := s.start[j]; k < s.start[j+1]; k++ {
			leaving[s.rowOf[k]] -= s.valOf[k] * s.value[j]
		}
	}

	s.factor.ftran(leaving)

	s.objective = 0
	for i, j := range s.basis {
		s.value[j] = leaving[i]
	}

	for j := range s.columns {
		s.objective += s.perturbed[j] * s.value[j]
	}

	clear(s.shift)
	s.shifted = s.shifted[:0]

	for i := range s.basis {
		s.measure(i)
	}
}

// measure notes what the variable of a row misses its bounds by.
func (s *Solver) measure(i int) {
	j := s.basis[i]
	v := s.value[j]
	by := max(s.lower[j]-v, v-s.upper[j])
	s.miss[i] = 0

	if by > feasible {
		s.miss[i] = by * by
	}
}

// SetBounds changes the bounds of a variable. The next Solve starts from where it is.
func (s *Solver) SetBounds(j int, lower, upper float64) {
	if s.lower[j] == lower && s.upper[j] == upper {
		return
	}

	s.lower[j], s.upper[j] = lower, upper
	if row := s.place[j]; row >= 0 {
		s.measure(int(row))

		return
	}

	to := lower
	if s.reduced[j] < 0 {
		to = upper
	}

	s.move(j, to)
}

// move takes a variable outside the basis to another value. The basis follows in apply.
func (s *Solver) move(j int, to float64) {
	by := to - s.value[j]
	if by == 0 {
		return
	}

	s.value[j] = to
	s.objective += s.reduced[j] * by

	for k := s.start[j]; k < s.start[j+1]; k++ {
		i := s.rowOf[k]
		if s.shift[i] == 0 {
			s.shifted = append(s.shifted, i)
		}
		s.shift[i] += s.valOf[k] * by
	}
}

// apply has the basis follow what moved outside it.
func (s *Solver) apply() {
	if len(s.shifted) == 0 {
		return
	}

	s.factor.ftran(s.shift)
	for i, v := range s.shift {
		if v != 0 {
			s.value[s.basis[i]] -= v
			s.shift[i] = 0
			s.measure(i)
		}
	}

	s.shifted = s.shifted[:0]
}

// Value is the value of a variable in the last solution.
func (s *Solver) Value(j int) float64 { return s.value[j] }

// Reduced is the reduced cost of a variable in the last solution.
func (s *Solver) Reduced(j int) float64 { return s.reduced[j] }

// Lower is the lower bound of a variable as it is now.
func (s *Solver) Lower(j int) float64 { return s.lower[j] }

// Upper is the upper bound of a variable as it is now.
func (s *Solver) Upper(j int) float64 { return s.upper[j] }

// Columns is the number of variables that were added.
func (s *Solver) Columns() int { return s.columns }

// Rows is the number of rows.
func (s *Solver) Rows() int { return s.rows }

// Objective is the cost of the last solution, by the perturbed costs.
func (s *Solver) Objective() float64 { return s.objective }

// Bound is what no x within rows and bounds costs less than, proven by the multipliers of the
// last basis and the exact costs.
func (s *Solver) Bound() float64 {
	bound := 0.0
	reduced := s.alpha
	copy(reduced[:s.columns], s.cost[:s.columns])

	s.multipliers()
	for k, y := range s.pivotRow {
		if y == 0 {
			continue
		}

		bound += y * s.right[k]

		for _, e := range s.across[k] {
			reduced[e.column] -= y * e.value
		}
	}

	for j := range s.columns {
		d := reduced[j]
		if d > 0 {
			bound += d * s.lower[j]
		} else {
			bound += d * s.upper[j]
		}

		reduced[j] = 0
	}

	return bound
}

// Multipliers are those of the rows by the last basis and the given costs of the columns, or by the perturbed ones where
// none are given.
func (s *Solver) Multipliers(cost []float64) []float64 {
	if cost == nil {
		cost = s.perturbed
	}

	clear(s.pivotRow)
	for i, j := range s.basis {
		if int(j) < len(cost) {
			s.pivotRow[i] = cost[j]
		}
	}

	s.factor.btran(s.pivotRow)

	return slices.Clone(s.pivotRow)
}

// Ray are the multipliers of the rows that show that there is no solution, after Solve found none: with costs of zero
// their bound is above zero.
func (s *Solver) Ray() []float64 {
	ray := slices.Clone(s.pivotRow)
	for i := range ray {
		ray[i] *= s.ray
	}

	return ray
}

// Cost is the cost of a variable.
func (s *Solver) Cost(j int) float64 { return s.cost[j] }

// Slack is what perturbation can raise an objective by.
func (s *Solver) Slack() float64 {
	return Perturbation * s.scale * float64(s.columns)
}

// SetCosts replaces the costs of all variables, and scales the perturbation to them. The
// next Solve starts from the same basis.
func (s *Solver) SetCosts(cost []float64, scale float64) {
	s.scale = scale
	copy(s.cost, cost)
	s.perturb()
	s.restate()
}
