package simplex

// factor is the basis as a product of a lower and an upper triangular matrix, and of what
// has changed since (product form). Everything is by the rows of the programme: the
// variable of a row is the one whose pivot lies there.
type factor struct {
	order []int32   // row of each pivot, first to last
	pivot []float64 // of each row

	lower      sparseVectors // columns below the pivots, of the rows in lowerOf
	upper      sparseVectors // columns above the pivots, in order
	transposed sparseVectors // the same by rows

	lowerOf []int32
	etaOf   []int32
	eta     sparseVectors // columns that entered since
	etaSize []float64

	// What factorising needs.
	rowCount      []int32
	colCount      []int32
	byRow         sparseVectors // basis places of each row's entries
	work          []float64
	hit           []int32 // rows of work that may not be 0
	marked        []bool
	columns       []int32 // places whose column has one row left
	rows          []int32 // rows with one column left
	hasPivotRow   []bool  // rows that have a pivot
	hasPivotPlace []bool  // places of the basis that have one
	rest          []int32
	next          []int32
	basisBefore   []int32 // the variables before, by place
}

// sparseVectors are sparse vectors one after the other: vector k has the entries start[k] to
// start[k+1].
type sparseVectors struct {
	start []int32
	at    []int32
	value []float64
}

func (p *sparseVectors) reset() {
	p.start = append(p.start[:0], 0)
	p.at, p.value = p.at[:0], p.value[:0]
}

func (p *sparseVectors) add(at int32, value float64) {
	p.at, p.value = append(p.at, at), append(p.value, value)
}

func (p *sparseVectors) end() { p.start = append(p.start, int32(len(p.at))) }

// vector is the rows and values of vector k.
func (p *sparseVectors) vector(k int) ([]int32, []float64) {
	from, to := p.start[k], p.start[k+1]

	return p.at[from:to], p.value[from:to]
}

// spread takes x times a sparse vector from v.
func spread(v []float64, x float64, at []int32, value []float64) {
	value = value[:len(at)]
	for e, i := range at {
		v[i] -= x * value[e]
	}
}

// dot is x less the product of v and a sparse vector.
func dot(v []float64, x float64, at []int32, value []float64) float64 {
	value = value[:len(at)]
	for e, i := range at {
		x -= v[i] * value[e]
	}

	return x
}

// ftran solves B x = v in place.
func (f *factor) ftran(v []float64) {
	for k, r := range f.lowerOf {
		if x := v[r]; x != 0 {
			at, value := f.lower.vector(k)
			spread(v, x, at, value)
		}
	}

	for k := len(f.order) - 1; k >= 0; k-- {
		r := f.order[k]
		if v[r] == 0 {
			continue
		}

		x := v[r] / f.pivot[r]
		v[r] = x
		at, value := f.upper.vector(k)
		spread(v, x, at, value)
	}

	for k, r := range f.etaOf {
		if v[r] == 0 {
			continue
		}

		x := v[r] / f.etaSize[k]
		at, value := f.eta.vector(k)
		spread(v, x, at, value)
		v[r] = x
	}
}

// btran solves x B = v in place.
func (f *factor) btran(v []float64) {
	for k := len(f.etaOf) - 1; k >= 0; k-- {
		r := f.etaOf[k]
		at, value := f.eta.vector(k)
		v[r] = dot(v, v[r], at, value) / f.etaSize[k]
	}

	for _, r := range f.order {
		if v[r] == 0 {
			continue
		}

		x := v[r] / f.pivot[r]
		v[r] = x
		at, value := f.transposed.vector(int(r))
		spread(v, x, at, value)
	}

	for k := len(f.lowerOf) - 1; k >= 0; k-- {
		r := f.lowerOf[k]
		at, value := f.lower.vector(k)
		v[r] = dot(v, v[r], at, value)
	}
}

// update has a column, as ftran solved it, enter the basis at row r. list are its nonzeros.
func (f *factor) update(r int, column []float64, list []int32) {
	for _, i := range list {
		if int(i) != r {
			f.eta.add(i, column[i])
		}
	}

	f.eta.end()
	f.etaOf = append(f.etaOf, int32(r))
	f.etaSize = append(f.etaSize, column[r])
}

// heavy reports whether making the factors again takes less than going on with the changes.
func (f *factor) heavy() bool {
	return len(f.eta.at) > 2*len(f.order)+len(f.upper.at)+len(f.lower.at)
}
