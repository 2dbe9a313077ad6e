package reward

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"flexd/internal/flex"
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
		faults = append(faults, flex.Fault{Loc: []string{"body", field}, Msg: fmt.Sprintf(format, args...), Type: "value_error"})
	}
	name = strings.Join(strings.Fields(name), " ")
	switch {
	case name == "":
		fault("name", "the name on the account is missing")
	case utf8.RuneCountInString(name) > nameMax:
		fault("name", "the name is longer than %d characters", nameMax)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		fault("name", "the name has characters that cannot be printed")
	}
	sortCode, number = digits(sortCode), digits(number)
	if len(sortCode) != 6 {
		fault("sort_code", "a sort code has six digits, as in 12-34-56")
	}
	if len(number) != 8 {
		fault("account_number", "an account number has eight digits; put zeros in front of a shorter one")
	}
	if len(faults) > 0 {
		return BankAccount{}, &flex.Error{Kind: flex.Invalid, Faults: faults}
	}
	return BankAccount{flex.Personal(name), flex.Personal(sortCode), flex.Personal(number)}, nil
}

// digits returns the text without blanks and dashes, or nothing if other than digits is left.
func digits(s string) string {
	s = strings.NewReplacer(" ", "", "-", "", "\u2013", "").Replace(s)
	if strings.Trim(s, "0123456789") != "" {
		return ""
	}
	return s
}

// pack writes an account as it is kept under seal.
func (a BankAccount) pack() []byte {
	return []byte(strings.Join([]string{a.SortCode.Reveal(), a.Number.Reveal(), a.Name.Reveal()}, "\n"))
}

// unpack reads what pack wrote.
func unpack(b []byte) (BankAccount, error) {
	parts := strings.SplitN(string(b), "\n", 3)
	if len(parts) != 3 {
		return BankAccount{}, errors.New("stored bank account: it has not three parts")
	}
	return BankAccount{SortCode: flex.Personal(parts[0]), Number: flex.Personal(parts[1]), Name: flex.Personal(parts[2])}, nil
}

// LinkAccount keeps the visitor's bank account, in the place of any other.
func (d *Service) LinkAccount(ctx context.Context, v Visit, a BankAccount) error {
	if err := v.confirmed(); err != nil {
		return err
	}
	return d.DB.Write(ctx, v.OrgID, func(tx *store.Tx) error {
		if _, err := tx.HoldSite(ctx, v.SiteID); err != nil {
			return err
		}
		number := a.Number.Reveal()
		return tx.PutPayee(ctx, store.Payee{SiteID: v.SiteID, Ending: number[len(number)-2:]}, a.pack())
	})
}
