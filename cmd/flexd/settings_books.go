package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"flexd/internal/books"
	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// line makes a setting of free text on one line; the empty text is the default.
func line(name, standard, help string, field func(*flex.OrgSettings) *string) setting {
	return setting{
		name: name, standard: standard, help: help,
		show: func(s *flex.OrgSettings) string { return *field(s) },
		set: func(s *flex.OrgSettings, text string) error {
			if len([]rune(text)) > books.TextMax || strings.ContainsFunc(text, unicode.IsControl) {
				return fmt.Errorf("text of at most %d characters on one line", books.TextMax)
			}
			*field(s) = text
			return nil
		},
		clear: func(s *flex.OrgSettings) { *field(s) = "" },
	}
}

// fromOne makes a setting of a whole number from 1 on.
func fromOne[N ~int | ~int64](name, standard, help string, most N, field func(*flex.OrgSettings) *N) setting {
	return setting{
		name: name, standard: standard, help: help,
		show: func(s *flex.OrgSettings) string { return strconv.FormatInt(int64(*field(s)), 10) },
		set: func(s *flex.OrgSettings, text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 1 || n > int64(most) {
				return fmt.Errorf("a whole number from 1 to %d", most)
			}

			*field(s) = N(n)
			return nil
		},
		clear: func(s *flex.OrgSettings) { *field(s) = 0 },
	}
}

// bookSettings are those of an organisation's books.
func bookSettings() []setting {
	type set = flex.OrgSettings
	return []setting{
		line(
			"counterparty",
			ledger.DefaultCounterparty,
			"who pays for the organisation's flexibility",
			func(s *set) *string { return &s.Books.Counterparty },
		),
		line(
			"payer_name",
			"the organisation's name",
			"who pays the users, on their statements",
			func(s *set) *string { return &s.Books.PayerName },
		),
		line(
			"payer_address",
			"none",
			"on the users' statements",
			func(s *set) *string { return &s.Books.PayerAddress },
		),
		line("payer_contact", "none", "an e-mail address or a telephone number, on the users' statements",
			func(s *set) *string { return &s.Books.PayerContact }),

		fromOne("gift_limit_pence", strconv.Itoa(int(books.DefaultManualLimit)), "the most that one goodwill, bonus or write-off may be", 1_000_000,
			func(s *set) *flex.Pence { return &s.Books.GiftLimit }),
		fromOne("unclaimed_after_days", strconv.Itoa(books.DefaultUnclaimedDays), "how long the balance of an offboarded site rests before it may be moved", 36500,
			func(s *set) *int { return &s.Books.UnclaimedDays }),
	}
}
