package plan

import "math"

// curve is a continuous piecewise linear function on [x[0], x[len-1]], convex or not.
type curve struct{ x, v []float64 }

// Two points of a curve closer than sameX are one, and a point within sameV of the line
// through its neighbours, or within what rounding makes of values that large, is left out.
const (
	sameX    = 1e-11
	sameV    = 1e-9
	rounding = 1e-13
)

func (c *curve) reset() { c.x, c.v = c.x[:0], c.v[:0] }

// put appends a point to the right.
func (c *curve) put(x, v float64) {
	n := len(c.x)
	if n > 0 && x-c.x[n-1] < sameX {
		c.v[n-1] = min(v, c.v[n-1])
		return
	}
	if n > 1 {
		run, rise := c.x[n-1]-c.x[n-2], c.v[n-1]-c.v[n-2]
		if math.Abs(rise*(x-c.x[n-2])-(v-c.v[n-2])*run) <= (sameV+rounding*math.Abs(v))*(x-c.x[n-2]) {
			c.x[n-1], c.v[n-1] = x, v
			return
		}
	}
	c.x, c.v = append(c.x, x), append(c.v, v)
}

// at returns the value at x, which lies in or after the segment that begins at point i,
// and that segment. Outside the curve the value is infinite.
func (c *curve) at(i int, x float64) (float64, int) {
	n := len(c.x)
	for i+1 < n-1 && c.x[i+1] < x {
		i++
	}
	switch {
	case x < c.x[0]-sameX || x > c.x[n-1]+sameX:
		return math.Inf(1), i
	case n == 1 || x <= c.x[i]:
		return c.v[i], i
	case x >= c.x[n-1]:
		return c.v[n-1], i
	}
	return c.v[i] + (c.v[i+1]-c.v[i])*((x-c.x[i])/(c.x[i+1]-c.x[i])), i
}

// line is a straight cost of a choice z in [from, to]: full at from, rising by slope.
type line struct{ from, to, full, slope float64 }

// slider is the working memory of slide: the tilted curve, and the points of it that are
// the least of their window, in order.
type slider struct {
	tilted []float64
	least  []int32
}

// slide makes out the least of c(x) + g(z) over x+z = s, for a line g: every choice of z
// moves c to the right. With c tilted by the slope of g that is the least of c over a
// window [s-to, s-from], which lies at an end of the window or at the least of the
// points inside. Between the instants at which a point enters or leaves the window the
// three are straight lines.
func (w *slider) slide(out, c *curve, g line) {
	out.reset()
	n := len(c.x)
	w.tilted = resize(w.tilted, n)
	for i := range c.x {
		w.tilted[i] = c.v[i] - g.slope*c.x[i]
	}
	u := curve{c.x, w.tilted}
	w.least = w.least[:0]
	first, enter, leave := 0, 0, 0 // of least; the next points to enter and leave
	right, left := 0, 0            // segments that the window's ends are in
	s := c.x[0] + g.from
	base := g.full - g.slope*g.from
	for {
		for enter < n && c.x[enter]+g.from <= s+sameX {
			for len(w.least) > first && w.tilted[w.least[len(w.least)-1]] >= w.tilted[enter] {
				w.least = w.least[:len(w.least)-1]
			}
			w.least = append(w.least, int32(enter))
			enter++
		}
		for leave < n && c.x[leave]+g.to <= s+sameX {
			leave++
		}
		next := math.Inf(1)
		if enter < n {
			next = c.x[enter] + g.from
		}
		if leave < n {
			next = min(next, c.x[leave]+g.to)
		}
		if math.IsInf(next, 1) {
			break
		}
		for first < len(w.least) && int(w.least[first]) < leave {
			first++
		}
		inside := math.Inf(1)
		if first < len(w.least) {
			inside = w.tilted[w.least[first]]
		}
		var a, b [3]float64 // the three at s and at next
		a[0], b[0] = inside, inside
		a[1], right = u.at(right, s-g.from)
		b[1], _ = u.at(right, next-g.from)
		a[2], left = u.at(left, s-g.to)
		b[2], _ = u.at(left, next-g.to)
		leastOf(out, s, next, &a, &b, base, g.slope)
		s = next
	}
	if len(out.x) == 0 { // a point, moved by a fixed choice
		out.put(s, base+g.slope*s+w.tilted[0])
	}
}

// leastOf puts the least of three lines over [s, next], each given at both ends, raised
// by base and tilted by slope.
func leastOf(out *curve, s, next float64, a, b *[3]float64, base, slope float64) {
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
	out.put(s, base+slope*s+a[now])
	share := 0.0
	for {
		then, to := 1.0, now
		for i := range a {
			if gain := (b[now] - a[now]) - (b[i] - a[i]); i != now && gain > 0 && !math.IsInf(a[i], 1) {
				if at := (a[i] - a[now]) / gain; at > share && at < then {
					then, to = at, i
				}
			}
		}
		x := s + then*(next-s)
		out.put(x, base+slope*x+a[now]+then*(b[now]-a[now]))
		if to == now {
			return
		}
		now, share = to, then
	}
}

// lower makes out the lower of two curves whose ranges meet.
func lower(out, a, b *curve) {
	out.reset()
	i, j, sa, sb := 0, 0, 0, 0
	var x0, a0, b0 float64
	for i < len(a.x) || j < len(b.x) {
		x := math.Inf(1)
		if i < len(a.x) {
			x = a.x[i]
		}
		if j < len(b.x) {
			x = min(x, b.x[j])
		}
		for i < len(a.x) && a.x[i] <= x+sameX {
			i++
		}
		for j < len(b.x) && b.x[j] <= x+sameX {
			j++
		}
		var a1, b1 float64
		a1, sa = a.at(sa, x)
		b1, sb = b.at(sb, x)
		if d0, d1 := a0-b0, a1-b1; len(out.x) > 0 && d0*d1 < 0 && !math.IsInf(d0*d1, 0) {
			share := d0 / (d0 - d1)
			out.put(x0+share*(x-x0), a0+share*(a1-a0))
		}
		out.put(x, min(a1, b1))
		x0, a0, b0 = x, a1, b1
	}
}

// clip keeps the part of c over [lo, hi].
func clip(out, c *curve, lo, hi float64) {
	out.reset()
	n := len(c.x)
	lo, hi = max(lo, c.x[0]), min(hi, c.x[n-1])
	v, i := c.at(0, lo)
	out.put(lo, v)
	for ; i < n && c.x[i] < hi-sameX; i++ {
		if c.x[i] > lo+sameX {
			out.put(c.x[i], c.v[i])
		}
	}
	v, _ = c.at(0, hi)
	out.put(hi, v)
}

// coarsen leaves out points until at most most are left, so that the curve nowhere
// rises: only points above the line through their neighbours go, the lowest above it
// first.
func (c *curve) coarsen(most int) {
	for allowed := 1e-9; len(c.x) > most; allowed *= 2 {
		kept := 1
		for i := 1; i < len(c.x)-1; i++ {
			share := (c.x[i] - c.x[kept-1]) / (c.x[i+1] - c.x[kept-1])
			above := c.v[i] - c.v[kept-1] - share*(c.v[i+1]-c.v[kept-1])
			if above < 0 || above > allowed {
				c.x[kept], c.v[kept] = c.x[i], c.v[i]
				kept++
			}
		}
		n := len(c.x)
		c.x[kept], c.v[kept] = c.x[n-1], c.v[n-1]
		c.x, c.v = c.x[:kept+1], c.v[:kept+1]
		if allowed > 1e12 {
			return // what is left is convex
		}
	}
}
