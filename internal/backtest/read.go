package backtest

import (
	"io"
	"strconv"
	"strings"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/forecast"
)

// MaxHalfHour is the most that a home may draw, its roof give or hot water take in a half-hour.
const MaxHalfHour flex.WattHours = 50_000

// MinOutdoor and MaxOutdoor bound a temperature outdoors, in degrees Celsius.
const MinOutdoor, MaxOutdoor = -30.0, 45.0

// Readings are a home's half-hours, as they were. A column that the file lacks has none.
type Readings struct {
	Load    forecast.Series
	Roof    forecast.Series
	Water   forecast.Series // heat that left the tank as hot water
	Outdoor map[flex.Period]float64
	First   flex.Period
	Last    flex.Period
}

// The columns of a home's half-hours.
var (
	readingsNeeded   = []string{"start", "load_kwh"}
	readingsOptional = []string{
		"roof_kwh",
		"hot_water_kwh",
		"outdoor_c",
	}
)

// ReadHome reads a CSV file of a home's half-hours, with the columns start, an instant
// with its offset, and load_kwh, what the home drew, and as far as there are such roof_kwh, what
// its roof gave, hot_water_kwh, the heat of the hot water that was used, and outdoor_c, the temperature outdoors in
// degrees Celsius. An empty field is one that is not known. All are moved by whole days, to
// lay a home of one year beside the prices of another.
func ReadHome(r io.Reader, days int) (*Readings, error) {
	h := &Readings{
		Load:    forecast.Series{},
		Roof:    forecast.Series{},
		Water:   forecast.Series{},
		Outdoor: map[flex.Period]float64{},
	}

	seen := map[flex.Period]int{}
	for row, err := range csvfile.ReadKnown(r, readingsNeeded, readingsOptional) {
		if err != nil {
			return nil, err
		}

		p, err := halfHourOf(row)
		if err != nil {
			return nil, err
		}

		p = p.Add(48 * days)
		if line, twice := seen[p]; twice {
			return nil, row.Fault(
				"start: this half-hour is in the file twice, first in line %d; where the clocks go back, "+
					"the two hours differ by their offsets, +01:00 and +00:00",
				line,
			)
		}

		seen[p] = row.Line
		if err := h.take(row, p); err != nil {
			return nil, err
		}

		if len(seen) == 1 || p.Sub(h.First) < 0 {
			h.First = p
		}

		if len(seen) == 1 || p.Sub(h.Last) > 0 {
			h.Last = p
		}
	}

	if len(seen) == 0 {
		return nil, flex.Fail(
			flex.Invalid,
			"line 2: there is no half-hour; each row after the first line is one",
		)
	}

	return h, nil
}

// halfHourOf reads a row's half-hour.
func halfHourOf(row csvfile.Row) (flex.Period, error) {
	text := row.Get("start")
	at, err := time.Parse(time.RFC3339, text)
	if err == nil && flex.PeriodAt(at).Start().Equal(at) {
		return flex.PeriodAt(at), nil
	}

	if err == nil {
		return flex.Period{}, row.Fault(
			"start: %q is not the start of a half-hour, which is at minute 00 or 30",
			text,
		)
	}

	return flex.Period{}, row.Fault(
		"start: %q is not the start of a half-hour, of the form 2026-04-14T22:30:00Z or 2026-04-14T23:30:00+01:00",
		text,
	)
}

// take adds a row's fields.
func (h *Readings) take(row csvfile.Row, p flex.Period) error {
	for _, to := range []struct {
		column string
		series forecast.Series
	}{{"load_kwh", h.Load}, {"roof_kwh", h.Roof}, {"hot_water_kwh", h.Water}} {
		kwh, known, err := numberOf(
			row,
			to.column,
			0,
			MaxHalfHour.KWh(),
			"energy in kWh",
		)
		if err != nil {
			return err
		}

		if known {
			to.series[p] = flex.FromKWh(kwh)
		}
	}

	degrees, known, err := numberOf(
		row,
		"outdoor_c",
		MinOutdoor,
		MaxOutdoor,
		"temperature in degrees Celsius",
	)
	if known {
		h.Outdoor[p] = degrees
	}

	return err
}

// numberOf reads a number within bounds, and whether there is one.
func numberOf(
	row csvfile.Row,
	column string,
	least, most float64,
	what string,
) (float64, bool, error) {
	text := row.Get(column)
	if text == "" {
		return 0, false, nil
	}

	v, err := strconv.ParseFloat(text, 64)
	if err == nil && v >= least && v <= most {
		return v, true, nil
	}

	hint := ""
	if strings.Contains(text, ",") {
		hint = "; decimals have a point"
	}

	return 0, false, row.Fault(
		"%s: %q is no %s from %g to %g%s",
		column,
		text,
		what,
		least,
		most,
		hint,
	)
}
