package settle

import (
	"bytes"
	"math/big"

	"flexd/internal/flex"
)

// Instructed is the part of a settlement period in which a grid instruction called an event's
// asset, in the direction of the event. It is settled at the instruction's price.
type Instructed struct {
	Period      int        // of the day, from 1
	Seconds     int        // of the period, 1 to 1,800
	Price       flex.Price // per MWh of what was asked for, above 0
	Down        bool       // less use was asked for
	Instruction flex.InstructionID
	// the baseline method of the instruction's product, for all of the day at its site; empty:
	// that of the terms
	Baseline Method
}

// BaselineOf returns the method by which a site's events of a day are settled: that of the
// first half-hour whose instruction names one, of the earliest instruction in it; empty if
// none does. A site has one deviation in a half-hour, and so one baseline.
func BaselineOf(parts []Instructed) Method {
	var first *Instructed
	for i := range parts {
		p := &parts[i]
		if p.Baseline != "" && (first == nil || p.before(first)) {
			first = p
		}
	}

	if first == nil {
		return ""
	}

	return first.Baseline
}

func (p *Instructed) before(o *Instructed) bool {
	if p.Period != o.Period {
		return p.Period < o.Period
	}
	return bytes.Compare(p.Instruction[:], o.Instruction[:]) < 0
}

// InstructedSource is the source of a price that consists of instructions alone.
const InstructedSource = "instruction"

// periodSeconds is the length of a settlement period.
const periodSeconds = int64(flex.HalfHour / 1_000_000_000)

// InstructedPrice returns the price of period n with instructed parts: each instruction's
// price for its part of the time, and the market's price for the rest, rounded to the nearest
// unit, half away from zero. The price of an instruction to use more is below zero, so that
// Revenue is positive for more use. A period that is covered by instructions needs no market
// price.
func InstructedPrice(
	market flex.Price,
	known bool,
	n int,
	parts []Instructed,
) (price flex.Price, priced bool) {
	rest := periodSeconds
	sum := new(big.Int)
	add := func(price flex.Price, seconds int64) {
		sum.Add(sum, new(big.Int).Mul(
			big.NewInt(int64(price)),
			big.NewInt(seconds),
		))
	}

	for _, p := range parts {
		if p.Period != n {
			continue
		}

		seconds := min(int64(p.Seconds), rest)
		rest -= seconds
		if p.Down {
			add(p.Price, seconds)
		} else {
			add(-p.Price, seconds)
		}
	}

	if rest == periodSeconds {
		return market, known
	}
	if rest > 0 && !known {
		return 0, false
	}

	add(market, rest)

	return flex.Price(roundedQuotient(sum, periodSeconds)), true
}

// roundedQuotient is the quotient nearest to a/b, half away from zero.
func roundedQuotient(a *big.Int, b int64) int64 {
	half := new(big.Int).Abs(a)
	half.Add(half, big.NewInt(b/2))
	half.Quo(half, big.NewInt(b))
	if a.Sign() < 0 {
		half.Neg(half)
	}

	return half.Int64()
}

// instructionOf returns the instruction that covers most of a period, the first of equal ones;
// zero if there is none.
func instructionOf(n int, parts []Instructed) flex.InstructionID {
	most := 0

	var id flex.InstructionID
	for _, p := range parts {
		if p.Period == n && p.Seconds > most {
			most, id = p.Seconds, p.Instruction
		}
	}

	return id
}

// isWhollyInstructed reports whether instructions cover the period, so that no market price is needed.
func isWhollyInstructed(n int, parts []Instructed) bool {
	seconds := 0
	for _, p := range parts {
		if p.Period == n {
			seconds += p.Seconds
		}
	}

	return int64(seconds) >= periodSeconds
}

// priced returns the price of a period for an event with these instructed parts.
func (c *Case) priced(n int, parts []Instructed) (flex.Price, bool) {
	market, known := c.price(n)
	return InstructedPrice(market, known, n, parts)
}
