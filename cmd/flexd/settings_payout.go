package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// integerOr makes a setting that is a whole number, of which zero is not the default.
func integerOr[N ~int | ~int64](s setting, field func(*flex.OrgSettings) *flex.Optional[N], most N) setting {
	s.show = func(o *flex.OrgSettings) string {
		if v := field(o); v.Given {
			return strconv.FormatInt(int64(v.Value), 10)
		}
		return ""
	}

	s.set = func(o *flex.OrgSettings, text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > int64(most) {
			return fmt.Errorf("a whole number from 0 to %d", most)
		}

		*field(o) = flex.Some(N(n))
		return nil
	}

	s.clear = func(o *flex.OrgSettings) { *field(o) = flex.Optional[N]{} }
	return s
}

// text makes a setting that is a text of a form.
func text(s setting, field func(*flex.OrgSettings) *string, read func(string) (string, error)) setting {
	s.show = func(o *flex.OrgSettings) string { return *field(o) }
	s.set = func(o *flex.OrgSettings, text string) error {
		v, err := read(text)
		if err == nil {
			*field(o) = v
		}
		return err
	}

	s.clear = func(o *flex.OrgSettings) { *field(o) = "" }
	return s
}

// digitsOf reads a number of so many digits, with blanks and dashes.
func digitsOf(n int) func(string) (string, error) {
	return func(text string) (string, error) {
		text = strings.NewReplacer(" ", "", "-", "").Replace(text)
		if len(text) != n || strings.Trim(text, "0123456789") != "" {
			return "", fmt.Errorf("%d digits", n)
		}
		return text, nil
	}
}

// truthOf returns the functions of a setting for a field that is true or false. on is the
// field's value when the setting is on.
func truthOf(field func(*flex.OrgSettings) *bool, on bool) (func(*flex.OrgSettings) string, func(*flex.OrgSettings, string) error) {
	return func(o *flex.OrgSettings) string { return strconv.FormatBool(*field(o) == on) },
		func(o *flex.OrgSettings, text string) error {
			value, err := strconv.ParseBool(text)
			if err != nil {
				return errors.New("true or false")
			}

			*field(o) = value == on
			return nil
		}
}

// twoFactor returns the setting of the e-mailed code. Its field has the opposite meaning.
func twoFactor() setting {
	s := setting{name: "two_factor", standard: "true", help: "an e-mailed code before bank account and withdrawal; without it, a link by a credential with the roles rewards and payouts is enough"}
	s.show, s.set = truthOf(func(o *flex.OrgSettings) *bool { return &o.Payout.WithoutCode }, false)

	s.clear = func(o *flex.OrgSettings) { o.Payout.WithoutCode = false }
	return s
}

// payoutSettings lists the settings of an organisation's payments.
func payoutSettings() []setting {
	type org = flex.OrgSettings
	standard := ledger.DefaultPayoutTerms
	hours := strconv.Itoa(int(standard.Cooling / time.Hour))
	list := []setting{
		twoFactor(),

		integerOr(setting{name: "payout_cooling_hours", standard: hours, help: "hours before anything is paid to an account that was linked"},
			func(o *org) *flex.Optional[int] { return &o.Payout.CoolingHours }, 24*90),
		integerOr(setting{name: "two_operators_above_pence", standard: pence(standard.TwoAbove), help: "more to one account on one day needs two operators"},
			func(o *org) *flex.Optional[flex.Pence] { return &o.Payout.TwoAbove }, 100_000_000),
		integerOr(setting{name: "daily_payout_cap_pence", standard: pence(standard.DailyCap), help: "the most that is approved on one day, by London time"},
			func(o *org) *flex.Optional[flex.Pence] { return &o.Payout.DailyCap }, 10_000_000_000),

		text(setting{name: "payment_file_format", standard: string(bankfile.CSV), help: "of payment files: csv, bacs18 (Bacs Standard 18) or pain.001 (ISO 20022)"},
			func(o *org) *string { return &o.Payout.FileFormat }, func(text string) (string, error) {
				format, err := bankfile.ReadFormat(text)
				return string(format), err
			}),
	}

	return append(list, payerSettings()...)
}

func pence(p flex.Pence) string { return strconv.FormatInt(int64(p), 10) }

// payerSettings lists the settings of the paying account.
func payerSettings() []setting {
	type org = flex.OrgSettings
	add := func(name, help string, read func(string) (string, error), field func(*flex.PayerSettings) *string) setting {
		return text(setting{name: name, standard: "none", help: help}, func(o *org) *string { return field(&o.Payout.Payer) }, read)
	}
	return []setting{
		add("payer_sort_code", "of the account that pays", digitsOf(6), func(p *flex.PayerSettings) *string { return &p.SortCode }),
		add("payer_account", "the number of the account that pays", digitsOf(8), func(p *flex.PayerSettings) *string { return &p.Number }),
		add("payer_sun", "the service user number at Bacs", digitsOf(6), func(p *flex.PayerSettings) *string { return &p.SUN }),
		add("payer_iban", "of the account that pays, where the bank wants one in pain.001", bankfile.ReadIBAN, func(p *flex.PayerSettings) *string { return &p.IBAN }),
		add("payer_bic", "of the bank that pays, where it wants one in pain.001", bankfile.ReadBIC, func(p *flex.PayerSettings) *string { return &p.BIC }),
	}
}
