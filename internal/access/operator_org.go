package access

import (
	"context"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// OperatorOrgsMax is how many organisations an operator of some alone may be of.
const OperatorOrgsMax = 1000

// OperatorOrgs says whose operator somebody is.
type OperatorOrgs struct {
	Every bool     // of all organisations, those to come too
	Names []string // of these alone; not with Every
}

// SetOperatorOrgs says whose operator somebody is, from their next request on: they see and do
// what is these organisations' alone, and nothing that concerns all. A name that is nobody's is
// NotFound, both Every and names Malformed.
func (s *Service) SetOperatorOrgs(
	ctx context.Context,
	name string,
	to OperatorOrgs,
) error {
	if to.Every && len(to.Names) > 0 || len(to.Names) > OperatorOrgsMax {
		return flex.Fail(
			flex.Malformed,
			"give all organisations or the names of some, %d at most",
			OperatorOrgsMax,
		)
	}

	return s.people().WriteAll(ctx, func(all *store.All) error {
		o, err := all.OperatorNamed(ctx, name)
		if err != nil {
			return err
		}

		if o.Issuer != "" {
			return flex.Fail(
				flex.Conflict,
				"%s is of the organisations that their groups give at the identity provider: change it there",
				name,
			)
		}

		orgs, err := orgsNamed(ctx, all, to.Names)
		if err != nil {
			return err
		}

		return all.SetOperatorOrgs(ctx, o.ID, to.Every, orgs)
	})
}

// orgsNamed looks organisations up by their names.
func orgsNamed(
	ctx context.Context,
	all *store.All,
	names []string,
) ([]flex.OrgID, error) {
	var orgs []flex.OrgID
	for _, name := range names {
		o, err := all.OrgNamed(ctx, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(orgs, o.ID) {
			orgs = append(orgs, o.ID)
		}
	}

	return orgs, nil
}

// Within returns a context in which flexd has no other organisations than the operator's.
func (o Operator) Within(ctx context.Context) context.Context {
	if !o.SomeOrgs {
		return ctx
	}
	return store.Within(ctx, o.Orgs)
}

// Reaches reports whether the operator is one of the organisation's.
func (o Operator) Reaches(org flex.OrgID) bool {
	return !o.SomeOrgs || slices.Contains(o.Orgs, org)
}
