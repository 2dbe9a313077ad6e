package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/reward"
)

// statement is `flexd statement`.
type statement struct {
	store
	Site    string `arg:"" help:"Id of the site."`
	Month   string `help:"The month, in London." placeholder:"2026-10" xor:"span"`
	TaxYear int    `help:"A tax year, by the year in which it begins: from 6 April of this year to 5 April of the next." placeholder:"2026" xor:"span"`
	From    string `help:"The first day, in London." placeholder:"DAY"`
	To      string `help:"The last day." placeholder:"DAY"`
	Format  string `help:"As text, csv or json." enum:"text,csv,json" default:"text"`
	JSON    bool   `help:"The same as --format json." name:"json"`
	Out     string `help:"Write to a file instead of the screen." placeholder:"FILE"`
}

// span returns the requested days.
func (o *statement) span() (reward.StatementSpan, error) {
	span := reward.StatementSpan{Month: o.Month, TaxYear: o.TaxYear}

	var err error
	for _, f := range []struct {
		to   *flex.Day
		text string
	}{{&span.From, o.From}, {&span.To, o.To}} {
		if f.text == "" {
			continue
		}

		*f.to, err = flex.ParseDay(f.text)
		if err != nil {
			return span, flex.Fail(
				flex.Invalid,
				"%q is no day: a day is written as in 2026-10-31",
				f.text,
			)
		}
	}

	return span, nil
}

// Run prints a site's statement.
func (o *statement) Run(ctx context.Context, c console) error {
	span, err := o.span()
	if err != nil {
		return err
	}

	from, to, err := span.Days()
	if err != nil {
		return err
	}

	h, org, site, err := o.openAnySite(ctx, o.Site)
	if err != nil {
		return err
	}

	defer h.Close()

	st, err := h.Reward.StatementWithOffboarded(ctx, org, site, from, to)
	if err != nil {
		return err
	}

	if o.Out == "" {
		return o.write(c, &st)
	}

	return writeAtomically(o.Out, func(w io.Writer) error {
		c.out = w
		return o.write(c, &st)
	})
}

func (o *statement) write(c console, st *reward.Statement) error {
	if o.JSON || o.Format == "json" {
		return c.json(contract.Statement(st))
	}

	if o.Format == "csv" {
		return st.WriteCSV(c.out)
	}

	return printStatement(c.out, st)
}

// printStatement prints a statement to be read.
func printStatement(out io.Writer, st *reward.Statement) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(
		w,
		"%s\nstatement %s, %s to %s\nbefore\t%s\n",
		st.Payer.Name,
		st.Number,
		st.From,
		st.To,
		st.Opening,
	)

	for i := range st.Lines {
		l := &st.Lines[i]
		fmt.Fprintf(
			w,
			"%s\t%s\t%s\t%s\n",
			flex.Clock(l.At, flex.London, "2006-01-02 15:04"),
			l.Amount,
			l.Balance,
			lineText(l),
		)

		for _, step := range l.Working {
			fmt.Fprintf(w, "\t\t\t  %s\n", step)
		}
	}

	for _, m := range st.Months {
		fmt.Fprintf(w, "%s netted\t%s\t\t%s\n", m.Month, m.Credited, m.Note())
	}

	fmt.Fprintf(
		w,
		"after\t%s\t\t%s kWh less than usual, %s kWh more; %s kWh in sessions that are credited\n",
		st.Closing,
		kwhText(st.Totals.Less),
		kwhText(st.Totals.More),
		kwhText(st.Totals.Charged),
	)

	return w.Flush()
}

// lineText returns a line's cause and note. For a withdrawal it adds the outcome, if there is
// one.
func lineText(l *reward.Line) string {
	if l.Status == "" {
		return l.Line()
	}
	return l.Line() + " (" + strings.ReplaceAll(string(l.Status), "_", " ") + ")"
}

func kwhText(e flex.WattHours) string { return fmt.Sprintf("%.3f", e.KWh()) }
