package ledger

import (
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Account is an account in an organisation's books. PerSite says which accounts are divided by
// site.
type Account string

// The accounts.
const (
	// what the market owes for flexibility; a debit
	MarketReceivable Account = "market_receivable"
	// the share that is not the users'
	PlatformRevenue Account = "platform_revenue"
	// what is owed to a site's user; a credit
	RewardsPayable Account = "rewards_payable"
	// what a site's user has earned and can withdraw later; a credit
	RewardsAccrued Account = "rewards_accrued"
	// withdrawn by a site's user, and not yet at the user's bank; a credit
	PayoutsInFlight Account = "payouts_in_flight"
	// received from the market, less what was paid to users' banks
	Bank Account = "bank"
	// bonuses, referrals and goodwill
	PromotionsExpense Account = "promotions_expense"
	// credits at a rate, owed whatever the market pays
	RewardsExpense Account = "rewards_expense"
	// the pence between an amount and the sum of its rounded parts
	Rounding Account = "rounding"
	// owed to users whose sites were offboarded long ago; a credit
	UnclaimedBalances Account = "unclaimed_balances"
	// owed to the organisation, and written off
	WriteOffs Account = "write_offs"
)

// Accounts lists every account.
var Accounts = []Account{
	MarketReceivable, PlatformRevenue, RewardsPayable, RewardsAccrued, PayoutsInFlight, Bank, PromotionsExpense, RewardsExpense, Rounding,
	UnclaimedBalances, WriteOffs,
}

// PerSite reports whether the account is divided by site: each posting to it names one.
func (a Account) PerSite() bool {
	return slices.Contains(
		[]Account{
			RewardsPayable,
			RewardsAccrued,
			PayoutsInFlight,
			UnclaimedBalances,
		},
		a,
	)
}

// Posting is one side of a transaction: a debit is positive, a credit negative.
type Posting struct {
	Account Account
	Amount  flex.Pence
}

// Kind is the interface's transaction type.
type Kind string

// The kinds of transaction, spelled as in the interface, with its spaces and capitals.
const (
	FlexPeriod              Kind = "flex period"
	FlexPeriodTopUp         Kind = "flex period top-up"
	FlexEvent               Kind = "flex event"
	Withdrawal              Kind = "withdrawal"
	InvoicePaid             Kind = "invoice paid"
	GoodwillCredit          Kind = "goodwill credit"
	SignupBonus             Kind = "signup bonus"
	Correction              Kind = "correction"
	VPPSignupBonus          Kind = "VPP Signup Bonus"
	ReferredCredit          Kind = "Referred Credit"
	ReferrerCredit          Kind = "Referrer Credit"
	RecurringReferrerCredit Kind = "Recurring Referrer Credit"
	FRReferredCredit        Kind = "FR SC Referred Credit"
	FRReferrerCredit        Kind = "FR SC Referrer Credit"
	FRSignupBonus           Kind = "FR SC Signup Bonus"
)

// Kinds lists every kind.
var Kinds = []Kind{
	FlexPeriod, FlexPeriodTopUp, FlexEvent, Withdrawal, InvoicePaid, GoodwillCredit, SignupBonus, Correction,
	VPPSignupBonus, ReferredCredit, ReferrerCredit, RecurringReferrerCredit, FRReferredCredit, FRReferrerCredit, FRSignupBonus,
}

// Cause says what led to a transaction. At least one field is set on every transaction.
type Cause struct {
	FlexEvent flex.FlexEventID
	Session   flex.SessionID
	Run       flex.RunID         // the settlement run that computed it
	Corrects  flex.TransactionID // the transaction that this one corrects
	// the withdrawal that this is a step of; such a step is not listed by itself
	Follows flex.TransactionID
	By      string // who decided it, where no background job did
	Reason  string // why, in the words of who decided it
}

// Transaction is one movement of a site's money, all postings or none.
type Transaction struct {
	ID flex.TransactionID
	// what it is about, so that it happens once: "flex event:ID:1"
	Key      string
	Kind     Kind
	SiteID   flex.SiteID
	At       time.Time // when it was recorded
	Time     flex.Span // what it is for; a withdrawal has only a beginning
	Settled  flex.Day  // zero until known
	BookedOn flex.Day  // the day of the books that it counts in
	Cause    Cause
	Postings []Posting

	Counterparty string // who owes or pays the market money in it
	Reference    string // the payer's own name of a receipt
}

// MaxAmount bounds a posting: a hundred million pounds. Anything above is a mistake.
const MaxAmount flex.Pence = 10_000_000_000

// Credit is what the transaction gives the user: positive is earned, negative withdrawn.
func (t *Transaction) Credit() flex.Pence {
	var p flex.Pence
	for _, e := range t.Postings {
		if e.Account == RewardsPayable {
			p -= e.Amount
		}
	}

	return p
}

// Same reports whether two transactions of one key move the same money for the same
// reason; when they were recorded, and under which id, does not matter.
func (t *Transaction) Same(o *Transaction) bool {
	return t.Key == o.Key && t.Kind == o.Kind && t.SiteID == o.SiteID &&
		len(Revised(t.Postings, o.Postings)) == 0
}

// Check returns what is wrong with the transaction, or nil.
func (t *Transaction) Check() error {
	if t.Key == "" {
		return fmt.Errorf("transaction without a key")
	}

	if !slices.Contains(Kinds, t.Kind) {
		return fmt.Errorf("transaction %s: unknown kind %q", t.Key, t.Kind)
	}

	if t.SiteID.IsZero() &&
		slices.ContainsFunc(t.Postings, func(p Posting) bool {
			return p.Account.PerSite()
		}) {
		return fmt.Errorf("transaction %s: no site", t.Key)
	}

	if t.Cause == (Cause{}) {
		return fmt.Errorf("transaction %s: no cause", t.Key)
	}

	return CheckPostings(t.Key, t.Postings)
}

// CheckPostings returns what is wrong with a set of postings, or nil: they name known
// accounts, once each, lie within bounds and sum to zero. A set may be empty, for what is
// worth nothing.
func CheckPostings(key string, postings []Posting) error {
	var sum flex.Pence
	seen := map[Account]bool{}

	for _, p := range postings {
		switch {
		case !slices.Contains(Accounts, p.Account):
			return fmt.Errorf(
				"transaction %s: unknown account %q",
				key,
				p.Account,
			)

		case seen[p.Account]:
			return fmt.Errorf(
				"transaction %s: two postings on %s",
				key,
				p.Account,
			)

		case p.Amount == 0:
			return fmt.Errorf(
				"transaction %s: an empty posting on %s",
				key,
				p.Account,
			)

		case p.Amount > MaxAmount || p.Amount < -MaxAmount:
			return fmt.Errorf(
				"transaction %s: %s on %s is beyond %s",
				key,
				p.Amount,
				p.Account,
				MaxAmount,
			)
		}

		seen[p.Account], sum = true, sum+p.Amount
	}

	if sum != 0 {
		return fmt.Errorf(
			"transaction %s: the postings sum to %s, not to nothing",
			key,
			sum,
		)
	}

	return nil
}

// Set returns postings for the amounts, leaving out those of nothing.
func Set(postings ...Posting) []Posting {
	return slices.DeleteFunc(postings, func(p Posting) bool {
		return p.Amount == 0
	})
}

// EarnedInPart returns the postings of revenue from the market: gross is divided between the
// user, who is paid a part later, and the platform. What the rounding of each leaves over is
// posted as such.
func EarnedInPart(gross, user, later, platform flex.Pence) []Posting {
	return Set(
		Posting{MarketReceivable, gross},
		Posting{RewardsPayable, -user},
		Posting{RewardsAccrued, -later},
		Posting{PlatformRevenue, -platform},
		Posting{Rounding, user + later + platform - gross})
}

// Credited returns the postings of a credit at a rate.
func Credited(user flex.Pence) []Posting {
	return Set(Posting{RewardsExpense, user}, Posting{RewardsPayable, -user})
}

// Given returns the postings of a gift.
func Given(user flex.Pence) []Posting {
	return Set(Posting{PromotionsExpense, user}, Posting{RewardsPayable, -user})
}

// DefaultCounterparty names who owes market money where the organisation has named nobody.
const DefaultCounterparty = "market"

// Received returns the postings of market money that came.
func Received(p flex.Pence) []Posting {
	return Set(Posting{Bank, p}, Posting{MarketReceivable, -p})
}

// WrittenOff returns the postings that give up what is owed to the organisation on an account.
func WrittenOff(p flex.Pence, on Account) []Posting {
	return Set(Posting{WriteOffs, p}, Posting{on, -p})
}

// Unclaimed returns the postings that take a balance away which nobody can withdraw any more.
func Unclaimed(p flex.Pence) []Posting {
	return Set(Posting{RewardsPayable, p}, Posting{UnclaimedBalances, -p})
}

// AccruedPayable returns the postings that make payable what was to be paid later.
func AccruedPayable(p flex.Pence) []Posting {
	return Set(Posting{RewardsAccrued, p}, Posting{RewardsPayable, -p})
}

// Revised returns the postings that take a transaction's postings from what they were to
// what they should be; none if nothing changed.
func Revised(was, should []Posting) []Posting {
	amounts := map[Account]flex.Pence{}
	for _, p := range should {
		amounts[p.Account] += p.Amount
	}

	for _, p := range was {
		amounts[p.Account] -= p.Amount
	}

	var delta []Posting
	for _, a := range Accounts {
		if amounts[a] != 0 {
			delta = append(delta, Posting{a, amounts[a]})
		}
	}

	return delta
}

// Reversed returns the postings that undo the given ones.
func Reversed(postings []Posting) []Posting { return Revised(postings, nil) }
