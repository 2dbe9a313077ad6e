package main

import (
	"time"

	"flexd/internal/app"
	"flexd/internal/control"
	"flexd/internal/flex"
	intake "flexd/internal/reading"
)

// retention is how long deletable records are stored, in days.
type retention struct {
	KeepReadings   int `help:"Days that readings are kept, ${default} or more." default:"462" env:"FLEXD_KEEP_READINGS" placeholder:"DAYS"`
	KeepRecords    int `help:"Days that events of assets, superseded schedules, the prices of plans, orders and limits of feeders are kept once nothing needs them, ${default} or more." default:"90" env:"FLEXD_KEEP_RECORDS" placeholder:"DAYS"`
	KeepDeliveries int `help:"Days that pushes, their attempts and callbacks are kept, 7 or more." default:"30" env:"FLEXD_KEEP_DELIVERIES" placeholder:"DAYS"`
	KeepAlerts     int `help:"Days that alerts which ended are kept, 7 or more." default:"90" env:"FLEXD_KEEP_ALERTS" placeholder:"DAYS"`
}

const (
	day = 24 * time.Hour
	// keepMax is the longest retention of anything that may be deleted: on PostgreSQL each
	// week of readings is a table.
	keepMax = 3660 * day
	// keepLeast is the shortest retention of records that are read again only in the days
	// after they were received.
	keepLeast = 7 * day
)

// read checks the flags against flexd's own needs.
func (r *retention) read() (app.Retention, error) {
	type period struct {
		flag  string
		days  int
		least time.Duration
		to    *time.Duration
	}

	var durations app.Retention
	for _, k := range []period{
		{"--keep-readings", r.KeepReadings, intake.Retention, &durations.Readings},
		{"--keep-records", r.KeepRecords, control.Retention, &durations.Records},
		{"--keep-deliveries", r.KeepDeliveries, keepLeast, &durations.Deliveries},
		{"--keep-alerts", r.KeepAlerts, keepLeast, &durations.Alerts},
	} {
		least, most := int(k.least/day), int(keepMax/day)
		if k.days < least || k.days > most {
			return app.Retention{}, flex.Fail(
				flex.Invalid,
				"%s is a number of days from %d to %d, not %d",
				k.flag,
				least,
				most,
				k.days,
			)
		}

		*k.to = time.Duration(k.days) * day
	}

	return durations, nil
}
