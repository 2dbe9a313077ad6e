package reward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/worker"
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

// dueMax is the number of sessions, or of events, that one job takes on of an organisation.
const dueMax = 500

// settlementQueue is one kind of claim: sessions, or flex events.
type settlementQueue[ID any] struct {
	batch  int // settled in one transaction
	due    func(tx *store.Tx, ctx context.Context, limit int) ([]ID, error)
	settle func(ctx context.Context, tx *store.Tx, due []ID) (did int, err error)
}

// settleDue settles what is due of one kind in an organisation. What cannot be settled delays nothing else: it is due again in the
// next run.
func settleDue[ID any](
	ctx context.Context,
	db *store.DB,
	org flex.OrgID,
	q settlementQueue[ID],
	report *worker.Report,
) error {
	var due []ID
	err := db.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		due, err = q.due(tx, ctx, dueMax)
		return err
	})
	if err != nil {
		return err
	}

	report.More = report.More || len(due) == dueMax

	var failed failures
	for chunk := range slices.Chunk(due, q.batch) {
		did, err := q.settleTogether(ctx, db, org, chunk)
		if err != nil && !endsRun(ctx, err) {
			did, err = q.settleEach(ctx, db, org, chunk)
		}

		report.Did += did
		failed.add(err)
		if endsRun(ctx, err) {
			break
		}
	}

	return failed.err()
}

// settleTogether settles what is due in one transaction, and returns how many moved on.
func (q settlementQueue[ID]) settleTogether(
	ctx context.Context,
	db *store.DB,
	org flex.OrgID,
	due []ID,
) (did int, err error) {
	defer flex.Recover(&err)

	err = db.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		did, err = q.settle(ctx, tx, due)
		return err
	})
	if err != nil {
		did = 0
	}

	return did, err
}

// settleEach settles what is due one by one, each in a transaction of its own.
func (q settlementQueue[ID]) settleEach(
	ctx context.Context,
	db *store.DB,
	org flex.OrgID,
	due []ID,
) (int, error) {
	var did int
	var failed failures
	for i := range due {
		n, err := q.settleTogether(ctx, db, org, due[i:i+1])
		did += n
		failed.add(err)
		if endsRun(ctx, err) {
			break
		}
	}

	return did, failed.err()
}

// endsRun reports whether a failure is not of what was to be settled: all else that is due would fail in the same way.
func endsRun(ctx context.Context, err error) bool {
	return ctx.Err() != nil || flex.KindOf(err) == flex.Unavailable
}

// failuresNamed is of how many failures a run says what they are; of the others it says how many there are.
const failuresNamed = 5

// failures are those of a run.
type failures struct {
	named []error
	more  int
}

func (f *failures) add(err error) {
	switch {
	case err == nil:
	case len(f.named) < failuresNamed:
		f.named = append(f.named, err)
	default:
		f.more++
	}
}

// err is nil if nothing failed.
func (f *failures) err() error {
	err := errors.Join(f.named...)
	if f.more > 0 {
		err = fmt.Errorf("%w\nand %d more failed", err, f.more)
	}

	return err
}

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
