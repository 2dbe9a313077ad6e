package site

import "math"

// nearest finds the point nearest to a given one in the convex hull of a slot's set, in
// coordinates divided by their scale (P. Wolfe, Finding the nearest point in a polytope,
// Mathematical Programming 11, 1976).
type nearest struct {
	set    *slotSet
	from   []float64   // the given point
	points [][]float64 // points of the set, less the given point, scaled
	weight []float64
	at     []float64 // the nearest combination so far, less the given point
	oracle []float64
	found  []float64
}

const (
	nearSteps = 40
	near      = 1e-9
)

// search moves at until it is the nearest point, or a number of steps was taken. It returns
// the least value of the linear function at over the set, with the given point as the origin.
func (n *nearest) search() float64 {
	n.points, n.weight = n.points[:0], n.weight[:0]

	for i := range n.at {
		n.at[i] = -n.from[i] / n.set.scale[i]
	}

	n.leastPoint()
	n.addPoint()
	copy(n.at, n.points[0])

	for range nearSteps {
		if n.leastPoint() >= n.length()-near {
			break
		}

		n.addPoint()

		if !n.project() {
			break
		}
	}

	return n.leastPoint()
}

// length returns the square of the distance.
func (n *nearest) length() float64 {
	var sum float64
	for _, x := range n.at {
		sum += x * x
	}

	return sum
}

// leastPoint finds the point of the set that is least in the direction of at.
func (n *nearest) leastPoint() float64 {
	origin := 0.0

	for i, x := range n.at {
		n.oracle[i] = x / n.set.scale[i]
		origin += n.oracle[i] * n.from[i]
	}

	return n.set.least(n.oracle, n.found) - origin
}

// addPoint adds the point that was found.
func (n *nearest) addPoint() {
	p := make([]float64, len(n.from))

	for i, x := range n.found {
		p[i] = (x - n.from[i]) / n.set.scale[i]
	}

	n.points = append(n.points, p)
	n.weight = append(n.weight, 0)

	if len(n.points) == 1 {
		n.weight[0] = 1
	}
}

// project moves at to the nearest combination of the points, and drops the points that it does
// not need.
func (n *nearest) project() bool {
	for range len(n.points) + 1 {
		w := n.affine()

		if w == nil {
			return false
		}

		step := 1.0

		for i, x := range w {
			if x < near && n.weight[i]-x > 0 {
				step = min(step, n.weight[i]/(n.weight[i]-x))
			}
		}

		for i := range w {
			n.weight[i] += step * (w[i] - n.weight[i])
		}

		done := step >= 1
		n.drop(done)
		n.combine()

		if done {
			return true
		}
	}

	return false
}

// drop removes the points with weight 0.
func (n *nearest) drop(done bool) {
	last := 0

	for i, w := range n.weight {
		if !done && w <= near {
			continue
		}

		n.points[last], n.weight[last] = n.points[i], w
		last++
	}

	n.points, n.weight = n.points[:last], n.weight[:last]
}

func (n *nearest) combine() {
	clear(n.at)

	for k, p := range n.points {
		for i, x := range p {
			n.at[i] += n.weight[k] * x
		}
	}
}

// affine returns the weights, of any sign, of the affine combination of the points that is
// nearest to the given point; nil if the points are affinely dependent.
func (n *nearest) affine() []float64 {
	k := len(n.points)
	rows := make([][]float64, k+1)
	rows[k] = make([]float64, k+2)
	rows[k][k+1] = 1

	for i := range k {
		rows[i] = make([]float64, k+2)
		rows[i][k], rows[k][i] = 1, 1

		for j := range k {
			rows[i][j] = dot(n.points[i], n.points[j])
		}
	}

	if !eliminated(rows) {
		return nil
	}

	w := make([]float64, k)

	for i := range w {
		w[i] = rows[i][k+1]
	}

	return w
}

func dot(a, b []float64) float64 {
	var sum float64
	for i, x := range a {
		sum += x * b[i]
	}

	return sum
}

// eliminated solves a system of linear equations in place. Its right side is the last column.
func eliminated(rows [][]float64) bool {
	for c := range rows {
		best := c

		for r := c; r < len(rows); r++ {
			if math.Abs(rows[r][c]) > math.Abs(rows[best][c]) {
				best = r
			}
		}

		if math.Abs(rows[best][c]) < 1e-10 {
			return false
		}

		rows[c], rows[best] = rows[best], rows[c]

		for r := range rows {
			if r == c {
				continue
			}

			f := rows[r][c] / rows[c][c]

			for j := c; f != 0 && j < len(rows[r]); j++ {
				rows[r][j] -= f * rows[c][j]
			}
		}
	}

	for r := range rows {
		rows[r][len(rows)] /= rows[r][r]
	}

	return true
}
