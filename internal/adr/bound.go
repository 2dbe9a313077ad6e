package adr

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Bound is a program with the changes of its orders by a new binding, made or previewed.
type Bound struct {
	BoundProgram
	New       []StoredOrder // that is new
	Withdrawn []StoredOrder // that is not asked for any more
	NumStays  int
}

// StoredOrder is the stored order of an event.
type StoredOrder = store.ADROrder

// errPreview rolls back the transaction of a preview.
var errPreview = errors.New("a preview is not kept")

// change changes a program's binding, and returns the changes of its orders. A preview makes
// the same change and rolls it back, so that it cannot differ.
func (s *Service) change(
	ctx context.Context,
	org flex.OrgID,
	program flex.ADRObjectID,
	keep bool,
	act func(tx *store.Tx) error,
) (Bound, error) {
	var result Bound
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		var err error
		result, err = changeOf(ctx, tx, program, act)
		if err == nil && !keep {
			err = errPreview
		}

		tx.SetMadeRecord(result)

		return err
	})
	if errors.Is(err, errPreview) {
		err = nil
	}

	return result, err
}

func changeOf(
	ctx context.Context,
	tx *store.Tx,
	program flex.ADRObjectID,
	act func(tx *store.Tx) error,
) (Bound, error) {
	stored, err := tx.ADRObject(ctx, flex.ADRSearch{
		Kind: flex.ADRProgram,
		ID:   program,
	})
	if err != nil {
		return Bound{}, fmt.Errorf("program %s: %w", program, err)
	}

	var change Bound
	change.Object, err = objectOf(&stored)
	if err != nil {
		return change, err
	}

	before, err := tx.CurrentADROrders(ctx, program, flex.ADRObjectID{})
	if err != nil {
		return change, err
	}
	if err := act(tx); err != nil {
		return change, err
	}

	after, err := tx.CurrentADROrders(ctx, program, flex.ADRObjectID{})
	if err != nil {
		return change, err
	}

	change.New, change.Withdrawn = missingFrom(before, after), missingFrom(after, before)
	change.NumStays = len(after) - len(change.New)
	bindings, err := tx.ADRBindings(ctx, program)
	if len(bindings) > 0 {
		change.Binding = &bindings[0]
	}

	return change, err
}

// missingFrom returns the orders in one list that are not in the other.
func missingFrom(list, other []StoredOrder) []StoredOrder {
	var found []StoredOrder
	for i := range other {
		contains := slices.ContainsFunc(list, func(o StoredOrder) bool {
			return o.ID == other[i].ID
		})
		if !contains {
			found = append(found, other[i])
		}
	}

	return found
}
