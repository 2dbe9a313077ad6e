package backtest

import (
	"fmt"
	"io"
	"text/tabwriter"

	"flexd/internal/flex"
)

// homeMonth is a row of the table.
type homeMonth struct {
	name string
	days int
	HomeBills
}

// months sums the bills up.
func (r *HomeResult) months() []homeMonth {
	var ms []homeMonth
	for _, b := range r.Bills {
		name := fmt.Sprintf(
			"%04d-%02d",
			b.Day.Year,
			int(b.Day.Month),
		)
		if len(ms) == 0 || ms[len(ms)-1].name != name {
			ms = append(ms, homeMonth{name: name})
		}

		m := &ms[len(ms)-1]
		m.days++
		m.add(b.HomeBills)
	}

	return ms
}

// Share is the part of what could be saved that a way of running the home saves, in per cent of the
// difference between no steering and the bound. Wear counts in all.
func (r *HomeResult) Share(pence float64) float64 {
	all := r.WithWear().Unsteered

	return percent(all-pence, all-r.Bound)
}

// WithWear are the bills with the battery's wear.
func (r *HomeResult) WithWear() HomeBills {
	all := r.Total
	all.add(r.Worn)

	return all
}

// Table writes the bills of each month in pounds, and what each way of running the home saved in all.
func (r *HomeResult) Table(w io.Writer) error {
	t := tabwriter.NewWriter(
		w,
		0,
		0,
		2,
		' ',
		tabwriter.AlignRight,
	)
	row := func(name string, days int, b HomeBills) {
		fmt.Fprintf(
			t,
			"%s\t%d\t%.2f\t%.2f\t%.2f\t\n",
			name,
			days,
			b.Unsteered/100,
			b.Alone/100,
			b.Together/100,
		)
	}

	fmt.Fprintln(
		t,
		"month\tdays\tunsteered\teach by itself\tas one\t",
	)
	for _, m := range r.months() {
		row(m.name, m.days, m.HomeBills)
	}

	row("all", len(r.Bills), r.Total)
	if err := t.Flush(); err != nil {
		return err
	}

	return r.summary(w)
}

// summary says what the ways saved, and what needs came to.
func (r *HomeResult) summary(w io.Writer) error {
	all := r.WithWear()
	_, err := fmt.Fprintf(
		w,
		"\nIn pounds. Nothing can cost less than %s, with everything known: a bound proven over all the days.\n"+
			"Of the %s between that and no steering, each by itself saves %.1f %%, as one %.1f %%.\n"+
			"The home drew %.0f kWh without its cars, tank and heat pump.%s\n",
		pounds(r.Bound),
		pounds(all.Unsteered-r.Bound),
		r.Share(all.Alone),
		r.Share(all.Together),
		r.HomeDrawn.KWh(),
		leftOut(r.Skipped, "day"),
	)

	if r.Worn != (HomeBills{}) {
		fmt.Fprintf(
			w,
			"The battery's wear is in no bill: unsteered %s, each by itself %s, as one %s. What is saved, and the bound, count it.\n",
			pounds(r.Worn.Unsteered),
			pounds(r.Worn.Alone),
			pounds(r.Worn.Together),
		)
	}

	if r.Counted+r.Dropped > 0 {
		fmt.Fprintf(
			w,
			"Cars needed %.0f kWh in %s.%s\n",
			r.CarCharged.KWh(),
			flex.Count(r.Counted, "stay"),
			leftOut(r.Dropped, "stay"),
		)
	}

	if r.WaterUsed > 0 {
		fmt.Fprintf(
			w,
			"The tank gave and lost %.0f kWh.\n",
			r.WaterUsed.KWh(),
		)
	}

	if r.HeatDrawn > 0 {
		fmt.Fprintf(
			w,
			"The heat pump drew %.0f kWh without steering.\n",
			r.HeatDrawn.KWh(),
		)
	}

	if r.Passed > 0 {
		fmt.Fprintf(
			w,
			"The home alone drew more than the main fuse in %s.\n",
			flex.Count(r.Passed, "half-hour"),
		)
	}

	r.lacking(w, "unsteered", r.Lacks.Unsteered)
	r.lacking(w, "each by itself", r.Lacks.Alone)
	r.lacking(w, "as one", r.Lacks.Together)

	return err
}

// leftOut says of how many days or stays nothing was counted; nothing of none.
func leftOut(n int, thing string) string {
	if n == 0 {
		return ""
	}
	return " Left out: " + flex.Count(n, thing) + "."
}

// lacking says what a way left out, if anything.
func (r *HomeResult) lacking(w io.Writer, way string, l Lack) {
	if l.pence() < 0.5 {
		return
	}

	fmt.Fprintf(
		w,
		"Missed, %s: %.1f kWh of cars in %s (%g p a kWh), hot water by %.1f kWh (%g p a half-hour), "+
			"%.1f kelvin-hours (%g p): £%.2f of the bills.\n",
		way,
		l.Missing,
		flex.Count(l.Stays, "stay"),
		MissingPence,
		l.Cold,
		ColdPence,
		l.Discomfort,
		DiscomfortPence,
		l.pence()/100,
	)
}

// SVG draws the bills of each month as bars.
func (r *HomeResult) SVG() string {
	all := []barSeries{
		{name: "unsteered"},
		{name: "each by itself"},
		{name: "as one"},
	}

	var names []string
	for _, m := range r.months() {
		names = append(names, m.name)
		for i, pence := range []float64{m.Unsteered, m.Alone, m.Together} {
			all[i].pence = append(all[i].pence, pence)
		}
	}

	return drawBills(names, all)
}
