package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"flexd/internal/backtest"
	"flexd/internal/flex"
)

// homeDevices are the flags of a home's devices other than its battery.
type homeDevices struct {
	CarPower    *float64 `help:"With --sessions: the power of each car's charger in kW; by default 7.4." placeholder:"KW"`
	Tank        float64  `help:"Add a hot-water tank of this many litres; 0: none." placeholder:"LITRES"`
	Element     *float64 `help:"With --tank: the power of its element in kW; by default 3." placeholder:"KW"`
	HotWater    *float64 `help:"With --tank: hot water used in a day in kWh, where the readings have no hot_water_kwh; by default 5.845." placeholder:"KWH"`
	HeatPump    float64  `help:"Add a heat pump that takes at most this many kW, in a house that it suits; 0: none. The readings need outdoor_c." placeholder:"KW"`
	Comfort     *string  `help:"With --heat-pump: the comfort band of the rooms in degrees Celsius; by default 19-22." placeholder:"BAND"`
	Fuse        float64  `help:"The main fuse in kW; 0: none." placeholder:"KW"`
	ExportLimit *float64 `help:"The most that may be exported in kW; without it no limit." placeholder:"KW"`
}

// The limits of a home's devices, in kW, kWh and litres, and of wear.
const (
	backtestBatteryPower    = 100.0
	backtestBatteryCapacity = 1000.0
	backtestWearMost        = flex.DischargeWearMax // pence a kWh
	backtestTankLeast       = 50.0
	backtestTankMost        = 1000.0
	backtestElementMost     = 12.0
	backtestHotWaterMost    = 50.0
	backtestHeatPumpMost    = 30.0
	backtestGridMost        = 500.0
)

// The defaults of flags: prices in pence, powers in kW, hot water in kWh a day.
const (
	backtestPeak     = 28.0
	backtestOffPeak  = 9.0
	backtestExport   = 5.0
	backtestCarPower = 7.4
	backtestElement  = 3.0
	backtestHotWater = 5.845
	backtestComfort  = "19-22"
)

// flagOr is a flag's value, or its default.
func flagOr[T any](flag *T, without T) T {
	if flag == nil {
		return without
	}

	return *flag
}

// applies fails for a flag of a device or a tariff that the home does not have, because it
// would have no effect.
func (b *backtestCommand) applies() error {
	for _, f := range []struct {
		name  string
		given bool
		has   bool
		needs string
	}{
		{"--car-power", b.CarPower != nil, b.Sessions != "", "--sessions"},
		{"--element", b.Element != nil, b.Tank > 0, "--tank"},
		{"--hot-water", b.HotWater != nil, b.Tank > 0, "--tank"},
		{"--comfort", b.Comfort != nil, b.HeatPump > 0, "--heat-pump"},
		{"--peak", b.Peak != nil, !b.isDynamic(), fixedTariff},
		{"--off-peak", b.OffPeak != nil, !b.isDynamic(), fixedTariff},
		{"--export", b.Export != nil, !b.isDynamic(), fixedTariff},
		{"--source", b.Source != "", b.isDynamic(), "--tariff dynamic"},
	} {
		if f.given && !f.has {
			return flex.Fail(
				flex.Invalid,
				"%s counts with %s only: give that too, or leave it out",
				f.name,
				f.needs,
			)
		}
	}

	return nil
}

// fixedTariff is an example of the flag for cheap hours.
const fixedTariff = "--tariff 00:30-05:30"

// isDynamic reports whether the imported prices are the home's.
func (b *backtestCommand) isDynamic() bool { return b.Tariff == "dynamic" }

// inBounds fails for a device that no home has.
func (b *backtestCommand) inBounds() error {
	for _, f := range []struct {
		name        string
		value       float64
		least, most float64
	}{
		{"--power", b.Power, 0, backtestBatteryPower},
		{"--capacity", b.Capacity, 0, backtestBatteryCapacity},
		{"--wear", b.Wear, 0, backtestWearMost},
		{
			"--car-power",
			flagOr(b.CarPower, backtestCarPower),
			0.1,
			backtest.MaxPower.KW(),
		},
		{"--element", flagOr(b.Element, backtestElement), 0.1, backtestElementMost},
		{"--hot-water", flagOr(b.HotWater, backtestHotWater), 0, backtestHotWaterMost},
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

// isWholeHome reports whether the home has more than a battery and a roof.
func (b *backtestCommand) isWholeHome() bool {
	devices := b.Sessions != "" || b.Tank > 0 || b.HeatPump > 0
	return devices || b.Fuse > 0 || b.ExportLimit != nil
}

// add adds the devices, with their data, to a case.
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
			Element: flex.FromKW(flagOr(b.Element, backtestElement)),
			Litres:  b.Tank,
			Daily:   flex.FromKWh(flagOr(b.HotWater, backtestHotWater)),
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

	var err error
	h.Low, h.High, err = bandOf(flagOr(b.Comfort, backtestComfort))
	if err != nil {
		return err
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

// bandOf reads a comfort band.
func bandOf(text string) (low, high float64, err error) {
	from, to, _ := strings.Cut(text, "-")
	low, wrong := strconv.ParseFloat(from, 64)
	high, wrongHigh := strconv.ParseFloat(to, 64)
	if wrong != nil || wrongHigh != nil {
		return 0, 0, flex.Fail(
			flex.Invalid,
			"--comfort %q is no band of the form 19-22",
			text,
		)
	}

	if !(low >= 5 && high > low && high <= 30) {
		return 0, 0, flex.Fail(
			flex.Invalid,
			"--comfort %q: a band lies within 5 to 30, the lower end first",
			text,
		)
	}

	return low, high, nil
}

// runHome tests a home with more than a battery.
func (b *backtestCommand) runHome(
	ctx context.Context,
	c console,
	test *backtest.HomeCase,
) error {
	result := backtest.RunHome(test, progressTo(ctx, c))
	if ctx.Err() != nil {
		return ctx.Err()
	}

	notesTo(c, result.Notes)
	if len(result.Bills) == 0 {
		return noDay(test, result.Notes[result.Dropped:]) // those of stays come first
	}

	return b.write(c, &result, homeBacktestJSON(&result))
}

// noDay is the failure of a test without a day that counts, with why the first does not.
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

	stays, err := backtest.ReadStays(f, flex.FromKW(flagOr(b.CarPower, backtestCarPower)))
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

// shortfallRow is the shortfall of one way of running a home.
type shortfallRow struct {
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
		"wear":        row("", r.Worn),
		"bound_pence": r.Bound,
		"lacks": fields{
			"unsteered":      shortfallRow(r.Lacks.Unsteered),
			"each_by_itself": shortfallRow(r.Lacks.Alone),
			"as_one":         shortfallRow(r.Lacks.Together),
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
