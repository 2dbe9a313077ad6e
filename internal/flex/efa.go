package flex

import "time"

// EFADay is a day as the exchanges trade it: from 23:00 in London on the day before
// the one that names it to 23:00 on that day, in six blocks of four hours on the wall.
// The first block is an hour shorter or longer when the clocks change.
type EFADay Day

// EFABlocks is the number of blocks in an EFA day.
const EFABlocks = 6

// EFADayAt returns the EFA day that holds the instant.
func EFADayAt(at time.Time) EFADay {
	d := DayAt(at)
	if at.Before(EFADay(d).Span().To) {
		return EFADay(d)
	}

	return EFADay(d.Add(1))
}

// Span returns the day's time, 23, 24 or 25 hours.
func (d EFADay) Span() Span {
	return Span{d.Block(1).From, d.Block(EFABlocks).To}
}

// Block returns block n of the day, counted from 1.
func (d EFADay) Block(n int) Span {
	return Span{d.hour(4*n - 5), d.hour(4*n - 1)}
}

// hour returns the instant at which London's clocks show the hour of the day, -1 being
// the last of the day before. None of the block boundaries is ever skipped or doubled.
func (d EFADay) hour(h int) time.Time {
	return time.Date(d.Year, d.Month, d.Dom, h, 0, 0, 0, London).UTC()
}

// Add returns the EFA day n days later.
func (d EFADay) Add(n int) EFADay { return EFADay(Day(d).Add(n)) }

// String writes the day that names it as YYYY-MM-DD.
func (d EFADay) String() string { return Day(d).String() }

// CurveHorizon returns the time that a price curve asked for now covers: from the
// start of the current settlement period to 23:00 in London today, or tomorrow if the
// curves up to that EFA day or a later one have been published. After 23:00 and before
// that, the span is empty.
func CurveHorizon(now time.Time, published EFADay) Span {
	last := EFADay(DayAt(now))
	if next := last.Add(1); !published.Span().To.Before(next.Span().To) {
		last = next
	}

	return Span{PeriodAt(now).Start(), last.Span().To}
}
