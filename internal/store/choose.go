package store

import (
	"context"

	"flexd/internal/flex"
)

// Choose lists the organisations, and returns the records of the chosen one, or of the first
// where none is chosen. Without any organisation there are no records.
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

// VisitOrgs lists the organisations, and visits that which is chosen, or all of them for none.
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

// Org returns whose records these are.
func (tx *Tx) Org() flex.OrgID { return tx.org }
