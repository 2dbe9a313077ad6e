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
	Asked     []KeptOrder // that is new
	Withdrawn []KeptOrder // that is not asked for any more
	NumStays  int
}

// KeptOrder is the stored order of an event.
type KeptOrder = store.ADROrder

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
	var done Bound
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		var err error
		done, err = changed(ctx, tx, program, act)
		if err == nil && !keep {
			err = errPreview
		}

		tx.Made(done)

		return err
	})
	if errors.Is(err, errPreview) {
		err = nil
	}

	return done, err
}

func changed(
	ctx context.Context,
	tx *store.Tx,
	program flex.ADRObjectID,
	act func(tx *store.Tx) error,
) (Bound, error) {
	kept, err := tx.ADRObject(ctx, flex.ADRSearch{
		Kind: flex.ADRProgram,
		ID:   program,
	})
	if err != nil {
		return Bound{}, fmt.Errorf("program %s: %w", program, err)
	}

	var done Bound
	done.Object, err = objectOf(&kept)
	if err != nil {
		return done, err
	}

	before, err := tx.CurrentADROrders(ctx, program, flex.ADRObjectID{})
	if err != nil {
		return done, err
	}
	if err := act(tx); err != nil {
		return done, err
	}

	after, err := tx.CurrentADROrders(ctx, program, flex.ADRObjectID{})
	if err != nil {
		return done, err
	}

	done.Asked, done.Withdrawn = lacking(before, after), lacking(after, before)
	done.NumStays = len(after) - len(done.Asked)
	bindings, err := tx.ADRBindings(ctx, program)
	if len(bindings) > 0 {
		done.Binding = &bindings[0]
	}

	return done, err
}

// lacking returns the orders in one list that are not in the other.
func lacking(list, other []KeptOrder) []KeptOrder {
	var found []KeptOrder
	for i := range other {
		has := slices.ContainsFunc(list, func(o KeptOrder) bool {
			return o.ID == other[i].ID
		})
		if !has {
			found = append(found, other[i])
		}
	}

	return found
}
