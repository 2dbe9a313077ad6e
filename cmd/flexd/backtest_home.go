package main

import (
	"fmt"
	"os"
	"time"

	"flexd/internal/backtest"
	"flexd/internal/flex"
)

// runHome tests a home with a car.
func (b *backtestCommand) runHome(c console, test *backtest.Case) error {
	if b.SVG != "" {
		return flex.Fail(
			flex.Invalid,
			"--svg draws a battery's bills: leave it out beside --sessions",
		)
	}

	stays, err := b.readStays()
	if err != nil {
		return err
	}

	reported := time.Now()
	result := backtest.RunHome(
		&backtest.HomeCase{Case: *test, Stays: stays},
		func(done, total int) {
			if time.Since(reported) > time.Second {
				fmt.Fprintf(c.err, "%d of %d days\n", done, total)
				reported = time.Now()
			}
		},
	)

	if len(result.Bills) == 0 {
		return noDay(test)
	}

	if b.JSON {
		return c.json(homeBacktestJSON(&result))
	}

	return result.Table(c.out)
}

// noDay is the failure of a test without a day that counts.
func noDay(test *backtest.Case) error {
	return flex.Fail(
		flex.Invalid,
		"no day from %s to %s has all its loads and prices",
		test.From,
		test.To,
	)
}

// readStays reads the file of the car's stays, moved by whole days as the readings are.
func (b *backtestCommand) readStays() ([]backtest.CarStay, error) {
	if !(b.CarPower > 0 && flex.FromKW(b.CarPower) <= backtest.MaxPower) {
		return nil, flex.Fail(
			flex.Invalid,
			"--car-power: %g is no power above 0, up to %g",
			b.CarPower,
			backtest.MaxPower.KW(),
		)
	}

	f, err := os.Open(b.Sessions)
	if err != nil {
		return nil, err
	}

	defer f.Close()

	stays, err := backtest.ReadStays(f, flex.FromKW(b.CarPower))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Sessions, err)
	}

	shift := time.Duration(b.Shift) * 24 * time.Hour
	for i := range stays {
		stays[i].From = stays[i].From.Add(shift)
		stays[i].To = stays[i].To.Add(shift)
	}

	return stays, nil
}

// homeBillsRow are the bills of a home with a car, in pence.
type homeBillsRow struct {
	Day       string  `json:"day,omitempty"`
	Unsteered float64 `json:"unsteered_pence"`
	Alone     float64 `json:"each_by_itself_pence"`
	Together  float64 `json:"as_one_pence"`
}

// homeBacktestJSON is a result as a program reads it.
func homeBacktestJSON(r *backtest.HomeResult) fields {
	row := func(day string, b backtest.HomeBills) homeBillsRow {
		return homeBillsRow{
			Day:       day,
			Unsteered: b.Unsteered,
			Alone:     b.Alone,
			Together:  b.Together,
		}
	}

	days := []homeBillsRow{}
	for _, b := range r.Bills {
		days = append(days, row(b.Day.String(), b.HomeBills))
	}

	return fields{
		"days":              days,
		"total":             row("", r.Total),
		"bound_pence":       r.Bound,
		"home_kwh":          r.HomeDrawn.KWh(),
		"car_kwh":           r.CarCharged.KWh(),
		"num_stays":         r.Counted,
		"num_stays_dropped": r.Dropped,
		"num_needs_missed":  r.Missed,
		"num_days_skipped":  r.Skipped,
	}
}
