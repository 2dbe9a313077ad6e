package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/market"
)

type pricesFetch struct {
	store
	form
	Source string `arg:"" help:"elexon-mid, elexon-mid-stream (for years of history), elexon-system-price, octopus:REGION or octopus:REGION:PRODUCT with a region from A to P, or nordpool-n2ex (its terms allow your own use alone)."`
	From   string `help:"First day in London, YYYY-MM-DD; today if not given." placeholder:"DAY"`
	To     string `help:"Last day in London, YYYY-MM-DD, included; tomorrow if not given." placeholder:"DAY"`
}

// Run fetches the prices of the days. It adds a publication for each trading day with
// something new.
func (p *pricesFetch) Run(ctx context.Context, c console) error {
	h, err := p.openOrCreate(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	span, err := p.span(h.DB.Now())
	if err != nil {
		return err
	}

	reported := time.Now()
	progress := func(done, total time.Duration) {
		if time.Since(reported) > time.Second {
			fmt.Fprintf(
				c.err,
				"%d of %d days\n",
				done/(24*time.Hour),
				total/(24*time.Hour),
			)

			reported = time.Now()
		}
	}

	act := flex.AuditEntry{
		Who:     commandLine,
		Act:     "fetch prices",
		Subject: p.Source,
		Detail: fmt.Sprintf(
			"%s to %s",
			span.From.Format(time.RFC3339),
			span.To.Format(time.RFC3339),
		),
	}

	var r market.Report
	err = h.Access.Act(ctx, act, func() error {
		var err error
		r, err = h.FetchPrices(ctx, p.Source, span, progress)
		return err
	})
	if err != nil && r.Prices == 0 {
		return err
	}

	return errors.Join(err, p.printFetched(c, r))
}

// printFetched prints the results of a fetch, and the rejected prices.
func (p *pricesFetch) printFetched(c console, r market.Report) error {
	message := fmt.Sprintf(
		"fetched %d half-hours, made %d publications\n",
		r.Prices,
		r.Published,
	)

	out := []fields{}

	for _, k := range r.Rejected {
		out = append(out, fields{
			"rows":   k.Rows,
			"first":  k.First,
			"reason": k.Reason,
		})

		message += fmt.Sprintf(
			"kept out %d rows, the first of %s: %s\n",
			k.Rows,
			k.First.Format(time.RFC3339),
			k.Reason,
		)
	}

	return p.print(
		c,
		fields{
			"num_prices":       r.Prices,
			"num_publications": r.Published,
			"kept_out":         out,
		},
		"%s",
		message,
	)
}

// span is the trading days of the flags.
func (p *pricesFetch) span(now time.Time) (flex.Span, error) {
	from, to := flex.DayAt(now), flex.DayAt(now).Add(1)
	for _, f := range []struct {
		flag string
		text string
		day  *flex.Day
	}{{"--from", p.From, &from}, {"--to", p.To, &to}} {
		if f.text == "" {
			continue
		}

		day, err := readDay(f.flag, f.text)
		if err != nil {
			return flex.Span{}, err
		}

		*f.day = day
	}

	span := flex.Span{
		From: flex.EFADay(from).Span().From,
		To:   flex.EFADay(to).Span().To,
	}
	if span.Empty() {
		return flex.Span{}, flex.Fail(
			flex.Invalid,
			"--to %s is before --from %s",
			to,
			from,
		)
	}

	return span, nil
}

func readDay(flag, text string) (flex.Day, error) {
	day, err := flex.ParseDay(text)
	if err != nil {
		return day, flex.Fail(
			flex.Invalid,
			"%s: %q is not a day of the form 2026-04-14",
			flag,
			text,
		)
	}

	return day, nil
}
