package settle

import (
	"bytes"
	"math/big"

	"flexd/internal/flex"
)

// Instructed is a part of a settlement period in which an instruction called an event's asset,
// for what the event did: less use, or more. It is settled at what the instruction pays.
type Instructed struct {
	Period      int        // of the day, from 1
	Seconds     int        // of the period, 1 to 1,800
	Price       flex.Price // per MWh of what was asked for, above 0
	Down        bool       // less use was asked for
	Instruction flex.InstructionID
	// by which what it asks for is settled, all day at its site; empty: the terms'
	Baseline Method
}

// BaselineOf is the method by which a site's events of a day are settled that instructions pay for: that
// of the first half-hour in which one says it, of the earliest instruction; empty if none does. A site has
// one deviation, and so one baseline.
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

// InstructedSource is the source of a price that instructions alone make.
const InstructedSource = "instruction"

// periodSeconds is the length of a settlement period.
const periodSeconds = int64(flex.HalfHour / 1_000_000_000)

// InstructedPrice returns the price of period n of which parts are instructed: what each
// instruction pays for its part of the time, and the market's price for the rest, rounded to the
// nearest unit, half away from zero. Of an instruction to use more, the price is below zero, as
// Revenue counts more use so. A period that is instructed whole needs no price of the market's.
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

// instructionOf returns the instruction of most of a period, the first of equal ones; zero if
// there is none.
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

// wholly reports whether instructions make the price of a period alone.
func wholly(n int, parts []Instructed) bool {
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
