package reward

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// ResettledFor is for how long after its day something is settled again: as long as readings
// are accepted for it. After that the readings of the days before, of which a baseline is
// made, may be deleted.
const ResettledFor = 400 * 24 * time.Hour

// pastRetention reports whether a day is longer ago than ResettledFor, so that its settlements
// do not change any more.
func pastRetention(d flex.Day, now time.Time) bool {
	return now.Sub(d.Add(1).Start()) > ResettledFor
}

// readableFor is how long ago a session may have begun of which no reading was deleted yet. It
// is a day less than the retention of readings.
const readableFor = ResettledFor + 61*24*time.Hour

// dueMax is the number of items of one kind that a run lists of an organisation.
const dueMax = 500

// bookingTarget is what a session or a flex event has earned by what is known now, and what was posted
// about it.
type bookingTarget struct {
	ledger.Booked // its site, time, day, cause and figures

	subject string           // the beginning of the keys of its transactions
	posted  []ledger.Posting // the sum of what was posted
	target  []ledger.Posting // what the sum should be
	energy  flex.WattHours   // that its transactions should have in sum

	more    flex.WattHours // energy in the user's favour beyond what was posted
	visible bool           // the user sees it
	// the event's own values, which the user can read, changed even if no posting does
	changed bool
}

// revision returns the transaction with the difference between what should be posted and what
// is, and counts it in the progress. It is nil if nothing has changed.
func (o *bookingTarget) revision(p *store.Progress) *ledger.Booked {
	t := &o.Booked
	t.Postings = ledger.Revised(o.posted, o.target)
	t.Kind, t.Key = ledger.FlexEvent, o.subject

	if p.Posted > 0 {
		t.Kind, t.Key = changeKind(t.Credit(), o.more), fmt.Sprintf("%s:%d", o.subject, p.Posted)
	}

	first := p.Posted == 0 && o.visible
	changed := len(t.Postings) > 0 || o.changed && o.visible
	if !first && !changed {
		return nil
	}

	p.Posted++
	p.PostedWh = o.energy

	return t
}

// changeKind is the kind of a transaction that posts a difference: a correction if it takes
// money or energy away.
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

// recheck is after how long a claim is looked at again that waits for more than a reading.
const recheck = time.Hour

// outlook says what a claim waits for.
type outlook struct {
	// the first half-hour without a reading; zero if none is missing
	missing time.Time
	next    time.Time // when to look again whatever comes; zero for never
	// it is looked at because the reading that it waited for has arrived
	arrived bool
}

// wait records what a claim waits for from now on.
func (o outlook) wait(p *store.Progress, now time.Time) {
	// The reading that arrived was not enough: look again, but not at once.
	if o.arrived && !o.missing.IsZero() && o.missing.Equal(p.WaitsAt) {
		o.missing = time.Time{}
		o.next = sooner(o.next, now.Add(recheck))
	}

	// After that, any reading that arrives marks the claim as due.
	if o.next.IsZero() {
		o.missing = time.Time{}
	}

	p.WaitsAt, p.LookAt = o.missing, o.next
}

// hasProgressed reports whether a claim's progress has changed.
func hasProgressed(before, after store.Progress) bool {
	closed := after.LookAt.IsZero() && !before.LookAt.IsZero()
	return closed || after.Posted != before.Posted || !after.WaitsAt.Equal(before.WaitsAt)
}

// sooner returns the earlier of two instants; a zero one never comes.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || a.Before(b) {
		return a
	}
	return b
}
