package store

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/worker"
)

// Queue is one kind of work of an organisation that is due at instants, as a background job does it: what fails is put off.
type Queue[ID comparable] struct {
	Kind  PutOffKind
	Batch int           // how many items are done in one transaction
	Most  int           // how many are listed at once
	After time.Duration // for how long what failed is put off at first: see worker.PutOffAfter
	Due   func(tx *Tx, ctx context.Context, limit int) ([]ID, error)
	Do    func(ctx context.Context, tx *Tx, due []ID) (did int, err error)
	Item  func(ID) PutOffItem // its ids
}

// OneID is an item that has one id.
func OneID[ID ~[16]byte](id ID) PutOffItem { return PutOffItem{ID: id} }

// Run does what is due of an organisation. What fails is put off and delays nothing else. The error is a *worker.PutOff as long as
// anything of the kind is put off, beside what else went wrong.
func (q Queue[ID]) Run(
	ctx context.Context,
	db *DB,
	org flex.OrgID,
) (worker.Report, error) {
	items := worker.Items[ID]{
		Kind:  string(q.Kind),
		Batch: q.Batch,
		Most:  q.Most,
		Log:   db.log.With("org", org),

		List: func(ctx context.Context, limit int) ([]ID, bool, error) {
			return q.list(ctx, db, org, limit)
		},
		Do: func(ctx context.Context, due []ID) (int, error) {
			return q.do(ctx, db, org, due)
		},

		PutOff: func(ctx context.Context, id ID, cause error) (bool, error) {
			return q.putOff(ctx, db, org, id, cause)
		},
		Left: func(ctx context.Context) error {
			return q.left(ctx, db, org)
		},
	}

	return items.Run(ctx)
}

// do does items in one transaction, and returns how many it took further.
func (q Queue[ID]) do(
	ctx context.Context,
	db *DB,
	org flex.OrgID,
	due []ID,
) (int, error) {
	var did int
	err := db.Write(ctx, org, func(tx *Tx) error {
		var err error
		did, err = q.Do(ctx, tx, due)
		return err
	})

	return did, err
}

// putOff has an item listed again after a while. It reports whether the item was still due.
func (q Queue[ID]) putOff(
	ctx context.Context,
	db *DB,
	org flex.OrgID,
	id ID,
	cause error,
) (bool, error) {
	item := q.Item(id)
	item.Kind = q.Kind
	item.Error = cause.Error()

	var stillDue bool
	err := db.Write(ctx, org, func(tx *Tx) error {
		before, err := tx.putOffBefore(ctx, item)
		if err != nil {
			return err
		}

		item.Until = tx.now.Add(worker.PutOffAfter(q.After, before))
		stillDue, err = tx.PutOff(ctx, item)
		return err
	})

	return stillDue, err
}

// list returns up to a number of items that are due, and whether anything was put off before.
func (q Queue[ID]) list(
	ctx context.Context,
	db *DB,
	org flex.OrgID,
	limit int,
) (due []ID, before bool, err error) {
	err = db.Read(ctx, org, func(tx *Tx) error {
		before, err = tx.AnyPutOff(ctx, q.Kind)
		if err != nil {
			return err
		}

		due, err = q.Due(tx, ctx, limit)
		return err
	})

	return due, before, err
}

// putOffNamed is of how many items that are put off a run says why.
const putOffNamed = 5

// left is what is put off of the kind, as an error; nil if nothing is.
func (q Queue[ID]) left(
	ctx context.Context,
	db *DB,
	org flex.OrgID,
) error {
	var items []PutOffItem
	var total int
	err := db.Write(ctx, org, func(tx *Tx) error {
		var err error
		items, total, err = tx.LeftPutOff(ctx, q.Kind, putOffNamed)
		return err
	})
	if err != nil || total == 0 {
		return err
	}

	failed := &worker.PutOff{Total: total}
	for i := range items {
		failed.Items = append(failed.Items, items[i].String())
	}

	return failed
}

// String says what is put off, until when, and why.
func (i PutOffItem) String() string {
	name := fmt.Sprintf("%s %s", i.Kind, flex.EventID(i.ID))
	if !i.Part.IsZero() {
		name += fmt.Sprintf(" of asset %s", i.Part)
	}

	return fmt.Sprintf(
		"%s is put off until %s, after %d failures: %s",
		name,
		i.Until.Format(time.RFC3339),
		i.Tries,
		i.Error,
	)
}
