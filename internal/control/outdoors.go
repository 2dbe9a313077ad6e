package control

import (
	"context"
	"fmt"
	"math"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// usualOutdoors are the lowest and the highest temperature of a day in each month, as they are
// assumed around London. They are of the order of the means of Heathrow for 1991 to 2020, to a
// degree or so, and were taken from no data set.
var usualOutdoors = [12][2]float64{
	{2.7, 8.4}, {2.8, 9.0}, {4.2, 11.7}, {6.5, 15.0}, {9.2, 18.4}, {12.3, 21.6},
	{14.3, 23.9}, {14.0, 23.4}, {11.7, 20.2}, {8.8, 15.8}, {5.5, 11.5}, {3.1, 8.8},
}

// warmest is the hour of London at which a day is warmest.
const warmest = 15

// usualAt is the temperature outdoors that is usual at an instant.
func usualAt(at time.Time) float64 {
	local := at.In(flex.London)
	day := usualOutdoors[local.Month()-1]
	hour := float64(local.Hour()) + float64(local.Minute())/60
	swing := math.Cos((hour - warmest) / 24 * 2 * math.Pi)

	return (day[0]+day[1])/2 + (day[1]-day[0])/2*swing
}

// outdoors is the temperature outdoors as it is expected.
type outdoors struct {
	off    float64 // what was read more than usual
	from   time.Time
	origin string // how it is known, in words
}

// temperatureAt is the temperature expected at an instant.
func (o *outdoors) temperatureAt(t time.Time) float64 {
	fades := math.Exp(-max(0, t.Sub(o.from).Hours()) / outdoorHold.Hours())
	return usualAt(t) + o.off*fades
}

// readOutdoors finds out how warm it is and will be outdoors: as it was read at the asset in
// the last two hours, from where it goes back to what is usual; else what is usual. One that
// is more than outdoorOff from what is usual is not believed.
func (t *heatedTank) readOutdoors(ctx context.Context, tx *store.Tx) (outdoors, error) {
	read, found, err := t.latestTemp(ctx, tx, flex.OutdoorTemperature)
	if err != nil {
		return outdoors{}, err
	}

	var o outdoors
	o.origin = "what is usual in the month at London Heathrow, as nothing was read outdoors"
	if found {
		temp := float64(read.Value) / 1e6
		o.off, o.from = temp-usualAt(read.To), read.To
		o.origin = fmt.Sprintf(
			"%.1f degrees as read at %s, and back from there to what is usual in the month at London Heathrow within some days",
			temp,
			flex.Clock(read.To, flex.London, "Mon 15:04"),
		)
	}

	return o, nil
}
