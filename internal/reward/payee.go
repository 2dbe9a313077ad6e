package reward

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// BankAccount is a United Kingdom bank account.
type BankAccount struct {
	Name     flex.Personal
	SortCode flex.Personal // six digits
	Number   flex.Personal // eight digits
}

// nameMax is the longest name of an account, in characters: what payment files take.
const nameMax = 70

// ReadBankAccount reads an account as people write it, with blanks and dashes. It fails with
// every fault at once.
func ReadBankAccount(name, sortCode, number string) (BankAccount, error) {
	var faults []flex.Fault
	fault := func(field, format string, args ...any) {
		faults = append(faults, flex.Fault{
			Loc:  []string{"body", field},
			Msg:  fmt.Sprintf(format, args...),
			Type: "value_error",
		})
	}

	name = strings.Join(strings.Fields(name), " ")
	switch {
	case name == "":
		fault("name", "the name on the account is missing")

	case utf8.RuneCountInString(name) > nameMax:
		fault("name", "the name is longer than %d characters", nameMax)

	case strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r)
	}):
		fault("name", "the name has characters that cannot be printed")

	case !bankfile.Payable(name):
		fault(
			"name",
			"write the name with letters from A to Z, as the bank does; accents are welcome",
		)
	}

	sortCode, number = digits(sortCode), digits(number)
	if len(sortCode) != 6 {
		fault("sort_code", "a sort code has six digits, as in 12-34-56")
	}

	if len(number) != 8 {
		fault(
			"account_number",
			"an account number has eight digits; put zeros in front of a shorter one",
		)
	}

	if len(faults) > 0 {
		return BankAccount{}, &flex.Error{Kind: flex.Invalid, Faults: faults}
	}

	return BankAccount{
		flex.Personal(name),
		flex.Personal(sortCode),
		flex.Personal(number),
	}, nil
}

// digits returns the text without blanks and dashes. If anything but digits remains, it returns
// an empty text.
func digits(s string) string {
	s = strings.NewReplacer(" ", "", "-", "", "\u2013", "").Replace(s)
	if strings.Trim(s, "0123456789") != "" {
		return ""
	}

	return s
}

// pack writes an account in the form that the store encrypts.
func (a BankAccount) pack() []byte {
	return []byte(strings.Join(
		[]string{a.SortCode.Reveal(), a.Number.Reveal(), a.Name.Reveal()},
		"\n",
	))
}

// unpack reads what pack wrote.
func unpack(b []byte) (BankAccount, error) {
	parts := strings.SplitN(string(b), "\n", 3)
	if len(parts) != 3 {
		return BankAccount{}, errors.New("stored bank account: it has not three parts")
	}

	return BankAccount{
		SortCode: flex.Personal(parts[0]),
		Number:   flex.Personal(parts[1]),
		Name:     flex.Personal(parts[2]),
	}, nil
}

// number identifies the account, whoever it belongs to: the sort code and the account number.
func (a BankAccount) number() string {
	return a.SortCode.Reveal() + a.Number.Reveal()
}

// endingDigits is how many digits of an account number are shown.
const endingDigits = 4

// LinkAccount stores the visitor's bank account and replaces the one before it. A new account
// is checked against the modulus tables, if there are any. Withdrawals that were not exported to
// the bank yet are cancelled, because they were requested for the previous account. The user is
// notified, at the previous e-mail address too. Linking the same account again changes nothing.
func (s *Service) LinkAccount(
	ctx context.Context,
	v Visit,
	a BankAccount,
) error {
	if err := v.checkConfirmed(); err != nil {
		return err
	}

	return s.DB.Write(ctx, v.OrgID, func(tx *store.Tx) error {
		site, err := tx.LockedSite(ctx, v.SiteID)
		if err != nil {
			return err
		}

		before, err := tx.Payee(ctx, v.SiteID)
		if err != nil {
			return err
		}

		if before != nil {
			previous, err := openAccount(tx, *before)
			if err != nil {
				return err
			}

			if previous == a {
				return nil
			}
		}

		if err := checkModulus(ctx, tx, a); err != nil {
			return err
		}

		number := a.Number.Reveal()
		payee := store.Payee{
			SiteID: v.SiteID,
			Ending: number[len(number)-endingDigits:],
		}

		err = tx.PutPayee(ctx, &payee, a.pack(), a.number())
		if err != nil {
			return err
		}

		cancelled, err := voidUnexported(
			ctx,
			tx,
			v.SiteID,
			"user",
			accountChanged,
		)
		if err != nil {
			return err
		}

		return s.notifyAccountLinked(ctx, tx, site, payee, cancelled)
	})
}

// openAccount reads a payee's account.
func openAccount(tx *store.Tx, p store.Payee) (BankAccount, error) {
	plaintext, err := tx.OpenPayee(p)
	if err != nil {
		return BankAccount{}, err
	}

	return unpack(plaintext)
}

// accountChanged is the reason for a cancellation. Operators and users read it.
const accountChanged = "the bank account was changed before the payment was made"

// voidUnexported cancels the site's withdrawals that were not exported to the bank yet. It
// returns their sum.
func voidUnexported(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	by, reason string,
) (flex.Pence, error) {
	ws, err := tx.LockUnexported(ctx, site)
	if err != nil {
		return 0, err
	}

	var sum flex.Pence
	for _, w := range ws {
		if _, err := tx.MoveWithdrawal(
			ctx,
			w.ID,
			ledger.Cancelled,
			by,
			reason,
		); err != nil {
			return 0, err
		}

		sum += w.Amount
	}

	return sum, nil
}

// notifyAccountLinked sends the user an e-mail about a newly linked account. It also goes to the
// previous address, in case somebody else linked the account.
func (s *Service) notifyAccountLinked(
	ctx context.Context,
	tx *store.Tx,
	site flex.Site,
	p store.Payee,
	cancelled flex.Pence,
) error {
	o, err := tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	text := fmt.Sprintf(
		"On %s a bank account ending in %s was linked to your balance.\n",
		when(p.ChangedAt),
		p.Ending,
	)

	from := payoutTerms(o.Settings.Payout).PaidFrom(p.ChangedAt)
	if from.After(p.ChangedAt) {
		text += fmt.Sprintf("Nothing is paid to it before %s.\n", when(from))
	}

	if cancelled > 0 {
		text += fmt.Sprintf(
			"Withdrawals of %s that had not been paid yet were cancelled. The money is in your balance.\n",
			cancelled,
		)
	}

	text += "\nIf this was not you, tell the company that you have the app from at once.\n"
	_, err = notify(ctx, tx, site, notice{
		subject: "A bank account was linked to your balance",
		text:    text,
		former:  true,
	})

	return err
}
