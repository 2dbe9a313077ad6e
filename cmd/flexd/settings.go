package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/settle"
	records "flexd/internal/store"
)

// orgSet is `flexd org set`.
type orgSet struct {
	store
	Name   string   `arg:"" help:"Name of the organisation."`
	Values []string `arg:"" optional:"" name:"setting=value" help:"What to set; an empty value is the default again. Without any, all settings are printed."`
}

// setting is a number or a word that an organisation may set.
type setting struct {
	name, standard, help string
	show                 func(*flex.OrgSettings) string
	set                  func(*flex.OrgSettings, string) error
}

// whole, decimal, truth and word make settings of one field each, between bounds.
func whole[N ~int | ~int64](field func(*flex.OrgSettings) *N, most N) (func(*flex.OrgSettings) string, func(*flex.OrgSettings, string) error) {
	return func(s *flex.OrgSettings) string { return strconv.FormatInt(int64(*field(s)), 10) },
		func(s *flex.OrgSettings, text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 || n > int64(most) {
				return fmt.Errorf("a whole number from 0 to %d", most)
			}
			*field(s) = N(n)
			return nil
		}
}

func decimal(field func(*flex.OrgSettings) *float64, most float64) (func(*flex.OrgSettings) string, func(*flex.OrgSettings, string) error) {
	return func(s *flex.OrgSettings) string { return strconv.FormatFloat(*field(s), 'f', -1, 64) },
		func(s *flex.OrgSettings, text string) error {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil || !(f >= 0 && f <= most) {
				return fmt.Errorf("a number from 0 to %g", most)
			}
			*field(s) = f
			return nil
		}
}

func truth(field func(*flex.OrgSettings) *bool) (func(*flex.OrgSettings) string, func(*flex.OrgSettings, string) error) {
	return func(s *flex.OrgSettings) string { return strconv.FormatBool(*field(s)) },
		func(s *flex.OrgSettings, text string) (err error) {
			if *field(s), err = strconv.ParseBool(text); err != nil {
				err = errors.New("true or false")
			}
			return err
		}
}

func word(field func(*flex.OrgSettings) *string, words ...string) (func(*flex.OrgSettings) string, func(*flex.OrgSettings, string) error) {
	return func(s *flex.OrgSettings) string { return *field(s) },
		func(s *flex.OrgSettings, text string) error {
			if !slices.Contains(words, text) {
				return fmt.Errorf("one of %s", strings.Join(words, ", "))
			}
			*field(s) = text
			return nil
		}
}

// settings lists what an organisation may set, with the defaults as they are used.
func settings() []setting {
	type set = flex.OrgSettings
	var all []setting
	add := func(name, standard, help string) func(func(*set) string, func(*set, string) error) {
		return func(show func(*set) string, set func(*set, string) error) {
			all = append(all, setting{name, standard, help, show, set})
		}
	}
	add("credit_pence_per_kwh", fmt.Sprint(reward.DefaultCredit)+", or none if user_share is set", "what a plug session's energy earns")(
		decimal(func(s *set) *float64 { return &s.CreditPencePerKWh }, 1000))
	add("user_share", "0", "part of a flex event's revenue that is the user's, 0 to 1")(decimal(func(s *set) *float64 { return &s.UserShare }, 1))
	add("min_withdrawal_pence", fmt.Sprint(int64(ledger.DefaultWithdrawalTerms.Minimum)), "the least withdrawal")(
		whole(func(s *set) *flex.Pence { return &s.MinWithdrawal }, 1_000_000))
	add("min_wait_days", "0", "days from the first reward to the first withdrawal")(whole(func(s *set) *int { return &s.MinWaitDays }, 3650))
	add("two_factor", "false", "an e-mailed code before bank account and withdrawal")(truth(func(s *set) *bool { return &s.TwoFactor }))
	add("baseline", string(settle.DefaultRule.Method), "how a flex event's baseline is found")(
		word(func(s *set) *string { return &s.Settlement.Baseline }, string(settle.Mean), string(settle.MiddleEight), string(settle.Nominated)))
	add("in_day", "false", "adjust the baseline by the hours before the event")(truth(func(s *set) *bool { return &s.Settlement.InDay }))
	add("in_day_cap_wh", "0 (no cap)", "by at most so much in a half-hour")(whole(func(s *set) *flex.WattHours { return &s.Settlement.InDayCap }, settle.MaxEnergy))
	add("paid_early", "1", "part of the user's share that an estimate pays, above 0 to 1")(decimal(func(s *set) *float64 { return &s.Settlement.PaidEarly }, 1))
	add("loss_factor", "1", "by which settlement scales volumes")(decimal(func(s *set) *float64 { return &s.Settlement.LossFactor }, 2))
	add("rounding", settle.HalfAway.String(), "of amounts between two pennies")(
		word(func(s *set) *string { return &s.Settlement.Rounding }, settle.HalfAway.String(), settle.HalfEven.String()))
	add("claw_back", "false", "an event that cost money takes it from the user")(truth(func(s *set) *bool { return &s.Settlement.ClawBack }))
	add("close_books_after_days", "0 (never)", "a month of the books closes by itself so many days after its end")(
		whole(func(s *set) *int { return &s.Books.CloseAfterDays }, 366))
	add("default_need_wh", "4 h at the asset's power", "what a car needs whose user never told")(
		whole(func(s *set) *flex.WattHours { return &s.DefaultNeed }, 1_000_000))
	return all
}

// Run sets, and prints what holds then.
func (o *orgSet) Run(ctx context.Context, c console) error {
	known := settings()
	return o.change(ctx, func(s *flex.OrgSettings) error {
		for _, pair := range o.Values {
			name, value, given := strings.Cut(pair, "=")
			i := slices.IndexFunc(known, func(k setting) bool { return k.name == name })
			switch {
			case i < 0:
				return flex.Fail(flex.Invalid, "there is no setting %q; flexd org set %q prints them all", name, o.Name)
			case !given:
				return flex.Fail(flex.Invalid, "%s: give its value as %s=VALUE; %s= sets the default again", name, name, name)
			}
			if value == "" {
				blank := flex.OrgSettings{}
				if value = known[i].show(&blank); value == "" {
					*wordOf(s, name) = ""
					continue
				}
			}
			if err := known[i].set(s, value); err != nil {
				return flex.Fail(flex.Invalid, "%s: %q is not %v", name, value, err)
			}
		}
		t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		blank := flex.OrgSettings{}
		for _, k := range known {
			value := k.show(s)
			if value == k.show(&blank) {
				value = k.standard + " (default)"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\n", k.name, value, k.help)
		}
		return t.Flush()
	})
}

// wordOf returns the settings that are words, which are blank by default.
func wordOf(s *flex.OrgSettings, name string) *string {
	if name == "baseline" {
		return &s.Settlement.Baseline
	}
	return &s.Settlement.Rounding
}

// change does something to the organisation's settings, and keeps them if it changed any.
func (o *orgSet) change(ctx context.Context, do func(*flex.OrgSettings) error) error {
	of := ofOrg{store: o.store, Org: o.Name}
	if len(o.Values) == 0 {
		h, org, err := of.openOrg(ctx)
		if err != nil {
			return err
		}
		defer h.Close()
		return do(&org.Settings)
	}
	return of.actOn(ctx, "set settings", strings.Join(o.Values, " "), func(h *app.App, org flex.Org) error {
		if err := do(&org.Settings); err != nil {
			return err
		}
		return h.DB.Write(ctx, org.ID, func(tx *records.Tx) error { return tx.SetSettings(ctx, org.Settings) })
	})
}
