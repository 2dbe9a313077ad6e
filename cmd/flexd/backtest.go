package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"flexd/internal/backtest"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/settle"
	records "flexd/internal/store"
	"flexd/internal/tariff"
)

// backtestCommand is `flexd backtest`.
type backtestCommand struct {
	store
	form
	From     string   `required:"" help:"First day in London." placeholder:"DAY"`
	To       string   `required:"" help:"Last day in London, included." placeholder:"DAY"`
	Readings string   `required:"" help:"CSV of a home's half-hours: start (RFC 3339), load_kwh and, where there are any, roof_kwh, hot_water_kwh, outdoor_c." placeholder:"FILE"`
	Shift    int      `help:"Move the readings by this many days, to lay them beside prices of another year; a multiple of 7 keeps the weekdays." placeholder:"DAYS"`
	Power    float64  `help:"The battery's power in kW." default:"5"`
	Capacity float64  `help:"The battery's capacity in kWh." default:"10"`
	Wear     float64  `help:"The battery's wear in pence for each kWh that it discharges; counts in plans and in what is saved, and is shown beside the bills." default:"0" placeholder:"PENCE"`
	Source   string   `help:"Source of the imported prices, such as elexon-system-price; by default the planning prices." placeholder:"NAME"`
	Tariff   string   `help:"dynamic, to buy and sell at the imported prices; or the cheap hours, such as 00:30-05:30." default:"dynamic"`
	Peak     *float64 `help:"Pence per kWh in peak hours, with a tariff of cheap hours; by default 28." placeholder:"PENCE"`
	OffPeak  *float64 `help:"Pence per kWh in the cheap hours; by default 9." placeholder:"PENCE"`
	Export   *float64 `help:"Pence per exported kWh, with a tariff of cheap hours; by default 5." placeholder:"PENCE"`
	Sessions string   `help:"Add cars to the home by their sessions, a CSV of plugged_in, plugged_out (RFC 3339), energy_kwh and, if known, power_kw and car (a name)." placeholder:"FILE"`
	homeDevices
	SVG string `name:"svg" help:"Write a chart of the bills here." placeholder:"FILE"`
	CSV string `name:"csv" help:"Write the bill of each day here." placeholder:"FILE"`
}

// Help shows a home with more than a battery.
func (b *backtestCommand) Help() string {
	return `Beside a battery, a home can have cars by their past sessions, a hot-water tank, a heat pump, a main fuse and an
export limit. The home is then planned as a whole, and for comparison each device by itself:

  flexd backtest --from 2026-10-01 --to 2026-10-31 --readings home.csv --sessions stays.csv --tariff 00:30-05:30 --fuse 18`
}

// forecaster is the result of a test.
type forecaster interface {
	Table(w io.Writer) error
	CSV(w io.Writer) error
	SVG() string
}

// Run tests a home on the past.
func (b *backtestCommand) Run(
	ctx context.Context,
	c console,
) error {
	test, err := b.read(ctx)
	if err != nil {
		return err
	}

	if b.isWholeHome() {
		return b.runHome(ctx, c, test)
	}

	result := backtest.Run(&test.Case, progressTo(ctx, c))
	if ctx.Err() != nil {
		return ctx.Err()
	}

	notesTo(c, result.Notes)
	if len(result.Bills) == 0 {
		return noDay(test, result.Notes)
	}

	return b.write(c, result, backtestJSON(&result))
}

// write writes the results in the requested formats.
func (b *backtestCommand) write(
	c console,
	result forecaster,
	asJSON fields,
) error {
	if b.SVG != "" {
		if err := os.WriteFile(b.SVG, []byte(result.SVG()), 0o644); err != nil {
			return err
		}
	}

	if b.CSV != "" {
		var text bytes.Buffer
		if err := result.CSV(&text); err != nil {
			return err
		}

		if err := os.WriteFile(b.CSV, text.Bytes(), 0o644); err != nil {
			return err
		}
	}

	if b.JSON {
		return c.json(asJSON)
	}

	return result.Table(c.out)
}

// progressTo returns a function that prints once a second how far a test is, and how long it
// will take. The function returns false once the command is stopped.
func progressTo(ctx context.Context, c console) func(done, total int) bool {
	began := time.Now()
	lastReport := began
	return func(done, total int) bool {
		if time.Since(lastReport) < time.Second {
			return ctx.Err() == nil
		}

		lastReport = time.Now()
		remaining := time.Since(began) * time.Duration(total-done) / time.Duration(max(1, done))
		fmt.Fprintf(
			c.err,
			"%d of %d steps, about %s left\n",
			done,
			total,
			remaining.Round(time.Second),
		)

		return ctx.Err() == nil
	}
}

// notesShown is the number of days and stays that are listed as not counted.
const notesShown = 5

// notesTo prints why days and sessions do not count.
func notesTo(c console, notes []string) {
	for _, note := range notes[:min(len(notes), notesShown)] {
		fmt.Fprintf(c.err, "left out: %s\n", note)
	}

	if more := len(notes) - notesShown; more > 0 {
		fmt.Fprintf(c.err, "left out: %d more\n", more)
	}
}

// billsRow are the bills of a time, in pence.
type billsRow struct {
	Day       string  `json:"day,omitempty"`
	None      float64 `json:"no_battery_pence"`
	SelfUse   float64 `json:"self_use_pence"`
	Plan      float64 `json:"planned_pence"`
	Foresight float64 `json:"rolling_plan_pence"`
}

func billsRowOf(day string, b backtest.Bills) billsRow {
	return billsRow{
		Day:       day,
		None:      b.None,
		SelfUse:   b.SelfUse,
		Plan:      b.Plan,
		Foresight: b.Foresight,
	}
}

// backtestJSON is a result as a program reads it.
func backtestJSON(r *backtest.Result) fields {
	days := []billsRow{}
	for _, b := range r.Bills {
		days = append(days, billsRowOf(b.Day.String(), b.Bills))
	}

	return fields{
		"days":                days,
		"total":               billsRowOf("", r.Total),
		"wear":                billsRowOf("", r.Worn),
		"optimum_pence":       r.Optimum,
		"home_kwh":            r.Drawn.KWh(),
		"load_mean_error_kwh": r.MissedBy.KWh(),
		"num_days_skipped":    r.Skipped,
		"left_out":            append([]string{}, r.Notes...),
	}
}

// read makes the case of the flags.
func (b *backtestCommand) read(ctx context.Context) (
	*backtest.HomeCase,
	error,
) {
	if err := b.applies(); err != nil {
		return nil, err
	}
	if err := b.inBounds(); err != nil {
		return nil, err
	}

	test := &backtest.HomeCase{Case: backtest.Case{
		Battery: home.Battery{
			Power:    flex.FromKW(b.Power),
			Capacity: flex.FromKWh(b.Capacity),
			Wear:     b.Wear,
		},
		Working: settle.Working,
	}}

	var err error
	test.From, err = readDay("--from", b.From)
	if err != nil {
		return nil, err
	}

	test.To, err = readDay("--to", b.To)
	if err != nil {
		return nil, err
	}

	if test.To.Start().Before(test.From.Start()) {
		return nil, flex.Fail(
			flex.Invalid,
			"--to %s is before --from %s",
			test.To,
			test.From,
		)
	}

	if err := b.readReadings(test); err != nil {
		return nil, err
	}

	if b.isDynamic() {
		err = b.dynamic(ctx, &test.Case)
	} else {
		err = b.fixed(&test.Case)
	}

	return test, err
}

// readReadings reads the home's half-hours, and adds its devices.
func (b *backtestCommand) readReadings(test *backtest.HomeCase) error {
	f, err := os.Open(b.Readings)
	if err != nil {
		return err
	}

	defer f.Close()

	read, err := backtest.ReadHome(f, b.Shift)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Readings, err)
	}

	test.Load, test.Roof = read.Load, read.Roof
	if err := b.covers(read, test); err != nil {
		return err
	}

	return b.add(test, read)
}

// covers fails if the readings have nothing in the days.
func (b *backtestCommand) covers(
	read *backtest.Readings,
	test *backtest.HomeCase,
) error {
	begin, end := test.From.Start(), test.To.Add(1).Start()
	if read.First.Start().Before(end) && read.Last.End().After(begin) {
		return nil
	}

	return flex.Fail(
		flex.Invalid,
		"%s: its half-hours are from %s to %s, none of them from %s to %s; --shift moves them by days",
		b.Readings,
		read.First.Start().Format(time.RFC3339),
		read.Last.Start().Format(time.RFC3339),
		test.From,
		test.To,
	)
}

// dynamic prices the case by the imported prices, which come out at 14:00 for the next day.
func (b *backtestCommand) dynamic(
	ctx context.Context,
	test *backtest.Case,
) error {
	h, err := b.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	known := map[flex.Period]float64{}
	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		ps, err := all.Prices(
			ctx,
			flex.Span{
				From: test.From.Add(-1).Start(),
				To:   test.To.Add(4).Start(),
			},
			b.Source,
		)

		for _, p := range ps {
			if p.Known {
				known[p.Period] = p.Price.GBPPerMWh() / 10
			}
		}

		return err
	})

	test.Buy = func(p flex.Period) (float64, bool) {
		v, ok := known[p]
		return v, ok
	}

	test.Sell = test.Buy
	test.Known = func(at time.Time) time.Time {
		day := flex.EFADay(flex.DayAt(at))
		if at.In(flex.London).Hour() >= 14 {
			day = day.Add(1)
		}
		return flex.CurveHorizon(at, day).To
	}

	return err
}

// fixed prices the case by the rates of cheap and dear hours, which are always known.
func (b *backtestCommand) fixed(test *backtest.Case) error {
	w, err := tariff.Parse(
		b.Tariff,
		flex.London.String(),
		flex.DualRate,
	)
	if err != nil {
		return fmt.Errorf("--tariff: %w", err)
	}

	peak := flagOr(b.Peak, backtestPeak)
	offPeak := flagOr(b.OffPeak, backtestOffPeak)
	export := flagOr(b.Export, backtestExport)
	test.Buy = func(p flex.Period) (float64, bool) {
		cheapPrice := 0.0
		for _, s := range w.Spans(p.Span()) {
			cheapPrice += s.Len().Seconds() / flex.HalfHour.Seconds()
		}
		return cheapPrice*offPeak + (1-cheapPrice)*peak, true
	}

	test.Sell = func(flex.Period) (float64, bool) {
		return export, true
	}
	test.Known = func(at time.Time) time.Time {
		return flex.DayAt(at).Add(2).Start()
	}

	return nil
}
