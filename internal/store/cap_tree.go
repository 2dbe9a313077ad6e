package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
)

var _ = lawInGo("a constraint group lies in groups of its organisation that may lie in each other", wrongNesting)

// CapTree returns which of the organisation's constraint groups lies in which.
func (tx *Tx) CapTree(ctx context.Context) (flex.CapTree, error) {
	trees, err := tx.capTrees(ctx, ` WHERE org_id = $1`, tx.org.Bytes())
	return trees[tx.org], err
}

// capTrees reads which constraint group lies in which, by organisation, of groups that meet a
// condition.
func (c conn) capTrees(
	ctx context.Context,
	where string,
	args ...any,
) (map[flex.OrgID]flex.CapTree, error) {
	trees := map[flex.OrgID]flex.CapTree{}
	err := eachRow(
		ctx,
		c,
		func(s scanner) error {
			var org flex.OrgID
			var name, parent string
			err := s.Scan(&org, &name, &parent)
			if trees[org] == nil {
				trees[org] = flex.CapTree{}
			}

			trees[org][name] = parent
			return err
		},
		`SELECT org_id, name, COALESCE(parent, '') FROM cap_group`+where,
		args...,
	)

	return trees, err
}

// nestedGroups returns which constraint groups lie in others, of all organisations.
func (c conn) nestedGroups(ctx context.Context) (map[flex.OrgID]flex.CapTree, error) {
	return c.capTrees(ctx, ` WHERE parent IS NOT NULL`)
}

// CapPath returns the names of all caps that bind a site: the fleet's, which is empty, its
// constraint group's, and those of the groups around that.
func (tx *Tx) CapPath(
	ctx context.Context,
	site flex.SiteID,
) ([]string, error) {
	group, err := tx.CapGroup(ctx, site)
	if err != nil || group == "" {
		return []string{""}, err
	}

	tree, err := tx.CapTree(ctx)

	return tree.Path(group), err
}

// groupsInside returns the names of a constraint group and of all that lie in it.
func (tx *Tx) groupsInside(
	ctx context.Context,
	group string,
) ([]string, error) {
	tree, err := tx.CapTree(ctx)
	return tree.Inside(group), err
}

// inNames returns a list of names for a statement, and its arguments with the names appended.
// Lists are padded to a power of two, so that few different statements are prepared.
func inNames(
	args []any,
	names []string,
) (string, []any) {
	n := 1
	for n < len(names) {
		n *= 2
	}

	var b strings.Builder
	for i := range n {
		args = append(args, names[min(i, len(names)-1)])
		b.WriteString(",$" + strconv.Itoa(len(args)))
	}

	return "(" + b.String()[1:] + ")", args
}

// moveCapSums preserves the sums under the caps when groups are put into other groups, while
// every site stays in its group. The caps must be locked.
func (tx *Tx) moveCapSums(
	ctx context.Context,
	before, after flex.CapTree,
) error {
	names := []string{}
	for name := range before {
		names = append(names, name)
	}

	sums, err := tx.CapSums(ctx, headroom.BlockAt(tx.now), names)
	if err != nil {
		return fmt.Errorf("read what is drawn under the caps: %w", err)
	}

	err = tx.later(
		ctx,
		`DELETE FROM cap_sum WHERE org_id = $1 AND group_name <> ''`,
		tx.org.Bytes(),
	)
	if err != nil {
		return err
	}

	return tx.PutCapSums(ctx, movedSums(sums, before, after))
}

// movedSums returns the sums of each group after groups were put into other groups.
func movedSums(
	sums map[string]headroom.Sum,
	before, after flex.CapTree,
) map[string]headroom.Sum {
	own := map[string]headroom.Sum{} // what is drawn in each group and in none inside it
	for name, sum := range sums {
		own[name] = headroom.Sum{}
		own[name].Merge(sum)
	}

	for name, parent := range before {
		if own[parent] != nil {
			own[parent].Subtract(sums[name])
		}
	}

	moved := map[string]headroom.Sum{}
	for name, sum := range own {
		for _, cap := range after.Path(name)[1:] {
			if moved[cap] == nil {
				moved[cap] = headroom.Sum{}
			}
			moved[cap].Merge(sum)
		}
	}

	return moved
}

// wrongNesting returns the names of groups whose parent does not exist in their organisation,
// that lie in themselves, or that are nested too deep.
func wrongNesting(
	ctx context.Context,
	all *All,
) ([]string, error) {
	orgs, err := rows(
		ctx,
		all.conn,
		scalar[flex.OrgID],
		`SELECT DISTINCT org_id FROM cap_group WHERE parent IS NOT NULL ORDER BY org_id`,
	)
	if err != nil {
		return nil, err
	}

	var wrong []string
	for _, org := range orgs {
		tx, err := all.For(ctx, org)
		if err != nil {
			return nil, err
		}

		groups, err := tx.capGroups(ctx)
		if err != nil {
			return nil, err
		}

		caps := flex.Caps{Groups: groups}
		if err := caps.CheckNesting(); err != nil {
			wrong = append(wrong, fmt.Sprintf("organisation %v: %v", org, err))
		}
	}

	return wrong, nil
}

// parentOrNull returns the name of a group's parent as it is stored; null for none.
func parentOrNull(name string) sql.NullString {
	return sql.NullString{String: name, Valid: name != ""}
}
