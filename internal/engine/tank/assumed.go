package tank

import (
	"time"

	"flexd/internal/flex"
)

// What a tank is taken to be of which nothing was set.
const (
	// Low and High are its comfort band in degrees Celsius, Cold what comes in from the mains.
	Low, High, Cold = 45.0, 60.0, 10.0
	// Volume is in litres: with the band it is the heat between its ends.
	Volume = 200.0
	// DailyDraw is what a household draws in a day: 5.845 kWh, tapping cycle M of EU regulation 814/2013.
	DailyDraw flex.WattHours = 5845
	// DailyLoss is what the tank loses in a day.
	DailyLoss flex.WattHours = 1600
)

// hourly is the part of a day's draw in each hour of London, in hundredths: most of it in the morning
// and in the evening.
var hourly = [24]int{7: 25, 8: 15, 11: 5, 12: 5, 17: 5, 18: 10, 19: 10, 20: 15, 21: 10}

// DrawnIn is the heat in Wh that is drawn in a half-hour of the day, 0 to 47, with so much drawn in the day.
func DrawnIn(slot int, daily flex.WattHours) int {
	return int(daily) * hourly[slot/2] / 200
}

// Used is the heat in Wh that leaves a tank in a part of an hour, lost and drawn, with so much drawn in the day.
func Used(s flex.Span, daily flex.WattHours) int {
	hour := s.From.In(flex.London).Hour()
	hot := int64(daily) * int64(hourly[hour]) / 100 // in an hour
	loss := int64(DailyLoss) / 24
	return int((hot + loss) * int64(s.Len()/time.Second) / 3600)
}
