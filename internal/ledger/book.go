package ledger

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"flexd/internal/flex"
)

// Book is an organisation's transactions in the order in which they were posted. It is the
// ledger in memory: what the store must agree with.
type Book struct {
	entries []Transaction
	byKey   map[string]int
}

// Post adds a transaction. One whose key is taken already is not added again: if it says
// the same it is as if it had been, and if it says anything else it is a Conflict.
func (b *Book) Post(t Transaction) (posted bool, err error) {
	if err := t.Check(); err != nil {
		return false, err
	}
	if i, taken := b.byKey[t.Key]; taken {
		if !b.entries[i].Same(&t) {
			return false, flex.Fail(flex.Conflict, "transaction %s is posted already, and says something else", t.Key)
		}
		return false, nil
	}
	if b.byKey == nil {
		b.byKey = map[string]int{}
	}
	b.byKey[t.Key] = len(b.entries)
	t.Postings = slices.Clone(t.Postings)
	b.entries = append(b.entries, t)
	return true, nil
}

// Same reports whether two transactions of one key move the same money for the same
// reason; when they were recorded, and under which id, does not matter.
func (t *Transaction) Same(o *Transaction) bool {
	return t.Key == o.Key && t.Kind == o.Kind && t.SiteID == o.SiteID && len(Revised(t.Postings, o.Postings)) == 0
}

// Balances adds up the postings: by account, and for accounts kept per site by site too.
func (b *Book) Balances() map[Heading]flex.Pence {
	sums := map[Heading]flex.Pence{}
	for i := range b.entries {
		for _, p := range b.entries[i].Postings {
			h := Heading{Account: p.Account}
			if p.Account.PerSite() {
				h.SiteID = b.entries[i].SiteID
			}
			sums[h] += p.Amount
		}
	}
	maps.DeleteFunc(sums, func(_ Heading, p flex.Pence) bool { return p == 0 })
	return sums
}

// Heading is an account, of one site where it is kept per site.
type Heading struct {
	Account Account
	SiteID  flex.SiteID
}

// Transactions returns the book's entries, oldest first.
func (b *Book) Transactions() []Transaction { return b.entries }

// AppendText appends the book's canonical bytes: a line per transaction and posting.
func (b *Book) AppendText(to []byte) []byte {
	for i := range b.entries {
		t := &b.entries[i]
		to = fmt.Appendf(to, "%s %s %q\n", t.Key, t.SiteID, t.Kind)
		for _, p := range slices.SortedFunc(slices.Values(t.Postings), func(a, b Posting) int {
			return bytes.Compare([]byte(a.Account), []byte(b.Account))
		}) {
			to = fmt.Appendf(to, "  %s %d\n", p.Account, p.Amount)
		}
	}
	return to
}
