package settle_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

func parts(t testing.TB, s string) settle.Parts {
	t.Helper()
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is not a number", s)
	}
	return settle.Parts(r.Mul(r, big.NewRat(int64(settle.Whole), 1)).Num().Int64())
}

func price(t testing.TB, s string) flex.Price {
	t.Helper()
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is not a number", s)
	}
	return flex.Price(r.Mul(r, big.NewRat(1_000_000, 1)).Num().Int64())
}

func TestRevenue_Vectors(t *testing.T) {
	var v struct {
		Cases []struct {
			Flex  string `json:"flex_kwh"`
			Price string `json:"price_gbp_per_mwh"`
			Share string

			Gross    string     `json:"gross_revenue_gbp"`
			HalfAway flex.Pence `json:"user_credit_pence_half_up"`
			HalfEven flex.Pence `json:"user_credit_pence_half_even"`
		}
		Revision struct {
			Estimate struct {
				Gross  string     `json:"gross_gbp"`
				Paid   string     `json:"paid_fraction"`
				Credit flex.Pence `json:"credit_pence"`
			}
			Final struct {
				Gross string     `json:"gross_gbp"`
				User  flex.Pence `json:"user_pence"`
			}
			TopUp flex.Pence `json:"top_up_pence"`
		} `json:"revision_example"`
	}

	readVectors(t, "settlement_money.json", &v)
	if len(v.Cases) != 9 {
		t.Fatalf("%d cases, want 9", len(v.Cases))
	}

	for _, c := range v.Cases {
		exact := settle.Revenue(wh(t, c.Flex), price(t, c.Price))
		gross, _ := new(big.Rat).SetString(c.Gross)
		if got := big.NewRat(int64(exact.MicroPounds(settle.HalfAway)), 1_000_000); got.Cmp(gross) != 0 {
			t.Errorf("%s kWh at %s earns %s, want %s", c.Flex, c.Price, got.FloatString(6), c.Gross)
		}
		share := parts(t, c.Share)
		if away, even := exact.Pence(settle.HalfAway, share), exact.Pence(settle.HalfEven, share); away != c.HalfAway || even != c.HalfEven {
			t.Errorf("%s kWh at %s: credit %d or %d, want %d or %d", c.Flex, c.Price, away, even, c.HalfAway, c.HalfEven)
		}
	}

	pico := func(gbp string) settle.PicoPounds { return settle.PicoPounds(price(t, gbp) * 1_000_000) }
	e, f := v.Revision.Estimate, v.Revision.Final
	early := pico(e.Gross).Pence(settle.HalfAway, settle.Whole/2, parts(t, e.Paid))
	final := pico(f.Gross).Pence(settle.HalfAway, settle.Whole/2)
	if early != e.Credit || final != f.User || final-early != v.Revision.TopUp {
		t.Errorf("paid %d early and %d in the end, want %d and %d", early, final, e.Credit, f.User)
	}
}

func TestRounding_Ties(t *testing.T) {
	for _, tt := range []struct{ pico, away, even int64 }{
		{165_000_000_000, 17, 16}, {175_000_000_000, 18, 18},
		{-165_000_000_000, -17, -16}, {-175_000_000_000, -18, -18},
		{5_000_000_000, 1, 0}, {-5_000_000_000, -1, 0},
		{4_999_999_999, 0, 0}, {5_000_000_001, 1, 1},
	} {
		p := settle.PicoPounds(tt.pico)
		if away, even := p.Pence(settle.HalfAway), p.Pence(settle.HalfEven); int64(away) != tt.away || int64(even) != tt.even {
			t.Errorf("%d pico-pounds: %d and %d, want %d and %d", tt.pico, away, even, tt.away, tt.even)
		}
	}
}

// The pence of an amount are the nearest to its exact value, at whatever size.
func TestPence_NearestToExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		energy := rapid.Int64Range(-int64(settle.MaxEnergy), int64(settle.MaxEnergy)).Draw(t, "energy")
		gbp := rapid.Int64Range(-int64(settle.MaxPrice), int64(settle.MaxPrice)).Draw(t, "price")
		a := settle.Parts(rapid.Int64Range(0, int64(settle.Whole)).Draw(t, "share"))
		b := settle.Parts(rapid.Int64Range(0, 2*int64(settle.Whole)).Draw(t, "loss"))

		for _, mode := range []settle.Rounding{settle.HalfAway, settle.HalfEven} {
			got := settle.Revenue(flex.WattHours(energy), flex.Price(gbp)).Pence(mode, a, b)
			exact := new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(-energy), big.NewInt(gbp)))
			exact.Mul(exact, big.NewRat(int64(a), int64(settle.Whole)))
			exact.Mul(exact, big.NewRat(int64(b), int64(settle.Whole)))
			exact.Quo(exact, big.NewRat(10_000_000_000, 1))
			off := new(big.Rat).Sub(exact, new(big.Rat).SetInt64(int64(got)))
			off.Abs(off)
			half := big.NewRat(1, 2)

			switch c := off.Cmp(half); {
			case c > 0:
				t.Fatalf("%s: %s became %d", mode, exact.FloatString(6), got)
			case c == 0 && mode == settle.HalfEven && got%2 != 0:
				t.Fatalf("half even: the tie %s became %d", exact.FloatString(6), got)
			case c == 0 && mode == settle.HalfAway && new(big.Rat).SetInt64(int64(got)).Cmp(exact) == -exact.Sign():
				t.Fatalf("half away: the tie %s became %d", exact.FloatString(6), got)
			}
		}
	})
}

func TestRate_Credit(t *testing.T) {
	for _, tt := range []struct {
		kwh, rate float64
		want      flex.Pence
	}{
		{30, 2.5, 75}, {10.1, 2.5, 25}, {10.2, 2.5, 26}, {0, 2.5, 0}, {1_000_000, 10_000, 10_000_000_000}, {-2, 2.5, -5},
	} {
		if got := settle.RateOf(tt.rate).Credit(flex.FromKWh(tt.kwh), settle.HalfAway); got != tt.want {
			t.Errorf("%g kWh at %g p: %d, want %d", tt.kwh, tt.rate, got, tt.want)
		}
	}
}

// Shares add up to the whole, lie within a penny of the exact share, and a heavier weight
// never gets less.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := flex.Pence(rapid.Int64Range(-1e12, 1e12).Draw(t, "total"))
		weights := rapid.SliceOfN(rapid.Int64Range(0, 1e15), 1, 30).Draw(t, "weights")
		shares := settle.Split(total, weights)
		var sum flex.Pence
		var weight int64
		for i := range shares {
			sum += shares[i]
			weight += weights[i]
		}

		if sum != total {
			t.Fatalf("shares %v add up to %d, not %d", shares, sum, total)
		}

		for i := range shares {
			if weight > 0 {
				exact := new(big.Rat).Mul(big.NewRat(int64(total), 1), big.NewRat(weights[i], weight))
				off := exact.Sub(exact, big.NewRat(int64(shares[i]), 1))
				if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
					t.Fatalf("share %d of %d by %v is %d, a penny or more off", i, total, weights, shares[i])
				}
			}

			for j := range shares {
				if total > 0 && weights[i] > weights[j] && shares[i] < shares[j] {
					t.Fatalf("weight %d got %d, weight %d got %d", weights[i], shares[i], weights[j], shares[j])
				}
			}
		}
	})
}

func TestSplit_LargestRemainder(t *testing.T) {
	for _, tt := range []struct {
		total   flex.Pence
		weights []int64
		want    []flex.Pence
	}{
		{100, []int64{1, 1, 1}, []flex.Pence{34, 33, 33}},
		{-100, []int64{1, 1, 1}, []flex.Pence{-34, -33, -33}},
		{10, []int64{0, 0}, []flex.Pence{5, 5}},
		{7, []int64{6, 3, 1}, []flex.Pence{4, 2, 1}},
		{0, []int64{5}, []flex.Pence{0}},
	} {
		got := settle.Split(tt.total, tt.weights)

		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%d by %v: %v, want %v", tt.total, tt.weights, got, tt.want)
				break
			}
		}
	}
}
