package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"flexd/internal/backtest"
	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/settle"
)

// settleBaseline is `flexd settle baseline-error`.
type settleBaseline struct {
	ofOrg
	From     string  `help:"First London day; 90 days ago if not given, and the first of the file." placeholder:"DAY"`
	To       string  `help:"Last London day; yesterday if not given, and the last of the file." placeholder:"DAY"`
	Begin    string  `help:"When the hours that are measured begin, in London." default:"16:00"`
	End      string  `help:"When they end; 24:00 is midnight." default:"19:00"`
	Readings string  `help:"Use a home from a CSV file instead of the organisation's sites, with the columns start (RFC 3339) and load_kwh." placeholder:"FILE"`
	Sessions string  `help:"Add the sessions of a car to that home: plugged_in, plugged_out (RFC 3339), energy_kwh and, if known, power_kw." placeholder:"FILE"`
	Power    float64 `help:"The power of its charger in kW." default:"7.4"`
	JSON     bool    `help:"Print as JSON." name:"json"`
}

// Help describes the file of sessions.
func (s *settleBaseline) Help() string {
	return `On days on which nothing was asked of a home, what was metered should be its baseline. This prints for each
method how far off it was: bias is the energy that would wrongly have counted as flexibility, error the mean error of a half-hour.

  flexd settle baseline-error --org acme --from 2026-01-01 --to 2026-03-31
  flexd settle baseline-error --readings home.csv --sessions stays.csv`
}

// accuracyRow is a method's line.
type accuracyRow struct {
	Method    string  `json:"method"`
	Days      int     `json:"days"`
	HalfHours int     `json:"half_hours"`
	MeanWh    float64 `json:"mean_wh"`
	BiasWh    float64 `json:"bias_wh"`
	BiasPct   float64 `json:"bias_pct"`
	ErrorWh   float64 `json:"mean_error_wh"`
}

// Run tries the methods.
func (s *settleBaseline) Run(ctx context.Context, c console) error {
	first, err := halfHourOf("--begin", s.Begin)
	if err != nil {
		return err
	}

	end, err := halfHourOf("--end", s.End)
	if err != nil {
		return err
	}
	if end <= first {
		return flex.Fail(
			flex.Invalid,
			"--end %s is not after --begin %s",
			s.End,
			s.Begin,
		)
	}

	try := s.tryOrg
	if s.Readings != "" {
		try = s.tryFile
	}

	results, err := try(ctx, first, end-1)
	if err != nil {
		return err
	}

	return s.print(c, results)
}

// print writes a line for each method.
func (s *settleBaseline) print(c console, results []reward.MethodAccuracy) error {
	rows := make([]accuracyRow, len(results))
	for i, t := range results {
		n := float64(max(1, t.HalfHours))
		rows[i] = accuracyRow{
			t.Name,
			t.Days,
			t.HalfHours,
			float64(t.Metered) / n,
			float64(t.Deviation) / n,
			100 * t.Bias(),
			t.Error(),
		}
	}

	if s.JSON {
		return c.json(rows)
	}

	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(
		t,
		"METHOD\tDAYS\tHALF-HOURS\tMEAN WH\tBIAS WH\tBIAS %\tERROR WH\t",
	)

	for _, r := range rows {
		fmt.Fprintf(
			t,
			"%s\t%d\t%d\t%.0f\t%+.1f\t%+.1f\t%.0f\t\n",
			r.Method,
			r.Days,
			r.HalfHours,
			r.MeanWh,
			r.BiasWh,
			r.BiasPct,
			r.ErrorWh,
		)
	}

	return t.Flush()
}

// halfHourOf reads a time of day as the number of the settlement period that begins then on an
// ordinary day.
func halfHourOf(flag, text string) (int, error) {
	at, err := time.Parse("15:04", text)

	if text == "24:00" {
		return settle.UsualPeriods + 1, nil
	}
	if err != nil || at.Minute()%30 != 0 {
		return 0, flex.Fail(
			flex.Invalid,
			"%s %q is no full or half hour of the form 16:30",
			flag,
			text,
		)
	}

	return at.Hour()*2 + at.Minute()/30 + 1, nil
}

// tryOrg tries the methods on the organisation's sites.
func (s *settleBaseline) tryOrg(
	ctx context.Context,
	first, last int,
) ([]reward.MethodAccuracy, error) {
	if s.Sessions != "" {
		return nil, flex.Fail(
			flex.Invalid,
			"--sessions goes with --readings: the sites of an organisation have sessions of their own",
		)
	}

	h, org, err := s.openOrg(ctx)
	if err != nil {
		return nil, err
	}

	defer h.Close()

	today := flex.DayAt(h.DB.Now())
	from, to, err := s.days(today.Add(-90), today.Add(-1))
	if err != nil {
		return nil, err
	}

	return h.Reward.TryBaselines(ctx, org.ID, reward.BaselineTrial{
		From:  from,
		To:    to,
		First: first,
		Last:  last,
	})
}

// days reads the days of the flags; those that are not given are the days of the arguments.
func (s *settleBaseline) days(
	first, last flex.Day,
) (from, to flex.Day, err error) {
	from, to = first, last
	if s.From != "" {
		from, err = readDay("--from", s.From)
	}

	if s.To != "" && err == nil {
		to, err = readDay("--to", s.To)
	}

	if err == nil && to.Start().Before(from.Start()) {
		err = flex.Fail(flex.Invalid, "--to %s is before --from %s", to, from)
	}

	return from, to, err
}

// tryFile tries the methods on a home of a file.
func (s *settleBaseline) tryFile(
	_ context.Context,
	first, last int,
) ([]reward.MethodAccuracy, error) {
	b := backtest.Baselines{
		Charger: flex.FromKW(s.Power),
		First:   first,
		Last:    last,
	}

	if b.Charger <= 0 || b.Charger > backtest.MaxPower {
		return nil, flex.Fail(
			flex.Invalid,
			"--power is above 0, up to %g kW, not %g",
			backtest.MaxPower.KW(),
			s.Power,
		)
	}

	if err := s.readHome(&b); err != nil {
		return nil, err
	}

	trial := b.Trial()
	if len(trial.Metered) == 0 {
		return nil, flex.Fail(flex.Invalid, "%s has no half-hours", s.Readings)
	}

	from, to, err := s.days(
		trial.Metered[0].Day,
		trial.Metered[len(trial.Metered)-1].Day,
	)

	if err != nil {
		return nil, err
	}

	trial.From, trial.To = from, to

	return reward.TryMethods(trial), nil
}

// readHome reads the home and the stays of the car.
func (s *settleBaseline) readHome(b *backtest.Baselines) error {
	home, err := os.Open(s.Readings)
	if err != nil {
		return err
	}

	defer home.Close()

	measured, err := backtest.ReadHome(home, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Readings, err)
	}

	b.Load = measured.Load

	if s.Sessions == "" {
		return nil
	}

	sessions, err := os.Open(s.Sessions)
	if err != nil {
		return err
	}

	defer sessions.Close()

	read, err := backtest.ReadStays(sessions, b.Charger)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Sessions, err)
	}

	b.Stays = read

	return nil
}
