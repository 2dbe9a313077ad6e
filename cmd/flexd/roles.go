package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/pricing"
)

// pricesRoles is `flexd prices roles`.
type pricesRoles struct {
	store
	Name   string   `arg:"" help:"Name of the organisation."`
	Values []string `arg:"" optional:"" name:"role=source" help:"What to choose: planning=, contract= or settlement= and a source, or without a source to return to the default rule. Without any argument the current choices are printed. For example: planning=nordpool-n2ex settlement=elexon-system-price."`
	From   string   `help:"From when the choice holds, RFC 3339 or a day in London; the next half-hour if not given, or all time for an organisation without flex events." placeholder:"TIME"`
	JSON   bool     `help:"Print as JSON." name:"json"`
}

type roleRow struct {
	Role    pricing.Role `json:"role"`
	Chosen  string       `json:"chosen"`
	Sources []string     `json:"sources"`
	Choices []choiceRow  `json:"choices"`
}

type choiceRow struct {
	Source string    `json:"source"`
	From   time.Time `json:"from"`
	SetAt  time.Time `json:"set_at"`
}

// checkValues refuses invalid choices before any is made.
func (p *pricesRoles) checkValues() error {
	for _, pair := range p.Values {
		role, _, hasRole := strings.Cut(pair, "=")
		if !hasRole {
			return flex.Fail(
				flex.Invalid,
				"%q is not of the form role=source, such as planning=nordpool-n2ex",
				pair,
			)
		}

		if !slices.Contains(pricing.Roles, pricing.Role(role)) {
			return flex.Fail(
				flex.Invalid,
				"there is no role %q of prices; there are planning, contract and settlement",
				role,
			)
		}
	}

	return nil
}

// choose sets the sources that are given for roles: all, or none where one is refused.
func (p *pricesRoles) choose(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
) error {
	from, err := instantOf("--from", p.From)
	if err != nil {
		return err
	}

	if err := p.checkValues(); err != nil {
		return err
	}

	if len(p.Values) == 0 {
		return nil
	}

	choices := make([]pricing.Choice, len(p.Values))
	for i, pair := range p.Values {
		role, source, _ := strings.Cut(pair, "=")
		choices[i] = pricing.Choice{
			Role:   pricing.Role(role),
			Source: source,
			From:   from,
		}
	}

	act := flex.AuditEntry{
		Who:     commandLine,
		Org:     org,
		Act:     "choose price source",
		Subject: strings.Join(p.Values, " "),
		Detail:  p.From,
	}

	return h.Access.Act(ctx, act, func() error {
		_, err := h.Market.ChooseSources(ctx, org, choices)
		return err
	})
}

// Run makes the choice, and prints the sources in force.
func (p *pricesRoles) Run(ctx context.Context, c console) error {
	h, org, err := openFor(ctx, p.store, p.Name)
	if err != nil {
		return err
	}

	defer h.Close()

	if err := p.choose(ctx, h, org.ID); err != nil {
		return err
	}

	roles, doubts, err := h.Market.Roles(ctx, org.ID)
	if err != nil {
		return err
	}

	rows := []roleRow{}
	for _, r := range roles {
		row := roleRow{
			Role:    r.Role,
			Chosen:  r.Chosen,
			Sources: append([]string{}, r.Sources...),
			Choices: []choiceRow{},
		}

		for _, x := range r.Choices {
			row.Choices = append(
				row.Choices,
				choiceRow{x.Source, x.From, x.SetAt},
			)
		}

		rows = append(rows, row)
	}

	if p.JSON {
		return c.json(map[string]any{
			"roles":  rows,
			"doubts": append([]string{}, doubts...),
		})
	}

	return c.roles(rows, doubts)
}

// roles prints which sources count.
func (c console) roles(rows []roleRow, doubts []string) error {
	w := tabwriter.NewWriter(c.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ROLE\tSOURCE NOW\tBY\tCHOICES")

	for _, r := range rows {
		by, now := "rule", strings.Join(r.Sources, ", ")
		if r.Chosen != "" {
			by = "choice"
		}

		if now == "" {
			now = "none"
		}

		var choices []string
		for _, x := range r.Choices {
			choices = append(choices, choiceText(x))
		}

		fmt.Fprintf(
			w,
			"%s\t%s\t%s\t%s\n",
			r.Role,
			now,
			by,
			strings.Join(choices, "; "),
		)
	}

	if err := w.Flush(); err != nil {
		return err
	}

	for _, d := range doubts {
		fmt.Fprintf(c.out, "! %s\n", d)
	}

	return nil
}

func choiceText(x choiceRow) string {
	source := x.Source
	if source == "" {
		source = "by rule"
	}

	if x.From.Unix() == 0 {
		return source + " always"
	}

	return source + " from " + x.From.Format(time.RFC3339)
}

// instantOf reads the instant of a flag, which may be a day in London; empty is the zero time.
func instantOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := flex.ParseDay(text); err == nil {
		return day.Start(), nil
	}

	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, flex.Fail(
			flex.Invalid,
			"%s: %q is neither a day such as 2026-04-14 nor an instant such as 2026-04-14T22:00:00Z",
			flag,
			text,
		)
	}

	return at.UTC(), nil
}
