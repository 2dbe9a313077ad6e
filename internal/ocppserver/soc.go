package ocppserver

import (
	"math"
	"strings"
	"time"

	"flexd/internal/flex"
)

const (
	// socMeasurand is the car's state of charge, in percent.
	socMeasurand = "SoC"
	// socEvery is how often the state of charge is sent to flexd.
	socEvery = 10 * time.Minute
)

// passSoC sends flexd the state of charge of a car, if the charger reports it. flexd uses it
// to decide how much the car may discharge. It is not sent from a delayed message, which is no
// longer true. Nor is it sent if the asset may discharge but this car cannot: flexd would plan
// a discharge that cannot happen.
func (c *charger) passSoC(n *connector, v meterValue, now time.Time) {
	at := now
	if !v.At.IsZero() {
		at = v.At.Add(-c.clock.Offset)
	}
	if c.b.Discharge && (!c.capabilities.Discharges || n.refusesDischarge) {
		return
	}

	gap := now.Sub(at).Abs()
	if gap > prompt || now.Sub(n.socAt) < socEvery || n.asset.ID.IsZero() {
		return
	}

	percent, ok := socOf(v.Sampled)
	if !ok {
		return
	}

	n.socAt = now
	read := flex.Earlier(at, now).Truncate(time.Second)
	c.report(report{
		n.asset.ID,
		n.number,
		flex.Span{From: read, To: read},
		flex.BatteryStateOfCharge,
		percent,
	})
}

// socOf is the state of charge among the values of one instant.
func socOf(values []sampled) (float64, bool) {
	var percent float64
	for _, v := range values {
		unit := strings.ToLower(v.Unit)
		inPercent := unit == "" || unit == "percent" || unit == "%"
		if v.Measurand != socMeasurand || !inPercent {
			continue
		}

		percent = v.Value.value
		if percent >= 0 && percent <= 100 && !math.IsNaN(percent) {
			return percent, true
		}
	}

	return 0, false
}
