package main

import (
	"fmt"
	"os"
	"time"

	"flexd/internal/backtest"
	"flexd/internal/flex"
)

// homeDevices are the flags of what a home has beside a battery.
type homeDevices struct {
	CarPower    float64  `help:"The power of each car's charger in kW." default:"7.4"`
	Tank        float64  `help:"Add a hot-water tank of this many litres; 0: none." placeholder:"LITRES"`
	Element     float64  `help:"The power of the tank's element in kW." default:"3"`
	HotWater    float64  `help:"Hot water used in a day in kWh, where the readings have no hot_water_kwh." default:"5.845"`
	HeatPump    float64  `help:"Add a heat pump that takes at most this many kW, in a house that it suits; 0: none. The readings need outdoor_c." placeholder:"KW"`
	Comfort     string   `help:"The comfort band of the rooms in degrees Celsius." default:"19-22"`
	Fuse        float64  `help:"The main fuse in kW; 0: none that binds." placeholder:"KW"`
	ExportLimit *float64 `help:"The most that may be exported in kW; without it no limit." placeholder:"KW"`
}

// The limits of a home's devices, in kW, kWh and litres.
const (
	backtestBatteryPower    = 100.0
	backtestBatteryCapacity = 1000.0
	backtestTankLeast       = 50.0
	backtestTankMost        = 1000.0
	backtestElementMost     = 12.0
	backtestHotWaterMost    = 50.0
	backtestHeatPumpMost    = 30.0
	backtestGridMost        = 500.0
)

// inBounds fails for a device that no home has.
func (b *backtestCommand) inBounds() error {
	for _, f := range []struct {
		name        string
		value       float64
		least, most float64
	}{
		{"--power", b.Power, 0, backtestBatteryPower},
		{"--capacity", b.Capacity, 0, backtestBatteryCapacity},
		{
			"--car-power",
			b.CarPower,
			0.1,
			backtest.MaxPower.KW(),
		},
		{"--element", b.Element, 0.1, backtestElementMost},
		{"--hot-water", b.HotWater, 0, backtestHotWaterMost},
		{"--heat-pump", b.HeatPump, 0, backtestHeatPumpMost},
		{"--fuse", b.Fuse, 0, backtestGridMost},
	} {
		if !(f.value >= f.least && f.value <= f.most) {
			return flex.Fail(
				flex.Invalid,
				"%s is %g: it should be from %g to %g",
				f.name,
				f.value,
				f.least,
				f.most,
			)
		}
	}

	if b.Tank != 0 && !(b.Tank >= backtestTankLeast && b.Tank <= backtestTankMost) {
		return flex.Fail(
			flex.Invalid,
			"--tank is %g: it should be from %g to %g litres, or 0 for none",
			b.Tank,
			backtestTankLeast,
			backtestTankMost,
		)
	}

	if e := b.ExportLimit; e != nil && !(*e >= 0 && *e <= backtestGridMost) {
		return flex.Fail(
			flex.Invalid,
			"--export-limit is %g: it should be from 0 to %g",
			*e,
			backtestGridMost,
		)
	}

	return nil
}

// whole reports whether the home has more than a battery and a roof.
func (b *backtestCommand) whole() bool {
	devices := b.Sessions != "" || b.Tank > 0 || b.HeatPump > 0
	return devices || b.Fuse > 0 || b.ExportLimit != nil
}

// add adds the devices to a case, with what was read of them.
func (b *backtestCommand) add(
	test *backtest.HomeCase,
	read *backtest.Readings,
) error {
	test.Fuse = flex.FromKW(b.Fuse)
	if b.ExportLimit != nil {
		limit := flex.FromKW(*b.ExportLimit)
		test.Export = &limit
	}

	if b.Tank > 0 {
		test.Tank = &backtest.Tank{
			Element: flex.FromKW(b.Element),
			Litres:  b.Tank,
			Daily:   flex.FromKWh(b.HotWater),
		}

		if len(read.Water) > 0 {
			test.Tank.Drawn = read.Water
		}
	}

	if err := b.addHeatPump(test, read); err != nil || b.Sessions == "" {
		return err
	}

	all, err := b.readStays()
	if err != nil {
		return err
	}

	test.Cars, err = backtest.ByCar(all)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Sessions, err)
	}

	return nil
}

// addHeatPump adds the heat pump, if there is one.
func (b *backtestCommand) addHeatPump(
	test *backtest.HomeCase,
	read *backtest.Readings,
) error {
	if b.HeatPump == 0 {
		return nil
	}

	h := &backtest.HeatPump{
		Power:   flex.FromKW(b.HeatPump),
		Outdoor: read.Outdoor,
	}
	if _, err := fmt.Sscanf(b.Comfort, "%g-%g", &h.Low, &h.High); err != nil {
		return flex.Fail(
			flex.Invalid,
			"--comfort %q is no band of the form 19-22",
			b.Comfort,
		)
	}

	if !(h.Low >= 5 && h.High > h.Low && h.High <= 30) {
		return flex.Fail(
			flex.Invalid,
			"--comfort %q: a band lies within 5 to 30, the lower end first",
			b.Comfort,
		)
	}

	if len(read.Outdoor) == 0 {
		return flex.Fail(
			flex.Invalid,
			"%s: --heat-pump needs the column outdoor_c, the temperature outdoors in degrees Celsius of each half-hour",
			b.Readings,
		)
	}

	test.Heat = h

	return nil
}

// runHome tests a home with more than a battery.
func (b *backtestCommand) runHome(
	c console,
	test *backtest.HomeCase,
) error {
	result := backtest.RunHome(test, progressTo(c))
	notesTo(c, result.Notes)
	if len(result.Bills) == 0 {
		return noDay(test, result.Notes)
	}

	return b.write(c, &result, homeBacktestJSON(&result))
}

// noDay is the failure of a test without a day that counts.
func noDay(test *backtest.HomeCase, notes []string) error {
	return flex.Fail(
		flex.Invalid,
		"no day from %s to %s has all that is needed: %s",
		test.From,
		test.To,
		notes[0],
	)
}

// readStays reads the file of the cars' stays, moved by whole days as the readings are.
func (b *backtestCommand) readStays() (
	[]backtest.CarStay,
	error,
) {
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

// homeBillsRow are the bills of a home, in pence.
type homeBillsRow struct {
	Day       string  `json:"day,omitempty"`
	Unsteered float64 `json:"unsteered_pence"`
	Alone     float64 `json:"each_by_itself_pence"`
	Together  float64 `json:"as_one_pence"`
}

// lackRow is what a way of running a home left out.
type lackRow struct {
	Missing    float64 `json:"car_kwh_missing"`
	Stays      int     `json:"num_stays_short"`
	Cold       float64 `json:"hot_water_kwh_half_hours_short"`
	Discomfort float64 `json:"discomfort_kelvin_hours"`
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
		"days":        days,
		"total":       row("", r.Total),
		"bound_pence": r.Bound,
		"lacks": fields{
			"unsteered":      lackRow(r.Lacks.Unsteered),
			"each_by_itself": lackRow(r.Lacks.Alone),
			"as_one":         lackRow(r.Lacks.Together),
		},
		"home_kwh":              r.HomeDrawn.KWh(),
		"car_kwh":               r.CarCharged.KWh(),
		"hot_water_kwh":         r.WaterUsed.KWh(),
		"heat_pump_kwh":         r.HeatDrawn.KWh(),
		"num_half_hours_passed": r.Passed,
		"num_stays":             r.Counted,
		"num_stays_dropped":     r.Dropped,
		"num_days_skipped":      r.Skipped,
		"left_out":              append([]string{}, r.Notes...),
	}
}
