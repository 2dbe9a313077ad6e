package control

import (
	"context"
	"fmt"
	"math"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// usualOutdoors has the lowest and the highest temperature of a day in each month that are
// assumed around London. They are within about a degree of the means of Heathrow for 1991 to
// 2020, and were not copied from a data set.
var usualOutdoors = [12][2]float64{
	{2.7, 8.4}, {2.8, 9.0}, {4.2, 11.7}, {6.5, 15.0}, {9.2, 18.4}, {12.3, 21.6},
	{14.3, 23.9}, {14.0, 23.4}, {11.7, 20.2}, {8.8, 15.8}, {5.5, 11.5}, {3.1, 8.8},
}

// warmestHour is the hour of the day, in London, with the highest temperature.
const warmestHour = 15

// usualAt returns the usual temperature outdoors at an instant.
func usualAt(at time.Time) float64 {
	local := at.In(flex.London)
	day := usualOutdoors[local.Month()-1]
	hour := float64(local.Hour()) + float64(local.Minute())/60
	swing := math.Cos((hour - warmestHour) / 24 * 2 * math.Pi)

	return (day[0]+day[1])/2 + (day[1]-day[0])/2*swing
}

// outdoors is a forecast of the temperature outdoors.
type outdoors struct {
	offset float64 // by how much the reading exceeds the usual temperature
	from   time.Time
	origin string // the origin of the forecast, in words
}

// temperatureAt returns the expected temperature at an instant.
func (o *outdoors) temperatureAt(t time.Time) float64 {
	fades := math.Exp(-max(0, t.Sub(o.from).Hours()) / outdoorDecay.Hours())
	return usualAt(t) + o.offset*fades
}

// readOutdoors reads the forecast of the temperature outdoors: a reading of the last two hours
// at the asset, from which it returns to the usual temperature; or else the usual temperature.
// Readings that are not plausible are ignored.
func (t *heatedTank) readOutdoors(ctx context.Context, tx *store.Tx) (outdoors, error) {
	read, found, err := t.latestTemp(ctx, tx, flex.OutdoorTemperature)
	if err != nil {
		return outdoors{}, err
	}

	var o outdoors
	o.origin = "what is usual in the month at London Heathrow, as nothing was read outdoors"
	if found {
		temp := float64(read.Value) / 1e6
		o.offset, o.from = temp-usualAt(read.To), read.To
		o.origin = fmt.Sprintf(
			"%.1f degrees as read at %s, and back from there to what is usual in the month at London Heathrow within some days",
			temp,
			flex.Clock(read.To, flex.London, "Mon 15:04"),
		)
	}

	return o, nil
}
