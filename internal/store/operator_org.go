package store

import (
	"context"

	"flexd/internal/flex"
)

// SetOperatorOrgs says whose operator somebody is: of these organisations alone, or of all.
func (all *All) SetOperatorOrgs(
	ctx context.Context,
	id flex.OperatorID,
	everyOrg bool,
	orgs []flex.OrgID,
) error {
	some := 1
	if everyOrg {
		some = 0
	}

	_, err := all.exec(
		ctx,
		`UPDATE operator SET some_orgs = $2 WHERE id = $1`,
		id.Bytes(),
		some,
	)
	if err != nil {
		return err
	}

	_, err = all.exec(
		ctx,
		`DELETE FROM operator_org WHERE operator_id = $1`,
		id.Bytes(),
	)
	if err != nil {
		return err
	}

	for _, org := range orgs {
		_, err := all.exec(
			ctx,
			`INSERT INTO operator_org (operator_id, org_id) VALUES ($1, $2)`,
			id.Bytes(),
			org.Bytes(),
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// OperatorOrgs returns the organisations that each operator of some alone is of, by operator;
// who is of all is not in it.
func (all *All) OperatorOrgs(ctx context.Context) (map[flex.OperatorID][]flex.OrgID, error) {
	return all.operatorOrgs(
		ctx,
		`SELECT o.id, g.org_id FROM operator o LEFT JOIN operator_org g ON g.operator_id = o.id
		WHERE o.some_orgs = 1 ORDER BY o.id, g.org_id`,
	)
}

// OrgsOfOperator returns the organisations that an operator is of, and whether they are of some
// alone.
func (all *All) OrgsOfOperator(
	ctx context.Context,
	id flex.OperatorID,
) (orgs []flex.OrgID, some bool, err error) {
	by, err := all.operatorOrgs(
		ctx,
		`SELECT o.id, g.org_id FROM operator o LEFT JOIN operator_org g ON g.operator_id = o.id
		WHERE o.some_orgs = 1 AND o.id = $1 ORDER BY g.org_id`,
		id.Bytes(),
	)

	orgs, some = by[id]

	return orgs, some, err
}

func (all *All) operatorOrgs(
	ctx context.Context,
	query string,
	args ...any,
) (map[flex.OperatorID][]flex.OrgID, error) {
	by := map[flex.OperatorID][]flex.OrgID{}
	err := eachRow(ctx, all.conn, func(s scanner) error {
		var operator flex.OperatorID
		var org flex.OrgID // zero for one of none

		err := s.Scan(&operator, &org)
		by[operator] = append(by[operator], org)
		if org.IsZero() {
			by[operator] = []flex.OrgID{}
		}

		return err
	}, query, args...)

	return by, err
}
