package flex

import (
	"fmt"
	"time"
)

// CallsMost is the largest number of calls in a day or a month that can be agreed to.
const CallsMost = 1000

// AgreedCalls is how often a household agreed to be called by instructions of the grid. Where nothing is given
// there is no limit. An instruction is one call of a site, however many of its assets it calls, in the London day
// and month in which it begins.
type AgreedCalls struct {
	PerDay   Optional[int]
	PerMonth Optional[int]
}

// Check refuses numbers that cannot be agreed to.
func (c AgreedCalls) Check() error {
	for _, n := range []Optional[int]{c.PerDay, c.PerMonth} {
		if n.Value < 0 || n.Value > CallsMost {
			return Fail(
				Malformed,
				"agreed calls: %d calls are not 0 to %d",
				n.Value,
				CallsMost,
			)
		}
	}

	return nil
}

// String says it in a few words.
func (c AgreedCalls) String() string {
	text := "any number of calls"
	if c.PerDay.Given {
		text = fmt.Sprintf("%d a day", c.PerDay.Value)
	}

	if c.PerDay.Given && c.PerMonth.Given {
		return fmt.Sprintf("%s, %d a month", text, c.PerMonth.Value)
	}

	if c.PerMonth.Given {
		text = fmt.Sprintf("%d a month", c.PerMonth.Value)
	}

	return text
}

// CallCount is how many calls a site had, or has ahead, in a London day and its calendar month.
type CallCount struct {
	Day   int
	Month int
}

// SpentCalls is a limit of agreed calls that is reached.
type SpentCalls struct {
	Calls   int
	Monthly bool // of the month; else of the day
}

// Spent returns the limit that a count has reached, the month's first; not given for none. No calls at all is one limit,
// whatever it is of.
func (c AgreedCalls) Spent(n CallCount) Optional[SpentCalls] {
	if c.PerMonth.Given && n.Month >= c.PerMonth.Value {
		return Some(SpentCalls{Calls: c.PerMonth.Value, Monthly: c.PerMonth.Value > 0})
	}

	if c.PerDay.Given && n.Day >= c.PerDay.Value {
		return Some(SpentCalls{Calls: c.PerDay.Value})
	}

	return Optional[SpentCalls]{}
}

// MonthOf is the time of the London calendar month that holds an instant.
func MonthOf(at time.Time) Span {
	d := DayAt(at)
	first := Day{d.Year, d.Month, 1}
	last := Day{d.Year, d.Month + 1, 0}.Add(0)

	return Span{first.Start(), last.Add(1).Start()}
}
