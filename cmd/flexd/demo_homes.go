package main

import (
	"time"

	"flexd/internal/flex"
	"flexd/sim"
)

// demoMPANs lists the metering points of the demo's directory, one for each home; the last is
// free for the reader.
var demoMPANs = []string{
	"1299000012001",
	"1499000014008",
	"1699000016004",
	"1899000018000",
	"2199000021004",
	"2299000022002",
	"2399000023000",
	"1999000019009",
	"2099000020006",
}

// demoMeters is the directory of the demo, in the form that `flexd meters import` reads.
const demoMeters = `mpan,direction,address,postcode,uprn,energised,half_hourly_settled,domestic,supplier_mpid,supplier_name,gsp_group
1299000012001,import,"1 High Street, London",SW1A 1AA,101,true,true,true,DEMO,Demo Supplier,_C
1499000014008,import,"2 High Street, London",SW1A 1AA,102,true,true,true,DEMO,Demo Supplier,_C
1699000016004,import,"3 High Street, London",SW1A 1AA,103,true,true,true,DEMO,Demo Supplier,_C
1899000018000,import,"4 High Street, London",SW1A 1AA,104,true,true,true,DEMO,Demo Supplier,_C
2199000021004,import,"5 High Street, London",SW1A 1AA,105,true,true,true,DEMO,Demo Supplier,_C
2299000022002,import,"6 High Street, London",SW1A 1AA,106,true,true,true,DEMO,Demo Supplier,_C
2399000023000,import,"7 High Street, London",SW1A 1AA,107,true,true,true,DEMO,Demo Supplier,_C
1999000019009,import,"8 High Street, London",SW1A 1AA,108,true,true,true,DEMO,Demo Supplier,_C
2099000020006,import,"10 High Street, London",SW1A 1AA,110,true,true,true,DEMO,Demo Supplier,_C
`

// demoModels is the demo's catalogue, in the form that `flexd models import` reads.
const demoModels = `name,type,cop11_qualified,power_kw,capacity_kwh
Wallbox 7,charger,true,7.4,
Wallbox 11,charger,false,11,
Home Battery 10,battery,true,5,10
`

// eveningClock returns the instants of an evening by hours after its start.
type eveningClock struct{ start time.Time }

// at uses local time, also in the night of a clock change.
func (c eveningClock) at(hours float64) time.Time {
	local := c.start.In(flex.London)
	return time.Date(
		local.Year(),
		local.Month(),
		local.Day(),
		local.Hour(),
		local.Minute()+int(hours*60),
		0,
		0,
		flex.London,
	).UTC()
}

func (c eveningClock) span(from, to float64) flex.Span {
	return flex.Span{From: c.at(from), To: c.at(to)}
}

// night is the tariff's cheap time.
const night = "00:00-05:30, 23:30-24:00"

// demoVisits are the cars of the evening that begins at the instant, each a case of its own.
func demoVisits(start time.Time) []*sim.Visit {
	clock := eveningClock{start}
	return append(plannedVisits(clock.at), disturbedVisits(clock)...)
}

// plannedVisits are the cars that go by their plans.
func plannedVisits(at func(float64) time.Time) []*sim.Visit {
	return []*sim.Visit{
		{
			Name:    "leaf",
			Power:   7400,
			Arrive:  at(0.5),
			Leave:   at(13.5),
			NeedKWh: 12,
			ReadyBy: "07:00:00",
			OffPeak: night,
			Mode:    flex.Minimise,
			Case:    "Cheapest hours",
			Why:     "they are enough",
		},

		{
			Name:    "zoe",
			Power:   7400,
			Arrive:  at(1),
			Leave:   at(13.25),
			NeedKWh: 20,
			ReadyBy: "07:00:00",
			OffPeak: night,
			Mode:    flex.Maximise,
			Case:    "Maximise",
			Why:     "every off-peak hour is welcome",
		},

		{
			Name:    "kona",
			Power:   7400,
			Arrive:  at(1.5),
			Leave:   at(13),
			NeedKWh: 60,
			ReadyBy: "06:30:00",
			OffPeak: night,
			Mode:    flex.Minimise,
			Case:    "Unmet need",
			Why:     "off-peak hours cannot give so much, and peak is not permitted",
		},

		{
			Name:          "ioniq",
			Power:         11000,
			Arrive:        at(2),
			Leave:         at(12.5),
			NeedKWh:       80,
			ReadyBy:       "06:00:00",
			OffPeak:       night,
			Mode:          flex.Minimise,
			MayChargePeak: true,
			Case:          "Peak allowed",
			Why:           "only for what is missing",
		},
	}
}

// disturbedVisits are the cars whose user, charger or own schedule changes the plan.
func disturbedVisits(clock eveningClock) []*sim.Visit {
	at := clock.at
	return []*sim.Visit{
		{
			Name:      "mini",
			Power:     7400,
			Arrive:    at(2.5),
			Leave:     at(13.25),
			NeedKWh:   15,
			ReadyBy:   "07:00:00",
			OffPeak:   night,
			Mode:      flex.Minimise,
			ChargeNow: time.Hour,
			Case:      "Charge now",
			Why:       "soon it cannot wait",
		},

		{
			Name:    "fiat",
			Power:   7400,
			Arrive:  at(2.75),
			Leave:   at(13.5),
			NeedKWh: 12,
			ReadyBy: "07:00:00",
			OffPeak: night,
			Mode:    flex.Minimise,
			Trips:   clock.span(9.5, 10.25),
			Case:    "Flaky charger",
			Why:     "what it fails to give is planned again",
		},

		{
			Name:    "van",
			Power:   7400,
			Arrive:  at(3),
			Leave:   at(13.5),
			Own:     clock.span(6, 9.5),
			NeedKWh: 22.2,
			Case:    "Limited pause",
			Why:     "flexd may pause it for one half-hour",
		},
	}
}

// demoBatteries are the home batteries of the evening.
func demoBatteries() []*sim.Battery {
	return []*sim.Battery{{
		Name: "box", Power: 3000, Capacity: 8000, Load: 400, Stored: 4800,
		Why: "it follows the market, and is paid where a price is below zero",
	}}
}

// windy are the half-hours, counted from the evening's start, whose revised prices are below
// zero. These are the only prices that are not the market's own.
const (
	windyFrom  = 9*time.Hour + 30*time.Minute
	windyTo    = 11 * time.Hour
	windyPrice = -25 // GBP/MWh
)
