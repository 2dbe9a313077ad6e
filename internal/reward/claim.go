package reward

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// ResettledFor is how long after its day something is settled again: as long as readings are
// taken of it. Those that it is compared with may be forgotten after that.
const ResettledFor = 400 * 24 * time.Hour

// pastRetention reports whether a day is so long ago that what was settled of it stays as it is.
func pastRetention(d flex.Day, now time.Time) bool {
	return now.Sub(d.Add(1).Start()) > ResettledFor
}

// readableFor is how long ago a session may have begun whose readings are all there. It is a day less
// than readings are kept.
const readableFor = ResettledFor + 61*24*time.Hour

// dueMax is the number of items of one kind that a run lists of an organisation.
const dueMax = 500

// owed is what a session or a flex event has earned, as it is known now, beside what the books
// say about it.
type owed struct {
	ledger.Booked // its site, time, day, cause and figures

	subject string           // by which the keys of its transactions begin
	was     []ledger.Posting // what was posted about it, in sum
	should  []ledger.Posting // what should be
	energy  flex.WattHours   // that its transactions should say in sum

	more   flex.WattHours // energy in the user's favour beyond what was posted
	listed bool           // the user sees it
	// what the user reads of it has changed, whatever the postings say
	moved bool
}

// revision makes the transaction that takes the books from what they say to what they should
// say, and counts it. It is nil if nothing has changed.
func (o *owed) revision(p *store.Progress) *ledger.Booked {
	t := &o.Booked
	t.Postings = ledger.Revised(o.was, o.should)
	t.Kind, t.Key = ledger.FlexEvent, o.subject

	if p.Posted > 0 {
		t.Kind, t.Key = changeKind(t.Credit(), o.more), fmt.Sprintf("%s:%d", o.subject, p.Posted)
	}

	first := p.Posted == 0 && o.listed
	changed := len(t.Postings) > 0 || o.moved && o.listed
	if !first && !changed {
		return nil
	}

	p.Posted++
	p.PostedWh = o.energy

	return t
}

// changeKind is the kind of a transaction that says what changed: a correction if it takes
// something away.
func changeKind(credit flex.Pence, more flex.WattHours) ledger.Kind {
	if credit < 0 || credit == 0 && more < 0 {
		return ledger.Correction
	}
	return ledger.FlexPeriodTopUp
}

// postRevisions writes revisions into the books.
func postRevisions(
	ctx context.Context,
	tx *store.Tx,
	revisions []*ledger.Booked,
) error {
	for _, t := range revisions {
		if _, err := tx.Post(ctx, t); err != nil {
			return err
		}
	}

	return nil
}

// recheck is how soon a claim is looked at again that waits for more than a reading.
const recheck = time.Hour

// outlook is what a claim waits for.
type outlook struct {
	// the first half-hour that no reading tells; zero if none is missing
	missing time.Time
	next    time.Time // when to look again whatever comes; zero for never
	// it is looked at because the reading came that it waited for
	came bool
}

// wait notes what a claim waits for from now on.
func (o outlook) wait(p *store.Progress, now time.Time) {
	// What came was not enough: look again, but not at once.
	if o.came && !o.missing.IsZero() && o.missing.Equal(p.WaitsAt) {
		o.missing = time.Time{}
		o.next = sooner(o.next, now.Add(recheck))
	}

	// Of what is final, any reading that comes marks it as due.
	if o.next.IsZero() {
		o.missing = time.Time{}
	}

	p.WaitsAt, p.LookAt = o.missing, o.next
}

// movedOn reports whether a claim has come further than it was.
func movedOn(was, is store.Progress) bool {
	closed := is.LookAt.IsZero() && !was.LookAt.IsZero()
	return closed || is.Posted != was.Posted || !is.WaitsAt.Equal(was.WaitsAt)
}

// sooner returns the earlier of two instants; a zero one never comes.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || a.Before(b) {
		return a
	}
	return b
}
