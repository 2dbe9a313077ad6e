package backtest

import (
	"io"
	"strconv"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/forecast"
)

// MaxHalfHour is the most that a home may draw or its roof give in a half-hour.
const MaxHalfHour flex.WattHours = 50_000

// ReadHome reads a CSV file of a home's half-hours, with the columns start, an instant
// with its offset, and load_kwh, what the home drew, and, if there is one, roof_kwh, what
// its roof gave. An empty load is one that is not known. All are moved by whole days, to
// lay a home of one year beside the prices of another.
func ReadHome(r io.Reader, days int) (load, roof forecast.Series, err error) {
	load, roof = forecast.Series{}, forecast.Series{}
	for row, err := range csvfile.Read(r, "start", "load_kwh") {
		if err != nil {
			return nil, nil, err
		}

		at, err := time.Parse(time.RFC3339, row.Get("start"))
		p := flex.PeriodAt(at)
		if err != nil || !p.Start().Equal(at) {
			return nil, nil, row.Fault(
				"start: %q is not the start of a half-hour, of the form 2026-04-14T22:30:00Z",
				row.Get("start"),
			)
		}

		p = p.Add(48 * days)
		if _, twice := load[p]; twice {
			return nil, nil, row.Fault("start: this half-hour is in the file twice")
		}

		for column, to := range map[string]forecast.Series{
			"load_kwh": load,
			"roof_kwh": roof,
		} {
			text := row.Get(column)
			if text == "" {
				continue
			}

			kwh, err := strconv.ParseFloat(text, 64)
			if err != nil || !(kwh >= 0 && kwh <= MaxHalfHour.KWh()) {
				return nil, nil, row.Fault(
					"%s: %q is no energy from 0 to %g",
					column,
					text,
					MaxHalfHour.KWh(),
				)
			}

			to[p] = flex.FromKWh(kwh)
		}
	}

	return load, roof, nil
}
