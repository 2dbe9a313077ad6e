package backtest

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"flexd/internal/flex"
)

// month is a row of the table and a group of bars.
type month struct {
	name string
	days int
	Bills
}

// months sums the bills up.
func (r Result) months() []month {
	var ms []month
	for _, b := range r.Bills {
		name := time.Date(
			b.Day.Year,
			b.Day.Month,
			1,
			0,
			0,
			0,
			0,
			time.UTC,
		).Format("2006-01")

		if len(ms) == 0 || ms[len(ms)-1].name != name {
			ms = append(ms, month{name: name})
		}

		m := &ms[len(ms)-1]
		m.days++
		m.add(b.Bills)
	}

	return ms
}

// Table writes the bills of each month in pounds, and what each way of running the battery
// saved in all.
func (r Result) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, days int, b Bills) {
		fmt.Fprintf(
			t,
			"%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t\n",
			name,
			days,
			b.None/100,
			b.SelfUse/100,
			b.Plan/100,
			b.Foresight/100,
		)
	}

	fmt.Fprintln(
		t,
		"month\tdays\tno battery\tself-use\tplanned\trolling plan\t",
	)

	for _, m := range r.months() {
		row(m.name, m.days, m.Bills)
	}

	row("all", len(r.Bills), r.Total)

	if err := t.Flush(); err != nil {
		return err
	}

	_, err := fmt.Fprintf(
		w,
		"\nIn pounds. The true optimum, exact and over all the days at once, costs %s; the rolling plan knows three days ahead.\n"+
			"%s\n"+
			"The home drew %.0f kWh; its load was forecast with a mean error of %d Wh in a half-hour.\n",
		pounds(r.Optimum),
		r.savings(),
		r.Drawn.KWh(),
		int64(r.MissedBy),
	)

	if r.Worn != (Bills{}) {
		fmt.Fprintf(
			w,
			"The battery's wear is in no bill: self-use %s, planned %s, rolling plan %s. What is saved, and the optimum, count it.\n",
			pounds(r.Worn.SelfUse),
			pounds(r.Worn.Plan),
			pounds(r.Worn.Foresight),
		)
	}

	if r.Skipped > 0 {
		fmt.Fprintf(
			w,
			"Left out for want of loads or prices: %s.\n",
			flex.Count(r.Skipped, "day"),
		)
	}

	return err
}

// WithWear are the bills with the battery's wear.
func (r Result) WithWear() Bills {
	all := r.Total
	all.add(r.Worn)

	return all
}

// savings compares the plan with self-use alone, and with what the optimum would save.
func (r Result) savings() string {
	all := r.WithWear()
	saved := all.SelfUse - all.Plan
	most := max(0, all.SelfUse-r.Optimum)
	if saved < -0.5 {
		return fmt.Sprintf(
			"The plan costs %s more than self-use alone; the optimum would save %s.",
			pounds(-saved),
			pounds(most),
		)
	}

	return fmt.Sprintf(
		"The plan costs %s less than self-use alone: %.1f %% of the %s that the optimum would save.",
		pounds(max(0, saved)),
		max(0, percent(saved, most)),
		pounds(most),
	)
}

// pounds writes an amount in pence.
func pounds(pence float64) string {
	if pence <= -0.5 {
		return fmt.Sprintf("−£%.2f", -pence/100)
	}
	return fmt.Sprintf("£%.2f", max(0, pence)/100)
}

func percent(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * part / whole
}

// The chart's shape, in pixels.
const (
	chartWidth, chartHeight = 960, 420
	chartLeft, chartBottom  = 56, 40
	chartTop                = 48
)

// barSeries is what bars of one colour show: an amount in pence for each month.
type barSeries struct {
	name   string
	colour string
	pence  []float64
}

// The colours of bars, from no steering to knowing all.
var colours = []string{"#b8bcc4", "#e0a84b", "#2f7d5d", "#7aa6d8"}

// SVG draws the bills of each month as bars.
func (r Result) SVG() string {
	ms := r.months()
	all := []barSeries{
		{name: "no battery"},
		{name: "self-use"},
		{name: "planned"},
		{name: "rolling plan"},
	}

	var names []string
	for _, m := range ms {
		names = append(names, m.name)
		for i, pence := range []float64{m.None, m.SelfUse, m.Plan, m.Foresight} {
			all[i].pence = append(all[i].pence, pence)
		}
	}

	return drawBills(names, all)
}

// drawBills draws the bills of months as bars.
func drawBills(months []string, all []barSeries) string {
	for i := range all {
		all[i].colour = colours[i]
	}

	c := newChart(months, all)
	fmt.Fprintf(
		c,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui,sans-serif" font-size="12" fill="#333">`+
			"\n",
		chartWidth,
		chartHeight,
	)

	fmt.Fprintf(
		c,
		`<rect width="%d" height="%d" fill="#fff"/><text x="%d" y="20" font-size="15">Electricity bill by month, £</text>`+
			"\n",
		chartWidth,
		chartHeight,
		chartLeft,
	)

	c.legend()
	c.grid()
	c.bars()

	c.WriteString("</svg>\n")

	return c.String()
}

// chart is the text of a drawing, and its scale in pounds.
type chart struct {
	strings.Builder
	months []string
	series []barSeries
	low    float64
	high   float64
	step   float64
}

// newChart is an empty drawing whose scale has room for all bars, and for zero.
func newChart(months []string, all []barSeries) *chart {
	c := &chart{months: months, series: all, high: 1}
	for _, s := range all {
		for _, pence := range s.pence {
			c.low = min(c.low, pence/100)
			c.high = max(c.high, pence/100)
		}
	}

	c.step = gridStep(c.high - c.low)
	c.low = c.step * floor(c.low/c.step)
	c.high = c.step * -floor(-c.high/c.step)

	return c
}

// y is how far from the top an amount is drawn.
func (c *chart) y(pounds float64) float64 {
	return chartTop +
		(c.high-pounds)/(c.high-c.low)*(chartHeight-chartTop-chartBottom)
}

// legend names the colours.
func (c *chart) legend() {
	for i, s := range c.series {
		x := chartWidth - 400 + 100*i
		fmt.Fprintf(
			c,
			`<rect x="%d" y="10" width="12" height="12" fill="%s"/><text x="%d" y="20">%s</text>`+
				"\n",
			x,
			s.colour,
			x+16,
			s.name,
		)
	}
}

// grid draws the lines and what they stand for.
func (c *chart) grid() {
	for v := c.low; v <= c.high+c.step/2; v += c.step {
		fmt.Fprintf(
			c,
			`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#e4e4e4"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+
				"\n",
			chartLeft,
			chartWidth-8,
			c.y(v),
			c.y(v),
			chartLeft-6,
			c.y(v)+4,
			v,
		)
	}
}

// bars draws each month's bars side by side, from zero up or down.
func (c *chart) bars() {
	group := float64(chartWidth-chartLeft-8) / float64(max(1, len(c.months)))
	width := group * 0.8 / float64(len(c.series))

	for i, m := range c.months {
		x := chartLeft + group*(float64(i)+0.1)
		for k, s := range c.series {
			top := c.y(max(0, s.pence[i]/100))
			foot := c.y(min(0, s.pence[i]/100))
			fmt.Fprintf(
				c,
				`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`,
				x+float64(k)*width,
				top,
				width,
				foot-top,
				s.colour,
			)
		}

		fmt.Fprintf(
			c,
			`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x+group*0.4,
			chartHeight-16,
			m,
		)
	}
}

// gridStep is a round distance between lines, so that there are four to ten of them.
func gridStep(size float64) float64 {
	step := 1.0
	for size/step > 10 {
		if size/(2*step) <= 10 {
			return 2 * step
		}

		if size/(5*step) <= 10 {
			return 5 * step
		}

		step *= 10
	}

	for size/step < 2 {
		step /= 2
	}

	return step
}

func floor(f float64) float64 {
	n := float64(int64(f))
	if n > f {
		n--
	}

	return n
}
