package settle

import (
	"time"

	"flexd/internal/flex"
)

// The years for which bank holidays are computed. The rules hold for all of them. Exceptions
// are known as far as they were proclaimed; a future one is given in Rule.Holidays until it is
// added to the table below.
const (
	FirstHolidayYear = 2011
	LastHolidayYear  = 2099
)

// moved lists the exceptions to the rules in England and Wales: days that are bank holidays
// (true), and days that are not although the rule says so (false).
var moved = map[flex.Day]bool{
	{Year: 2011, Month: time.April, Dom: 29}: true, // a royal wedding
	// spring, moved beside the jubilee
	{Year: 2012, Month: time.May, Dom: 28}: false,
	{Year: 2012, Month: time.June, Dom: 4}: true,
	{Year: 2012, Month: time.June, Dom: 5}: true, // the Diamond Jubilee
	// early May, moved to VE Day
	{Year: 2020, Month: time.May, Dom: 4}: false,
	{Year: 2020, Month: time.May, Dom: 8}: true,
	// spring, moved beside the jubilee
	{Year: 2022, Month: time.May, Dom: 30}:       false,
	{Year: 2022, Month: time.June, Dom: 2}:       true,
	{Year: 2022, Month: time.June, Dom: 3}:       true, // the Platinum Jubilee
	{Year: 2022, Month: time.September, Dom: 19}: true, // a state funeral
	{Year: 2023, Month: time.May, Dom: 8}:        true, // the coronation
}

// bankHolidays is the set of bank holidays by day number, from the rules and the exceptions.
var bankHolidays = func() map[int32]bool {
	all := map[int32]bool{}
	for y := FirstHolidayYear; y <= LastHolidayYear; y++ {
		for _, d := range usualHolidays(y) {
			all[number(d)] = true
		}
	}
	for d, added := range moved {
		if added {
			all[number(d)] = true
		} else {
			delete(all, number(d))
		}
	}
	return all
}()

// BankHoliday reports whether the day is a bank holiday in England and Wales.
func BankHoliday(d flex.Day) bool { return bankHolidays[number(d)] }

// Working reports whether the day is a working day: no Saturday, no Sunday, and no bank
// holiday in England and Wales.
func Working(d flex.Day) bool {
	if w := d.Weekday(); w == time.Saturday || w == time.Sunday {
		return false
	}
	return !BankHoliday(d)
}

// ClockChange reports whether the clocks change on the day, so that it does not have 48
// settlement periods.
func ClockChange(d flex.Day) bool {
	if d.Month != time.March && d.Month != time.October || d.Dom < 25 {
		return false // the last Sundays of these months
	}
	return d.Periods() != UsualPeriods
}

// UsualPeriods is the number of settlement periods in a day without a clock change.
const UsualPeriods = 48

// number counts days from the Unix epoch, so that days can be compared and subtracted.
func number(d flex.Day) int32 {
	return int32(time.Date(
		d.Year,
		d.Month,
		d.Dom,
		0,
		0,
		0,
		0,
		time.UTC,
	).Unix() / 86400)
}

// usualHolidays lists the year's eight holidays by the usual rules.
func usualHolidays(y int) []flex.Day {
	easter := easterSunday(y)

	christmas, boxing := flex.Day{
		Year:  y,
		Month: time.December,
		Dom:   25,
	}, flex.Day{
		Year:  y,
		Month: time.December,
		Dom:   26,
	}

	switch christmas.Weekday() {
	case time.Friday: // Boxing Day is on a Saturday: the holiday is the Monday
		boxing = boxing.Add(2)

	case time.Saturday: // both on the weekend: Monday and Tuesday
		christmas, boxing = christmas.Add(2), boxing.Add(2)

	case time.Sunday: // Boxing Day is the Monday; the holiday for Christmas is the Tuesday
		christmas = christmas.Add(2)
	}

	return []flex.Day{
		weekdayOn(flex.Day{
			Year:  y,
			Month: time.January,
			Dom:   1,
		}),
		easter.Add(-2), easter.Add(1),
		mondayFrom(flex.Day{
			Year:  y,
			Month: time.May,
			Dom:   1,
		}),
		mondayFrom(flex.Day{
			Year:  y,
			Month: time.May,
			Dom:   25,
		}),
		mondayFrom(flex.Day{
			Year:  y,
			Month: time.August,
			Dom:   25,
		}),
		christmas, boxing,
	}
}

// weekdayOn returns the day, or the Monday after it if it falls on a weekend.
func weekdayOn(d flex.Day) flex.Day {
	switch d.Weekday() {
	case time.Saturday:
		return d.Add(2)
	case time.Sunday:
		return d.Add(1)
	}

	return d
}

// mondayFrom returns the first Monday on or after the day.
func mondayFrom(d flex.Day) flex.Day {
	return d.Add((int(time.Monday) - int(d.Weekday()) + 7) % 7)
}

// easterSunday returns Easter of the Gregorian calendar, by the method of Meeus.
func easterSunday(y int) flex.Day {
	a := y % 19
	b := y / 100
	c := y % 100
	h := (19*a + b - b/4 - (b-(b+8)/25+1)/3 + 15) % 30
	l := (32 + 2*(b%4) + 2*(c/4) - h - c%4) % 7
	m := (a + 11*h + 22*l) / 451
	n := h + l - 7*m + 114

	return flex.Day{
		Year:  y,
		Month: time.Month(n / 31),
		Dom:   n%31 + 1,
	}
}
