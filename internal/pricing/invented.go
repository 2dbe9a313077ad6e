package pricing

import (
	"math"
	"time"

	"flexd/internal/flex"
)

// What made-up prices look like, in pounds per megawatt-hour.
const (
	usualPrice   = 78  // of a day in spring
	winterSwing  = 16  // more in January, less in July
	eveningPeak  = 62  // at 18:00
	morningPeak  = 22  // at 08:00
	nightTrough  = 30  // at 03:30
	noonTrough   = 26  // at 13:00 in July, and nothing in January
	weekendEase  = 9   // less on Saturdays and Sundays
	windSwing    = 34  // between a calm and a windy day
	halfHourly   = 6   // from one half-hour to the next
	windyNight   = 0.9 // from this much wind on, a night's prices fall
	windyFall    = 45  // by so much: below zero
	minutesOfDay = 24 * 60
)

// InventedPrice returns the made-up price of a settlement period. The same period always has
// the same price. The shape is that of a market day: dear in the evening, cheap at night and on
// a summer's noon, and now and then below zero.
func InventedPrice(p flex.Period) flex.Price {
	local := p.Start().In(flex.London)
	minute := local.Hour()*60 + local.Minute()
	summer := (1 - math.Cos(2*math.Pi*float64(local.YearDay()-15)/365)) / 2
	day := flex.EFADayAt(p.Start())
	wind := chance(flex.Day(day).Start().Unix() / int64(24*time.Hour/time.Second))

	price := usualPrice + winterSwing*(1-2*summer)
	price += eveningPeak*bump(minute, 18*60, 130) +
		morningPeak*bump(minute, 8*60, 90)
	price -= nightTrough*bump(minute, 3*60+30, 190) +
		noonTrough*summer*bump(minute, 13*60, 150)

	if local.Weekday() == time.Saturday || local.Weekday() == time.Sunday {
		price -= weekendEase
	}

	price -= windSwing * (wind - 0.5)
	if wind > windyNight {
		price -= windyFall * bump(minute, 3*60+30, 150)
	}

	price += halfHourly * (chance(p.Start().Unix()) - 0.5)
	const hundredth = 10_000 // micro-pounds

	return flex.FromGBPPerMWh(price) / hundredth * hundredth
}

// bump is 1 at a minute of the day and falls to either side, about as wide as the width says.
func bump(minute, centre, width int) float64 {
	away := min(
		(minute-centre+minutesOfDay)%minutesOfDay,
		(centre-minute+minutesOfDay)%minutesOfDay,
	)

	x := float64(away) / float64(width)

	return math.Exp(-x * x)
}

// chance turns a number into one between 0 and 1 that looks drawn by lot, by the mixing steps
// of splitmix64.
func chance(n int64) float64 {
	z := uint64(n) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}
