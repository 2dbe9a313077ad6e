package adr

import (
	"context"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// readersBefore returns the subscriptions of VENs that can read a program or an event, if its
// new targets or program may take it from them.
func readersBefore(
	ctx context.Context,
	tx *store.Tx,
	previous *flex.ADRObject,
	document any,
) ([]store.ADRSubscriber, error) {
	if previous == nil || !hasNewReaders(previous, document.(map[string]any)) {
		return nil, nil
	}

	subscribers, err := tx.ADRSubscribers(ctx, previous.Kind)
	if err != nil {
		return nil, err
	}

	var readers []store.ADRSubscriber
	o := Object{ADRObject: *previous}
	for i := range subscribers {
		sub := &subscribers[i]
		if sub.Business || !concerns(&sub.ADRObject, &o) {
			continue
		}

		may, err := reads(ctx, tx, sub, &o)
		if err != nil {
			return nil, err
		}
		if may {
			readers = append(readers, *sub)
		}
	}

	return readers, nil
}

// hasNewReaders reports whether a document has other targets, or another program, than the object
// that it replaces.
func hasNewReaders(previous *flex.ADRObject, document map[string]any) bool {
	if previous.Kind != flex.ADRProgram && previous.Kind != flex.ADREvent {
		return false
	}

	targets := slices.Compact(slices.Sorted(slices.Values(stringList(document["targets"]))))
	changedProgram := previous.Kind == flex.ADREvent && document["programID"] != previous.Program.String()

	return changedProgram || !slices.Equal(targets, previous.Targets)
}

// notifyDeleted queues a DELETE notice to those who may no longer read an object, because they
// get NotFound for it from now on. The notice has the last version that they could read. All
// together take at most the bytes that are left.
func notifyDeleted(
	ctx context.Context,
	tx *store.Tx,
	previous *flex.ADRObject,
	readers []store.ADRSubscriber,
	bytesLeft *int,
) error {
	if len(readers) == 0 {
		return nil
	}

	o, err := objectOf(previous)
	if err != nil {
		return err
	}

	body, err := noticeOf(&o, opDelete)
	if err != nil {
		return err
	}

	sentBytes := map[string]int{}
	for i := range readers {
		sub := &readers[i]
		// As after a deletion, the rest find out when they ask for it.
		most := min(*bytesLeft/len(body), NoticesMax/NoticesShare/len(body)-sentBytes[sub.Client])
		may, err := reads(ctx, tx, sub, &o)
		if err != nil {
			return err
		}
		if may || most <= 0 {
			continue
		}

		n, err := queueNotices(
			ctx,
			tx,
			sub,
			&o,
			opDelete,
			string(body),
			most,
		)
		if err != nil {
			return err
		}

		sentBytes[sub.Client] += n
		*bytesLeft -= n * len(body)
	}

	return nil
}
