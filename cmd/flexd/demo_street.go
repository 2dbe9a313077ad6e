package main

import (
	"time"

	"flexd/internal/flex"
	"flexd/street"
)

// demoMPANs are metering points of the demo's directory; the last is free for the reader.
var demoMPANs = []string{"1099000010005", "1299000012001", "1499000014008", "1699000016004", "1899000018000", "2099000020006"}

// demoMeters is the directory of the demo, in the form that `flexd meters import` reads.
const demoMeters = `mpan,direction,address,postcode,uprn,energised,half_hourly_settled,domestic,supplier_mpid,supplier_name,gsp_group
1099000010005,import,"1 High Street, London",SW1A 1AA,101,true,true,true,DEMO,Demo Supplier,_C
1299000012001,import,"2 High Street, London",SW1A 1AA,102,true,true,true,DEMO,Demo Supplier,_C
1499000014008,import,"3 High Street, London",SW1A 1AA,103,true,true,true,DEMO,Demo Supplier,_C
1699000016004,import,"4 High Street, London",SW1A 1AA,104,true,true,true,DEMO,Demo Supplier,_C
1899000018000,import,"5 High Street, London",SW1A 1AA,105,true,true,true,DEMO,Demo Supplier,_C
2099000020006,import,"10 High Street, London",SW1A 1AA,110,true,true,true,DEMO,Demo Supplier,_C
`

// demoModels is the demo's catalogue, in the form that `flexd models import` reads.
const demoModels = `name,type,cop11_qualified,power_kw,capacity_kwh
Wallbox 7,charger,true,7.4,
Wallbox 11,charger,false,11,
Home Battery 10,battery,true,5,10
`

// demoVisits are the cars of the evening that begins at the instant.
func demoVisits(start time.Time) []*street.Visit {
	at := func(hours float64) time.Time { return start.Add(time.Duration(hours * float64(time.Hour))) }
	const night = "00:00-05:30, 23:30-24:00"
	return []*street.Visit{
		{
			Name: "leaf", Power: 7400, Arrive: at(0.5), Leave: at(13.5), NeedKWh: 12, ReadyBy: "07:00:00",
			OffPeak: night, Mode: flex.Minimise, Why: "the cheapest hours of the night are enough",
		},
		{
			Name: "zoe", Power: 7400, Arrive: at(1), Leave: at(13.75), NeedKWh: 20, ReadyBy: "07:00:00",
			OffPeak: night, Mode: flex.Maximise, Why: "every off-peak hour is welcome",
		},
		{
			Name: "kona", Power: 7400, Arrive: at(1.5), Leave: at(13), NeedKWh: 60, ReadyBy: "06:30:00",
			OffPeak: night, Mode: flex.Minimise, Why: "more than the off-peak hours can give; peak is not permitted",
		},
		{
			Name: "ioniq", Power: 11000, Arrive: at(2), Leave: at(12.5), NeedKWh: 80, ReadyBy: "06:00:00",
			OffPeak: night, Mode: flex.Minimise, MayChargePeak: true, Why: "peak is permitted for what is missing",
		},
		{
			Name: "mini", Power: 7400, Arrive: at(2.5), Leave: at(13.25), NeedKWh: 15, ReadyBy: "07:00:00",
			OffPeak: night, Mode: flex.Minimise, ChargeNow: time.Hour, Why: "and soon cannot wait",
		},
	}
}
