package fleet_test

import (
	"math"
	"math/big"
	"testing"

	"flexd/internal/engine/fleet"
	"flexd/internal/engine/random"
)

const precise = 500 // bits of the numbers that the answers of groups are compared with

// TestFewCars has groups of few cars answer a change of price as the equations do, solved with numbers of 500 bits: also
// where a cap is so tight that differences of ordinary numbers would have no correct digit.
func TestFewCars(t *testing.T) {
	d := random.Source(7)
	for n := range 400 {
		g := drawGroup(&d)
		upward, response, dmu := g.Answer()
		wantAbove, wantResponse, wantDmu := solveGroup(g)

		for s := range g.Theta {
			for u := range g.Theta {
				near(t, n, "what the parent sees", upward[s][u], wantAbove[s][u], scaleOf(wantAbove[s]))
			}
			near(t, n, "response", response[s], wantResponse[s], scaleOf(wantResponse))
			near(t, n, "price of the cap", dmu[s], wantDmu[s], scaleOf(wantDmu))
		}
	}
}

func near(t *testing.T, n int, what string, got float64, want *big.Float, scale float64) {
	t.Helper()
	w, _ := want.Float64()
	if !(math.Abs(got-w) <= 1e-8*scale) {
		t.Fatalf("group %d: %s is %g, want %g", n, what, got, w)
	}
}

// scaleOf is the largest of the numbers, without sign.
func scaleOf(list []*big.Float) float64 {
	most := 0.0
	for _, v := range list {
		f, _ := v.Float64()
		most = max(most, math.Abs(f))
	}

	return most
}

// drawGroup draws up to six cars in eight slots, with inverses and caps of very different sizes.
func drawGroup(d *random.Source) *fleet.BarrierGroup {
	const slots = 8
	size := func(from, to float64) float64 { return math.Pow(10, d.Between(from, to)) }

	g := &fleet.BarrierGroup{}
	for range d.Below(7) {
		c := fleet.BarrierCar{First: d.Below(slots), Rest: size(-9, 0)}
		for range 1 + d.Below(slots-c.First) {
			c.Inverse = append(c.Inverse, size(-6, 2))
		}
		g.Cars = append(g.Cars, c)
	}

	for range slots {
		theta := 0.0
		if d.Below(4) > 0 {
			theta = size(-4, 9)
		}

		g.Theta = append(g.Theta, theta)
		g.Rho = append(g.Rho, d.Between(-1, 1))
		g.Change = append(g.Change, 0)
		g.Above = append(g.Above, d.Between(-1, 1))
	}

	for _, c := range g.Cars { // a car moves its load, or leaves need unserved
		for k, a := range c.Inverse {
			g.Change[c.First+k] += a * d.Between(-1, 1)
		}
	}

	return g
}

// solveGroup solves the equations of a group: with M = sum over the cars of diag(a) - a a' / A, A being the sum of all
// inverses of a car, the response is (I + M Theta)^-1 (r - M (rho + above)), and what the parent sees (I + M Theta)^-1 M.
func solveGroup(g *fleet.BarrierGroup) (upward [][]*big.Float, response, dmu []*big.Float) {
	slots := len(g.Theta)
	m := loadMatrix(g)

	left := make([][]*big.Float, slots) // I + M Theta, and beside it the right sides: M and r - M (rho + above)
	for s := range slots {
		left[s] = make([]*big.Float, 2*slots+1)
		right := number(g.Change[s])

		for u := range slots {
			left[s][u] = product(m[s][u], number(g.Theta[u]))
			left[s][slots+u] = m[s][u]
			right.Sub(right, product(m[s][u], sum(number(g.Rho[u]), number(g.Above[u]))))
		}

		left[s][s] = sum(left[s][s], number(1))
		left[s][2*slots] = right
	}

	eliminate(left)

	for s := range slots {
		upward = append(upward, left[s][slots:2*slots])
		r := left[s][2*slots]
		response = append(response, r)
		dmu = append(dmu, sum(product(number(g.Theta[s]), r), number(g.Rho[s])))
	}

	return upward, response, dmu
}

// loadMatrix is how the load of the group answers prices.
func loadMatrix(g *fleet.BarrierGroup) [][]*big.Float {
	slots := len(g.Theta)
	m := make([][]*big.Float, slots)
	for s := range m {
		m[s] = make([]*big.Float, slots)
		for u := range m[s] {
			m[s][u] = number(0)
		}
	}

	for _, c := range g.Cars {
		total := number(c.Rest)
		for _, a := range c.Inverse {
			total = sum(total, number(a))
		}

		for k, a := range c.Inverse {
			s := c.First + k
			m[s][s] = sum(m[s][s], number(a))
			for l, b := range c.Inverse {
				both := product(number(a), number(b))
				m[s][c.First+l] = new(big.Float).Sub(m[s][c.First+l], both.Quo(both, total))
			}
		}
	}

	return m
}

// eliminate solves the system in the first columns for all columns behind it, in place, by Gauss and Jordan.
func eliminate(rows [][]*big.Float) {
	for p := range rows {
		pivot := p
		for i := p; i < len(rows); i++ {
			if new(big.Float).Abs(rows[i][p]).Cmp(new(big.Float).Abs(rows[pivot][p])) > 0 {
				pivot = i
			}
		}

		rows[p], rows[pivot] = rows[pivot], rows[p]
		first := rows[p][p]
		for c, v := range rows[p] {
			rows[p][c] = new(big.Float).Quo(v, first)
		}

		for i := range rows {
			if i == p {
				continue
			}

			by := rows[i][p]
			for c, v := range rows[i] {
				rows[i][c] = new(big.Float).Sub(v, product(by, rows[p][c]))
			}
		}
	}
}

func number(v float64) *big.Float { return new(big.Float).SetPrec(precise).SetFloat64(v) }

func sum(a, b *big.Float) *big.Float { return new(big.Float).Add(a, b) }

func product(a, b *big.Float) *big.Float { return new(big.Float).Mul(a, b) }
