package console

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// orgBy finds out whose something is, such as a site.
type orgBy[Of any] func(all *store.All, ctx context.Context, id flex.ID[Of]) (flex.OrgID, error)

// owned reads the id in the request's path, of what, and whose it is.
func owned[Of any](s *Server, r *request, what string, by orgBy[Of]) (id flex.ID[Of], org flex.OrgID, err error) {
	if err := readID(&id, r.PathValue("id"), what); err != nil {
		return id, org, err
	}

	err = s.DB.ReadAll(r.Context(), func(all *store.All) (err error) {
		org, err = by(all, r.Context(), id)
		return err
	})

	return id, org, err
}

// meant is owned of a form that must say that it was meant, and why.
func meant[Of any](s *Server, r *request, what string, by orgBy[Of]) (id flex.ID[Of], org flex.OrgID, reason string, err error) {
	reason, err = confirmed(r)
	if err != nil {
		return id, org, "", err
	}

	id, org, err = owned(s, r, what, by)
	return id, org, reason, err
}

// orgRecord reads an organisation's record.
func (s *Server) orgRecord(ctx context.Context, org flex.OrgID) (o flex.Org, err error) {
	err = s.DB.Read(ctx, org, func(tx *store.Tx) (err error) {
		o, err = tx.OrgRecord(ctx)
		return err
	})
	return o, err
}

// eachOrg lists the organisations, and visits that which is chosen, or all of them for none.
func eachOrg(ctx context.Context, all *store.All, chosen flex.OrgID, visit func(flex.Org, *store.Tx) error) ([]flex.Org, error) {
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
