package store

import (
	"context"
	"fmt"

	"flexd/internal/flex"
)

// scopeWhere is the condition that a session, named s, is at a site of a scope: of a
// constraint group or one that lies in it.
func (tx *Tx) scopeWhere(
	ctx context.Context,
	scope flex.Scope,
	args []any,
) (string, []any, error) {
	query := ""
	if scope.Group != "" {
		names, err := tx.groupsInside(ctx, scope.Group)
		if err != nil {
			return "", nil, err
		}

		var list string
		list, args = inNames(args, names)
		query += ` AND EXISTS (SELECT 1 FROM cap_site g WHERE g.org_id = s.org_id AND g.site_id = s.site_id AND g.name IN ` + list + `)`
	}

	if scope.GSPGroup != "" {
		args = append(args, scope.GSPGroup)
		query += fmt.Sprintf(` AND EXISTS (SELECT 1 FROM site t JOIN meter m ON m.mpan = t.mpan
			WHERE t.org_id = s.org_id AND t.id = s.site_id AND m.gsp_group = $%d)`, len(args))
	}

	if !scope.Product.IsZero() {
		args = append(args, scope.Product.Bytes())
		query += fmt.Sprintf(
			` AND EXISTS (SELECT 1 FROM product_site p WHERE p.org_id = s.org_id AND p.site_id = s.site_id AND p.product_id = $%d AND p.takes_part)`,
			len(args),
		)
	}

	return query, args, nil
}
