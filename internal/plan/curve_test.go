package plan

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawCurve draws a curve with kinks on whole numbers.
func drawCurve(t *rapid.T, most int) (c curve) {
	x := rapid.IntRange(-5, 5).Draw(t, "first")
	for range rapid.IntRange(1, most).Draw(t, "points") {
		c.put(float64(x), float64(rapid.IntRange(-9, 9).Draw(t, "value")))
		x += rapid.IntRange(1, 3).Draw(t, "run")
	}
	return c
}

func (c *curve) value(x float64) float64 { v, _ := c.at(0, x); return v }

// TestCurve_Slide holds the sum of a curve and a line against the best of all choices
// that can be best: at an end of the line, or where the curve has a kink.
func TestCurve_Slide(t *testing.T) {
	var w slider
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t, 12)
		g := line{from: float64(rapid.IntRange(-4, 4).Draw(t, "from")), full: float64(rapid.IntRange(-5, 5).Draw(t, "full")),
			slope: float64(rapid.IntRange(-6, 6).Draw(t, "slope"))}
		g.to = g.from + float64(rapid.IntRange(0, 8).Draw(t, "length"))
		var out curve
		w.slide(&out, &c, g)
		first, last := c.x[0]+g.from, c.x[len(c.x)-1]+g.to
		for s := first; s <= last; s += 0.25 {
			best := math.Inf(1)
			try := func(z float64) {
				if z >= g.from && z <= g.to {
					best = min(best, c.value(s-z)+g.full+g.slope*(z-g.from))
				}
			}
			try(g.from)
			try(g.to)
			for _, x := range c.x {
				try(s - x)
			}
			if got := out.value(s); math.Abs(got-best) > 1e-7 {
				t.Fatalf("at %v: %v, want %v\n%+v + %+v = %+v", s, got, best, c, g, out)
			}
		}
	})
}

func TestCurve_LowerAndClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawCurve(t, 8), drawCurve(t, 8)
		first, last := max(a.x[0], b.x[0]), min(a.x[len(a.x)-1], b.x[len(b.x)-1])
		if first > last {
			t.Skip("their ranges do not meet")
		}
		var out, part curve
		lower(&out, &a, &b)
		clip(&part, &out, first, last)
		for x := first; x <= last; x += 0.125 {
			want := min(a.value(x), b.value(x))
			if math.Abs(out.value(x)-want) > 1e-7 || math.Abs(part.value(x)-want) > 1e-7 {
				t.Fatalf("at %v: %v and %v, want %v\n%+v\n%+v", x, out.value(x), part.value(x), want, a, b)
			}
		}
	})
}

// TestCurve_Coarsen: fewer points, and nowhere a higher value, so that a bound stays one.
func TestCurve_Coarsen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t, 40)
		before := curve{append([]float64(nil), c.x...), append([]float64(nil), c.v...)}
		most := rapid.IntRange(2, 40).Draw(t, "most")
		c.coarsen(most)
		for x := before.x[0]; x <= before.x[len(before.x)-1]; x += 0.25 {
			if c.value(x) > before.value(x)+1e-9 {
				t.Fatalf("at %v it rose from %v to %v", x, before.value(x), c.value(x))
			}
		}
		for i := 2; i < len(c.x) && len(c.x) > most; i++ {
			if (c.v[i]-c.v[i-1])*(c.x[i-1]-c.x[i-2]) < (c.v[i-1]-c.v[i-2])*(c.x[i]-c.x[i-1])-1e-9 {
				t.Fatalf("%d points are left, more than %d, and not convex: %+v", len(c.x), most, c)
			}
		}
	})
}
