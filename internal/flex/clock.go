package flex

import (
	"strconv"
	"strings"
	"time"
)

// zoned puts the zone's name behind the time of day in a layout.
var zoned = strings.NewReplacer(
	"15:04:05",
	"15:04:05 MST",
	"15:04",
	"15:04 MST",
)

// Clock writes an instant as clocks in the zone show it, in a layout of package time. In the hour
// that comes twice, on the night when the clocks go back, the name of the zone follows the time of
// day ("01:30 BST", "01:30 GMT"): without it two instants would read the same.
func Clock(at time.Time, zone *time.Location, layout string) string {
	local := at.In(zone)
	if comesTwice(local) {
		layout = zoned.Replace(layout)
	}

	return local.Format(layout)
}

// comesTwice reports whether the clocks of its zone show the same time an hour before or after.
func comesTwice(local time.Time) bool {
	const wall = "2006-01-02T15:04:05"
	shown := local.Format(wall)
	return local.Add(-time.Hour).Format(wall) == shown ||
		local.Add(time.Hour).Format(wall) == shown
}

// Pounds writes the price in pounds with two decimals and no unit: "£54.10", "−£25.00".
func (p Price) Pounds() string {
	sign := ""
	if p < 0 {
		sign, p = "−", -p
	}

	return sign + "£" + strconv.FormatFloat(p.GBPPerMWh(), 'f', 2, 64)
}
