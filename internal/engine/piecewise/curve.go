package piecewise

import (
	"math"

	"flexd/internal/engine/buffer"
)

// Curve is a continuous piecewise linear function on [x[0], x[len-1]], convex or not.
type Curve struct{ X, V []float64 }

// Two points of a curve closer than SameX are one, and a point within sameV of the line
// through its neighbours, or within what rounding makes of values that large, is left out.
const (
	SameX    = 1e-11
	sameV    = 1e-9
	rounding = 1e-13
)

// Reset takes all points away, and keeps their memory.
func (c *Curve) Reset() { c.X, c.V = c.X[:0], c.V[:0] }

// Put appends a point to the right.
func (c *Curve) Put(x, v float64) {
	n := len(c.X)
	if n > 0 && x-c.X[n-1] < SameX {
		c.V[n-1] = min(v, c.V[n-1])
		return
	}

	if n > 1 {
		run, rise := c.X[n-1]-c.X[n-2], c.V[n-1]-c.V[n-2]
		if math.Abs(
			rise*(x-c.X[n-2])-(v-c.V[n-2])*run,
		) <= (sameV+rounding*math.Abs(v))*(x-c.X[n-2]) {
			c.X[n-1], c.V[n-1] = x, v
			return
		}
	}

	c.X, c.V = append(c.X, x), append(c.V, v)
}

// At returns the value at x, which lies in or after the segment that begins at point i,
// and that segment. Outside the curve the value is infinite.
func (c *Curve) At(i int, x float64) (float64, int) {
	n := len(c.X)
	for i+1 < n-1 && c.X[i+1] < x {
		i++
	}

	if x < c.X[0]-SameX || x > c.X[n-1]+SameX {
		return math.Inf(1), i
	}

	if n == 1 || x <= c.X[i] {
		return c.V[i], i
	}

	if x >= c.X[n-1] {
		return c.V[n-1], i
	}

	return c.V[i] + (c.V[i+1]-c.V[i])*((x-c.X[i])/(c.X[i+1]-c.X[i])), i
}

// Line is a straight cost of a choice z in [from, to]: full at from, rising by slope.
type Line struct{ From, To, Full, Slope float64 }

// Convolver is the working memory of slide: the tilted curve, and the points of it that are
// the least of their window, in order.
type Convolver struct {
	x        []float64 // of the curve's points
	from, to float64   // of the line
	tilted   []float64
	least    []int32
	first    int // of least that is in the window
	enter    int // the next point to enter the window
	leave    int // and to leave it
}

// Convolve makes out the least of c(x) + g(z) over x+z = s, for a line g: every choice of z
// moves c to the right. With c tilted by the slope of g that is the least of c over a
// window [s-to, s-from], which lies at an end of the window or at the least of the
// points inside. Between the instants at which a point enters or leaves the window the
// three are straight lines.
func (w *Convolver) Convolve(out, c *Curve, g Line) {
	out.Reset()
	w.load(c, g)
	u := Curve{c.X, w.tilted}
	right, left := 0, 0 // segments that the window's ends are in
	s := c.X[0] + g.From
	base := g.Full - g.Slope*g.From

	for {
		next := w.slide(s)
		if math.IsInf(next, 1) {
			break
		}

		inside := w.leastInside()
		var a, b [3]float64 // the three at s and at next
		a[0], b[0] = inside, inside
		a[1], right = u.At(right, s-g.From)
		b[1], _ = u.At(right, next-g.From)
		a[2], left = u.At(left, s-g.To)
		b[2], _ = u.At(left, next-g.To)

		leastOf(out, s, next, &a, &b, base, g.Slope)
		s = next
	}

	if len(out.X) == 0 { // a point, moved by a fixed choice
		out.Put(s, base+g.Slope*s+w.tilted[0])
	}
}

// load begins with an empty window before the curve, tilted by the slope of the line.
func (w *Convolver) load(c *Curve, g Line) {
	w.x = c.X
	w.from, w.to = g.From, g.To
	w.tilted = buffer.Resize(w.tilted, len(c.X))
	for i := range c.X {
		w.tilted[i] = c.V[i] - g.Slope*c.X[i]
	}

	w.least = w.least[:0]
	w.first = 0
	w.enter = 0
	w.leave = 0
}

// slide moves the window on to the sum s, and returns the sum at which the next point enters or
// leaves it; that is infinite if none does.
func (w *Convolver) slide(s float64) float64 {
	n := len(w.x)
	for w.enter < n && w.x[w.enter]+w.from <= s+SameX {
		for len(w.least) > w.first && w.tilted[w.least[len(w.least)-1]] >= w.tilted[w.enter] {
			w.least = w.least[:len(w.least)-1]
		}
		w.least = append(w.least, int32(w.enter))
		w.enter++
	}

	for w.leave < n && w.x[w.leave]+w.to <= s+SameX {
		w.leave++
	}

	next := math.Inf(1)
	if w.enter < n {
		next = w.x[w.enter] + w.from
	}
	if w.leave < n {
		next = min(next, w.x[w.leave]+w.to)
	}

	return next
}

// leastInside is the least of the points in the window; infinite if there are none.
func (w *Convolver) leastInside() float64 {
	for w.first < len(w.least) && int(w.least[w.first]) < w.leave {
		w.first++
	}
	if w.first == len(w.least) {
		return math.Inf(1)
	}

	return w.tilted[w.least[w.first]]
}

// leastOf puts the least of three lines over [s, next], each given at both ends, raised
// by base and tilted by slope.
func leastOf(
	out *Curve,
	s, next float64,
	a, b *[3]float64,
	base, slope float64,
) {
	now := 0
	for i := range a {
		if math.IsInf(a[i], 1) || math.IsInf(b[i], 1) {
			a[i], b[i] = math.Inf(1), math.Inf(1)
			continue
		}

		if a[i] < a[now] || a[i] == a[now] && b[i] < b[now] {
			now = i
		}
	}

	if math.IsInf(a[now], 1) {
		return
	}
	out.Put(s, base+slope*s+a[now])
	share := 0.0

	for {
		then, to := 1.0, now
		for i := range a {
			gain := (b[now] - a[now]) - (b[i] - a[i])
			if i != now && gain > 0 && !math.IsInf(a[i], 1) {
				if at := (a[i] - a[now]) / gain; at > share && at < then {
					then, to = at, i
				}
			}
		}

		x := s + then*(next-s)
		out.Put(x, base+slope*x+a[now]+then*(b[now]-a[now]))
		if to == now {
			return
		}

		now, share = to, then
	}
}

// Lower makes out the lower of two curves whose ranges meet.
func Lower(out, a, b *Curve) {
	out.Reset()
	i := 0
	j := 0
	sa := 0
	sb := 0
	var x0, a0, b0 float64

	for i < len(a.X) || j < len(b.X) {
		x := math.Inf(1)
		if i < len(a.X) {
			x = a.X[i]
		}
		if j < len(b.X) {
			x = min(x, b.X[j])
		}

		for i < len(a.X) && a.X[i] <= x+SameX {
			i++
		}

		for j < len(b.X) && b.X[j] <= x+SameX {
			j++
		}
		var a1, b1 float64
		a1, sa = a.At(sa, x)
		b1, sb = b.At(sb, x)
		d0, d1 := a0-b0, a1-b1
		if len(out.X) > 0 && d0*d1 < 0 && !math.IsInf(d0*d1, 0) {
			share := d0 / (d0 - d1)
			out.Put(x0+share*(x-x0), a0+share*(a1-a0))
		}

		out.Put(x, min(a1, b1))
		x0 = x
		a0 = a1
		b0 = b1
	}
}

// Clip keeps the part of c over [lo, hi].
func Clip(out, c *Curve, lo, hi float64) {
	out.Reset()
	n := len(c.X)
	lo, hi = max(lo, c.X[0]), min(hi, c.X[n-1])
	v, i := c.At(0, lo)
	out.Put(lo, v)

	for ; i < n && c.X[i] < hi-SameX; i++ {
		if c.X[i] > lo+SameX {
			out.Put(c.X[i], c.V[i])
		}
	}

	v, _ = c.At(0, hi)
	out.Put(hi, v)
}

// Coarsen leaves out points until at most most are left, so that the curve nowhere
// rises: only points above the line through their neighbours go, the lowest above it
// first.
func (c *Curve) Coarsen(most int) {
	for tolerance := 1e-9; len(c.X) > most; tolerance *= 2 {
		last := 1
		for i := 1; i < len(c.X)-1; i++ {
			share := (c.X[i] - c.X[last-1]) / (c.X[i+1] - c.X[last-1])
			above := c.V[i] - c.V[last-1] - share*(c.V[i+1]-c.V[last-1])
			if above < 0 || above > tolerance {
				c.X[last], c.V[last] = c.X[i], c.V[i]
				last++
			}
		}

		n := len(c.X)
		c.X[last], c.V[last] = c.X[n-1], c.V[n-1]
		c.X, c.V = c.X[:last+1], c.V[:last+1]
		if tolerance > 1e12 {
			return // what is left is convex
		}
	}
}
