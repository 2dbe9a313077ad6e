package store

import (
	"context"

	"flexd/internal/flex"
)

// Choose returns all organisations, and a transaction bound to the chosen one, or to the first
// if none is chosen. Without any organisation the transaction is nil.
func (all *All) Choose(
	ctx context.Context,
	chosen flex.OrgID,
) ([]flex.Org, *Tx, error) {
	orgs, err := all.Orgs(ctx)
	if err != nil || len(orgs) == 0 {
		return orgs, nil, err
	}

	if chosen.IsZero() {
		chosen = orgs[0].ID
	}

	tx, err := all.For(ctx, chosen)

	return orgs, tx, err
}

// VisitOrgs returns all organisations, and calls visit for the chosen one, or for each if none
// is chosen.
func (all *All) VisitOrgs(
	ctx context.Context,
	chosen flex.OrgID,
	visit func(flex.Org, *Tx) error,
) ([]flex.Org, error) {
	orgs, err := all.Orgs(ctx)
	if err != nil {
		return nil, err
	}

	for _, o := range orgs {
		if !chosen.IsZero() && o.ID != chosen {
			continue
		}

		tx, err := all.For(ctx, o.ID)
		if err != nil {
			return nil, err
		}
		if err := visit(o, tx); err != nil {
			return nil, err
		}
	}

	return orgs, nil
}

// Org returns the organisation that the transaction is bound to.
func (tx *Tx) Org() flex.OrgID { return tx.org }
