package settle

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"flexd/internal/flex"
)

// Rounding says where an amount goes that lies exactly between two.
type Rounding uint8

// The rounding modes. The zero value is the default.
const (
	// away from zero: 17.5 becomes 18, -17.5 becomes -18
	HalfAway Rounding = iota
	// to the even neighbour: 17.5 becomes 18, 16.5 becomes 16
	HalfEven
)

// String returns the mode's name, as settings and statements print it.
func (r Rounding) String() string {
	if r == HalfEven {
		return "half_even"
	}
	return "half_away_from_zero"
}

// ParseRounding reads a mode's name; the empty name is the default.
func ParseRounding(s string) (Rounding, error) {
	switch s {
	case "", HalfAway.String():
		return HalfAway, nil
	case HalfEven.String():
		return HalfEven, nil
	}

	return 0, fmt.Errorf(
		"%q is not a rounding mode; it is %s or %s",
		s,
		HalfAway,
		HalfEven,
	)
}

// divide returns n/d rounded. d must be positive.
func (r Rounding) divide(n, d int64) int64 {
	q, rest := n/d, n%d
	if rest < 0 {
		rest = -rest
	}

	up := rest > d-rest || rest == d-rest && (r == HalfAway || q%2 != 0)
	if !up {
		return q
	}
	if n < 0 {
		return q - 1
	}

	return q + 1
}

// Parts is a fraction in millionths.
type Parts int64

// Whole is the fraction one.
const Whole Parts = 1_000_000

// PartsOf returns the fraction nearest to f.
func PartsOf(f float64) Parts { return Parts(math.Round(f * float64(Whole))) }

// PicoPounds is money in units of 1e-12 pounds: the exact product of watt-hours and a
// price in millionths of a pound per megawatt-hour. Sums of it lose nothing; it is
// rounded once, when it becomes pence.
type PicoPounds int64

// MaxEnergy and MaxPrice bound a settlement period, so that no sum of a day's products
// overflows: 100 MWh at £6,000 per MWh.
const (
	MaxEnergy flex.WattHours = 100_000_000
	MaxPrice  flex.Price     = 6_000_000_000
)

// Revenue returns what moving energy by moved watt-hours (more import is positive) earns
// at the price: less import at a positive price earns, more import at a negative one too.
func Revenue(moved flex.WattHours, price flex.Price) PicoPounds {
	return PicoPounds(-int64(moved) * int64(price))
}

// MicroPounds returns the amount times the fractions, in millionths of a pound.
func (p PicoPounds) MicroPounds(r Rounding, of ...Parts) flex.MicroPounds {
	return flex.MicroPounds(p.times(1_000_000, r, of))
}

// Pence returns the amount times the fractions in whole pence, rounded once.
func (p PicoPounds) Pence(r Rounding, of ...Parts) flex.Pence {
	return flex.Pence(p.times(10_000_000_000, r, of))
}

// times returns p times the fractions, in units of that many pico-pounds.
func (p PicoPounds) times(
	unit int64,
	r Rounding,
	of []Parts,
) int64 {
	n, d := big.NewInt(int64(p)), big.NewInt(unit)
	for _, f := range of {
		if f != Whole {
			n.Mul(n, big.NewInt(int64(f)))
			d.Mul(d, big.NewInt(int64(Whole)))
		}
	}

	return r.ratio(n, d)
}

// ratio returns n/d rounded. d must be positive. Both arguments may be changed.
func (r Rounding) ratio(n, d *big.Int) int64 {
	if n.IsInt64() && d.IsInt64() {
		return r.divide(n.Int64(), d.Int64())
	}

	q, rest := new(big.Int).QuoRem(n, d, new(big.Int))
	// the remainder compared with a half
	half := rest.Abs(rest).Lsh(rest, 1).Cmp(d)
	tieGoesUp := r == HalfAway || q.Bit(0) == 1
	if half > 0 || half == 0 && tieGoesUp {
		q.Add(q, big.NewInt(int64(n.Sign())))
	}

	return q.Int64()
}

// Rate is a credit for energy in millionths of a penny per kilowatt-hour.
type Rate int64

// RateOf returns the rate nearest to a number of pence per kilowatt-hour.
func RateOf(pencePerKWh float64) Rate {
	return Rate(math.Round(pencePerKWh * 1e6))
}

// PencePerKWh returns the rate in the interface's unit.
func (c Rate) PencePerKWh() float64 { return float64(c) / 1e6 }

// Credit returns what the energy earns at the rate, in whole pence, rounded once.
func (c Rate) Credit(e flex.WattHours, r Rounding) flex.Pence {
	n := big.NewInt(int64(c))
	return flex.Pence(r.ratio(
		n.Mul(n, big.NewInt(int64(e))),
		big.NewInt(1_000_000_000),
	))
}

// Split divides a total in proportion to the weights, so that the shares add up to it to
// the last unit: each gets its whole part, and the units left over go to the largest
// remainders, the earlier first among equals. Weights must not be negative; when all are
// zero the total is split evenly. No weights, no shares.
func Split[N ~int64](total N, weights []int64) []N {
	shares := make([]N, len(weights))
	switch len(weights) {
	case 0:
		return shares
	case 1:
		shares[0] = total
		return shares
	}

	sum := new(big.Int)
	for _, w := range weights {
		sum.Add(sum, big.NewInt(w))
	}

	if sum.Sign() == 0 {
		return Split(total, slices.Repeat([]int64{1}, len(weights)))
	}

	sign := N(1)
	if total < 0 {
		sign, total = -1, -total
	}

	undivided := total
	remainders := make([]*big.Int, len(weights))

	for i, w := range weights {
		n := new(big.Int).Mul(big.NewInt(int64(total)), big.NewInt(w))
		q, rest := n.QuoRem(n, sum, new(big.Int))
		shares[i], remainders[i] = N(q.Int64()), rest
		undivided -= shares[i]
	}

	for ; undivided > 0; undivided-- {
		best := 0
		for i := range remainders {
			if remainders[i].Cmp(remainders[best]) > 0 {
				best = i
			}
		}

		shares[best]++
		remainders[best] = big.NewInt(-1)
	}

	for i := range shares {
		shares[i] *= sign
	}

	return shares
}
