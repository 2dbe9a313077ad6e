package settle_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// What an instruction pays stands in for the market's price, for its part of the time.
func TestInstructedPrice(t *testing.T) {
	part := func(n, seconds int, price flex.Price, down bool) settle.Instructed {
		return settle.Instructed{Period: n, Seconds: seconds, Price: price, Down: down}
	}

	for _, tt := range []struct {
		name   string
		market flex.Price
		known  bool
		parts  []settle.Instructed
		want   flex.Price
		priced bool
	}{
		{"none", 250, true, nil, 250, true},
		{"none, and no price", 0, false, nil, 0, false},
		{"of another half-hour", 250, true, []settle.Instructed{part(8, 1800, 3000, true)}, 250, true},
		{"whole", 250, true, []settle.Instructed{part(7, 1800, 3000, true)}, 3000, true},
		{"whole, and no price", 0, false, []settle.Instructed{part(7, 1800, 3000, true)}, 3000, true},
		{"whole, to use more", 250, true, []settle.Instructed{part(7, 1800, 3000, false)}, -3000, true},
		{"half", 250, true, []settle.Instructed{part(7, 900, 3000, true)}, 1625, true},
		{"half, and no price", 0, false, []settle.Instructed{part(7, 900, 3000, true)}, 0, false},
		{"two", 250, true, []settle.Instructed{part(7, 900, 3000, true), part(7, 900, 1000, true)}, 2000, true},
		{"more time than there is", 250, true, []settle.Instructed{part(7, 1800, 3000, true), part(7, 900, 1000, true)}, 3000, true},
		{"rounded away from zero", 1, true, []settle.Instructed{part(7, 900, 2, true)}, 2, true},
		{"rounded away from zero, below it", 0, true, []settle.Instructed{part(7, 900, 1, false)}, -1, true},
		{"at the bounds", -settle.MaxPrice, true, []settle.Instructed{part(7, 1799, settle.MaxPrice, false)}, -settle.MaxPrice, true},
	} {
		got, priced := settle.InstructedPrice(tt.market, tt.known, 7, tt.parts)

		if got != tt.want || priced != tt.priced {
			t.Errorf("%s: %d %t, want %d %t", tt.name, got, priced, tt.want, tt.priced)
		}
	}
}

// Two events at one meter share one deviation: each part of it is worth what its own event is paid,
// they are rounded together, and what pays is part of the inputs.
func TestSettle_InstructedBeside(t *testing.T) {
	c, _ := vectorCase(t)
	plain := c.Hash()
	other := settle.EventPart{Event: flex.FlexEventID{2}, First: c.First, Last: c.Last, Meant: c.Meant}
	c.Others = []settle.EventPart{other}
	alone := mustSettle(t, c)

	c.Instructed = []settle.Instructed{{Period: c.First, Seconds: 1800, Price: 3_000_000_000, Down: true, Instruction: flex.InstructionID{9}}}
	r := mustSettle(t, c)
	if c.Hash() == plain {
		t.Error("what an instruction pays is no part of the inputs")
	}
	if r.Flex != alone.Flex {
		t.Errorf("the deviation is %d Wh with an instruction, %d without", r.Flex, alone.Flex)
	}

	for i, p := range r.Periods {
		price := alone.Periods[i].Price
		if p.Period == c.First {
			price = 3_000_000_000
		}
		if p.Price != price || p.Revenue != settle.Revenue(p.Flex, price) || (p.Source == settle.InstructedSource) != (p.Period == c.First) || p.Instruction.IsZero() == (p.Period == c.First) {
			t.Errorf("period %d: %+v", p.Period, p)
		}
	}

	// What the other is paid changes nothing of this one's gross but the rounding before it.
	before := c.Hash()
	c.Others[0].Instructed = c.Instructed
	if c.Hash() == before {
		t.Error("what pays the other event is no part of the inputs")
	}
	if got := mustSettle(t, c); got.Flex != r.Flex || got.Gross-r.Gross > 1 || r.Gross-got.Gross > 1 {
		t.Errorf("gross %d, and %d where the other is instructed too", r.Gross, got.Gross)
	}
}

// Settlement refuses what no instruction can pay.
func TestSettle_InstructedBounds(t *testing.T) {
	for _, tt := range []struct {
		part settle.Instructed
		ok   bool
	}{
		{settle.Instructed{Seconds: 1800, Price: settle.MaxPrice}, true},
		{settle.Instructed{Seconds: 1800, Price: settle.MaxPrice + 1}, false},
		{settle.Instructed{Seconds: 1800, Price: 0}, false},
		{settle.Instructed{Seconds: 1, Price: 1}, true},
		{settle.Instructed{Seconds: 0, Price: 1}, false},
		{settle.Instructed{Seconds: 1801, Price: 1}, false},
	} {
		c, _ := vectorCase(t)
		tt.part.Period = c.First
		c.Instructed = []settle.Instructed{tt.part}
		if _, err := settle.Settle(c); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.part, err)
		}

		c.Instructed, c.Others = nil, []settle.EventPart{{Event: flex.FlexEventID{2}, First: c.First, Last: c.Last, Meant: c.Meant, Instructed: c.Instructed}}
		if _, err := settle.Settle(c); (err == nil) != tt.ok {
			t.Errorf("of an event beside it, %+v: %v", tt.part, err)
		}
	}
}
