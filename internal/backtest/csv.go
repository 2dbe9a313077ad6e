package backtest

import (
	"io"
	"strconv"

	"flexd/internal/csvfile"
)

// CSV writes the bill of each day, in pence.
func (r Result) CSV(w io.Writer) error {
	file := csvfile.NewWriter(
		w,
		"day",
		"no_battery_pence",
		"self_use_pence",
		"planned_pence",
		"rolling_plan_pence",
	)

	for _, b := range r.Bills {
		file.Write(
			b.Day.String(),
			hundredths(b.None),
			hundredths(b.SelfUse),
			hundredths(b.Plan),
			hundredths(b.Foresight),
		)
	}

	return file.Flush()
}

// CSV writes the bill of each day, in pence.
func (r *HomeResult) CSV(w io.Writer) error {
	file := csvfile.NewWriter(
		w,
		"day",
		"unsteered_pence",
		"each_by_itself_pence",
		"as_one_pence",
	)

	for _, b := range r.Bills {
		file.Write(
			b.Day.String(),
			hundredths(b.Unsteered),
			hundredths(b.Alone),
			hundredths(b.Together),
		)
	}

	return file.Flush()
}

// hundredths is an amount with two decimals.
func hundredths(pence float64) csvfile.Number {
	return csvfile.Number(strconv.FormatFloat(pence, 'f', 2, 64))
}
