package flex

import (
	"time"
	_ "time/tzdata" // the zone rules travel with the program
)

// HalfHour is the length of a settlement period.
const HalfHour = 30 * time.Minute

// London is the zone that settlement days, price publication and dispatch plans run in.
var London = mustZone("Europe/London")

func mustZone(name string) *time.Location {
	l, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}

	return l
}

// Period is a half-hour settlement period, named by its first instant in UTC.
type Period struct{ start int64 } // half-hours since the Unix epoch

// PeriodAt returns the period that holds the instant.
func PeriodAt(at time.Time) Period {
	s := at.Unix()
	return Period{(s - mod(s, 1800)) / 1800}
}

func mod(a, b int64) int64 { return (a%b + b) % b }

// Start returns the period's first instant.
func (p Period) Start() time.Time { return time.Unix(p.start*1800, 0).UTC() }

// End returns the first instant after the period.
func (p Period) End() time.Time { return p.Add(1).Start() }

// Span returns the period's time.
func (p Period) Span() Span { return Span{p.Start(), p.End()} }

// Add returns the period n half-hours later.
func (p Period) Add(n int) Period { return Period{p.start + int64(n)} }

// Sub returns the number of half-hours from o to p.
func (p Period) Sub(o Period) int { return int(p.start - o.start) }

// Before reports whether p comes before o.
func (p Period) Before(o Period) bool { return p.start < o.start }

// Day is a settlement day: a calendar day in London, with 48 periods, or 46 or 50 when
// the clocks change.
type Day struct {
	Year  int
	Month time.Month
	Dom   int
}

// DayAt returns the London day that holds the instant.
func DayAt(at time.Time) Day {
	y, m, d := at.In(London).Date()
	return Day{y, m, d}
}

// ParseDay reads YYYY-MM-DD.
func ParseDay(s string) (Day, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return Day{}, err
	}

	return Day{t.Year(), t.Month(), t.Day()}, nil
}

// Start returns the day's local midnight.
func (d Day) Start() time.Time {
	return time.Date(d.Year, d.Month, d.Dom, 0, 0, 0, 0, London).UTC()
}

// Add returns the day n days later.
func (d Day) Add(n int) Day {
	t := time.Date(d.Year, d.Month, d.Dom+n, 0, 0, 0, 0, time.UTC)
	return Day{t.Year(), t.Month(), t.Day()}
}

// Span returns the day's time, 23, 24 or 25 hours.
func (d Day) Span() Span { return Span{d.Start(), d.Add(1).Start()} }

// Periods returns the number of settlement periods in the day.
func (d Day) Periods() int { return int(d.Span().Len() / HalfHour) }

// Period returns settlement period n of the day, counted from 1.
func (d Day) Period(n int) Period { return PeriodAt(d.Start()).Add(n - 1) }

// Weekday returns the day of the week.
func (d Day) Weekday() time.Weekday {
	return time.Date(d.Year, d.Month, d.Dom, 0, 0, 0, 0, time.UTC).Weekday()
}

// String writes the day as YYYY-MM-DD.
func (d Day) String() string {
	return time.Date(
		d.Year,
		d.Month,
		d.Dom,
		0,
		0,
		0,
		0,
		time.UTC,
	).Format(time.DateOnly)
}

// SettlementPeriod returns the period's London day and its number in that day, from 1.
func (p Period) SettlementPeriod() (Day, int) {
	d := DayAt(p.Start())
	return d, p.Sub(PeriodAt(d.Start())) + 1
}
