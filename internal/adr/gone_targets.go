package adr

import (
	"context"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// formerReadersMax is the most programs, and the most events, about which a VEN is notified that it may
// no longer read them because its own targets changed. It learns about the rest when it reads.
const formerReadersMax = 1000

// readable is a program or an event, and the subscriptions of a VEN that may read it.
type readable struct {
	object  flex.ADRObject
	readers []store.ADRSubscriber
}

// readableBefore returns the programs, and the events that are not over, that the client of a
// VEN or a resource may read and subscribed to. It is called before its targets or its client
// change, or it is deleted (document is nil).
func readableBefore(
	ctx context.Context,
	tx *store.Tx,
	previous *flex.ADRObject,
	document map[string]any,
) ([]readable, error) {
	if previous == nil || !losesTargets(previous, document) {
		return nil, nil
	}

	var found []readable
	for _, kind := range []flex.ADRKind{flex.ADRProgram, flex.ADREvent} {
		subscribers, err := tx.ADRSubscribers(ctx, kind)
		subscribers = slices.DeleteFunc(subscribers, func(s store.ADRSubscriber) bool {
			return s.Business || s.Client != previous.Client
		})
		if err != nil {
			return nil, err
		}
		if len(subscribers) == 0 { // it may have subscribed to the other kind alone
			continue
		}

		objects, err := tx.ADRObjects(ctx, flex.ADRSearch{
			Kind:      kind,
			VisibleTo: previous.Client,
			Active:    true,
			Limit:     formerReadersMax,
		})
		if err != nil {
			return nil, err
		}

		for i := range objects {
			o := Object{ADRObject: objects[i]}
			readers := slices.DeleteFunc(slices.Clone(subscribers), func(s store.ADRSubscriber) bool {
				return !concerns(&s.ADRObject, &o)
			})
			found = append(found, readable{object: o.ADRObject, readers: readers})
		}
	}

	return found, nil
}

// losesTargets reports whether a document removes targets from the VEN or resource that it
// replaces, or changes its client.
func losesTargets(previous *flex.ADRObject, document map[string]any) bool {
	if previous.Kind != flex.ADRVEN && previous.Kind != flex.ADRResource {
		return false
	}

	client, hasClient := document["clientID"]
	if hasClient && client != previous.Client {
		return true
	}

	targets := stringList(document["targets"])

	return slices.ContainsFunc(previous.Targets, func(t string) bool {
		return !slices.Contains(targets, t)
	})
}

// notifyFormerReaders queues DELETE notices about those objects that their readers may no longer read.
func notifyFormerReaders(
	ctx context.Context,
	tx *store.Tx,
	before []readable,
) error {
	bytesLeft := NoticesMax / NoticesShare // as one VEN may be sent of a change
	for i := range before {
		err := notifyDeleted(ctx, tx, &before[i].object, before[i].readers, &bytesLeft)
		if err != nil {
			return err
		}
	}

	return nil
}

// dropWithTargets is drop for any kind. The targets of a VEN or a resource are deleted with
// it.
func dropWithTargets(
	ctx context.Context,
	tx *store.Tx,
	o *flex.ADRObject,
) error {
	readers, err := readableBefore(ctx, tx, o, nil)
	if err != nil {
		return err
	}

	if err := drop(ctx, tx, o); err != nil {
		return err
	}

	return notifyFormerReaders(ctx, tx, readers)
}
