package piecewise

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawCurve draws a curve with kinks on whole numbers.
func drawCurve(t *rapid.T, most int) (c Curve) {
	x := rapid.IntRange(-5, 5).Draw(t, "first")
	for range rapid.IntRange(1, most).Draw(t, "points") {
		c.Put(float64(x), float64(rapid.IntRange(-9, 9).Draw(t, "value")))
		x += rapid.IntRange(1, 3).Draw(t, "run")
	}
	return c
}

func (c *Curve) value(x float64) float64 { v, _ := c.At(0, x); return v }

// TestCurve_Slide holds the sum of a curve and a line against the best of all choices
// that can be best: at an end of the line, or where the curve has a kink.
func TestCurve_Slide(t *testing.T) {
	var w Convolver
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t, 12)
		g := Line{From: float64(rapid.IntRange(-4, 4).Draw(t, "from")), Full: float64(rapid.IntRange(-5, 5).Draw(t, "full")),
			Slope: float64(rapid.IntRange(-6, 6).Draw(t, "slope"))}
		g.To = g.From + float64(rapid.IntRange(0, 8).Draw(t, "length"))
		var out Curve
		w.Convolve(&out, &c, g)
		first, last := c.X[0]+g.From, c.X[len(c.X)-1]+g.To

		for s := first; s <= last; s += 0.25 {
			best := math.Inf(1)
			try := func(z float64) {
				if z >= g.From && z <= g.To {
					best = min(best, c.value(s-z)+g.Full+g.Slope*(z-g.From))
				}
			}

			try(g.From)
			try(g.To)
			for _, x := range c.X {
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
		first, last := max(a.X[0], b.X[0]), min(a.X[len(a.X)-1], b.X[len(b.X)-1])
		if first > last {
			t.Skip("their ranges do not meet")
		}

		var out, part Curve
		Lower(&out, &a, &b)
		Clip(&part, &out, first, last)
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
		before := Curve{append([]float64(nil), c.X...), append([]float64(nil), c.V...)}
		most := rapid.IntRange(2, 40).Draw(t, "most")
		c.Coarsen(most)
		for x := before.X[0]; x <= before.X[len(before.X)-1]; x += 0.25 {
			if c.value(x) > before.value(x)+1e-9 {
				t.Fatalf("at %v it rose from %v to %v", x, before.value(x), c.value(x))
			}
		}

		for i := 2; i < len(c.X) && len(c.X) > most; i++ {
			if (c.V[i]-c.V[i-1])*(c.X[i-1]-c.X[i-2]) < (c.V[i-1]-c.V[i-2])*(c.X[i]-c.X[i-1])-1e-9 {
				t.Fatalf("%d points are left, more than %d, and not convex: %+v", len(c.X), most, c)
			}
		}
	})
}
