package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

var _ = law("a limit of a feeder ends after it begins and is not negative",
	`SELECT id AS what FROM cap_limit WHERE to_at <= from_at OR limit_w < 0 OR direction NOT IN ('import', 'export')`)

// limitHorizon is how far ahead a fallback is stored: further than plans reach.
const limitHorizon = 14 * 24 * time.Hour

// AddCapLimits stores limits. The fleet must then be planned: see CapsChanged.
func (tx *Tx) AddCapLimits(ctx context.Context, limits []flex.CapLimit) error {
	const columns = 10
	args := make([]any, 0, columns*len(limits))
	exports := map[string]bool{}
	for _, l := range limits {
		if l.Direction == flex.Export {
			exports[l.Group] = true
		}

		id := tx.newID()
		var order any
		if !l.Order.IsZero() {
			order = l.Order.Bytes()
		}

		args = append(
			args,
			id[:],
			tx.org.Bytes(),
			l.Group,
			micros(l.From),
			micros(l.To),
			int64(l.Power),
			l.Source,
			order,
			micros(tx.now),
			string(l.Direction),
		)
	}

	for group := range exports {
		if err := tx.exportChanged(ctx, group); err != nil {
			return err
		}
	}

	return tx.bulk(
		ctx,
		`INSERT INTO cap_limit (id, org_id, group_name, from_at, to_at, limit_w, source, order_id, made_at, direction)`,
		``,
		columns,
		args,
	)
}

// dropLimits deletes the limits that meet a condition, whose arguments begin with $3, from an
// instant on. The past part of a limit that has begun stays.
func (tx *Tx) dropLimits(
	ctx context.Context,
	from time.Time,
	where string,
	args ...any,
) (int64, error) {
	args = append([]any{tx.org.Bytes(), micros(from)}, args...)
	ended, err := tx.exec(
		ctx,
		`UPDATE cap_limit SET to_at = $2, over_to_at = CASE WHEN over_to_at > $2 THEN $2 ELSE over_to_at END
		WHERE org_id = $1 AND to_at > $2 AND from_at < $2 AND over_w > 0 AND over_from_at < $2 AND `+where,
		args...,
	)
	if err != nil {
		return 0, err
	}

	dropped, err := tx.exec(
		ctx,
		`DELETE FROM cap_limit WHERE org_id = $1 AND to_at > $2 AND `+where,
		args...,
	)

	return ended + dropped, err
}

// DropCapLimits deletes the limits of one direction that a source gave for a group, from an
// instant on.
func (tx *Tx) DropCapLimits(
	ctx context.Context,
	group, source string,
	direction flex.Direction,
	from time.Time,
) error {
	n, err := tx.dropLimits(
		ctx,
		from,
		`group_name = $3 AND source = $4 AND direction = $5`,
		group,
		source,
		string(direction),
	)

	if err == nil && n > 0 && direction == flex.Export {
		err = tx.exportChanged(ctx, group)
	}

	return err
}

// DropOrderLimits deletes the limits of an OpenADR order from now on.
func (tx *Tx) DropOrderLimits(
	ctx context.Context,
	order flex.ADROrderID,
) error {
	groups, err := rows(
		ctx,
		tx.conn,
		scalar[string],
		`SELECT DISTINCT group_name FROM cap_limit WHERE org_id = $1 AND order_id = $2 AND direction = 'export'`,
		tx.org.Bytes(),
		order.Bytes(),
	)

	for i := 0; i < len(groups) && err == nil; i++ {
		err = tx.exportChanged(ctx, groups[i])
	}
	if err != nil {
		return err
	}

	_, err = tx.dropLimits(ctx, tx.now, `order_id = $3`, order.Bytes())

	return err
}

// CapLimits returns the limits that are not over, by their group and time.
func (tx *Tx) CapLimits(ctx context.Context) ([]flex.CapLimit, error) {
	return tx.limitsAfter(ctx, tx.now)
}

func (tx *Tx) limitsAfter(
	ctx context.Context,
	from time.Time,
) ([]flex.CapLimit, error) {
	return rows(ctx, tx.conn, func(s scanner) (flex.CapLimit, error) {
		var l flex.CapLimit
		err := s.Scan(
			&l.Group,
			instant{&l.From},
			instant{&l.To},
			&l.Power,
			&l.Source,
			&l.Order,
			&l.Direction,
		)

		return l, err
	}, `SELECT group_name, from_at, to_at, limit_w, source, order_id, direction FROM cap_limit WHERE org_id = $1 AND to_at > $2 ORDER BY group_name, from_at, id`,
		tx.org.Bytes(), micros(from))
}

// bindingLimits returns the limits of one direction that are not over, and the fallbacks of
// links that are lost.
func (tx *Tx) bindingLimits(
	ctx context.Context,
	direction flex.Direction,
) ([]flex.CapLimit, error) {
	return tx.LimitsAfter(ctx, direction, tx.now)
}

// LimitsAfter returns the limits of one direction that were not over at an instant, and the
// fallbacks of links that are lost now.
func (tx *Tx) LimitsAfter(
	ctx context.Context,
	direction flex.Direction,
	from time.Time,
) ([]flex.CapLimit, error) {
	limits, err := tx.limitsAfter(ctx, from)
	if err != nil {
		return nil, err
	}

	limits = slices.DeleteFunc(limits, func(l flex.CapLimit) bool {
		return l.Direction != direction
	})

	links, err := tx.CapLinks(ctx)
	for i := range links {
		l := &links[i]
		power := l.Of(direction)
		if l.LostAt.IsZero() || power == nil {
			continue
		}

		limits = append(limits, flex.CapLimit{
			Group: l.Group,
			Span: flex.Span{
				From: l.LostAt,
				To:   tx.now.Add(limitHorizon),
			},
			Direction: direction,
			Power:     *power,
			Source:    "fallback",
		})
	}

	return limits, err
}

// CapsChanged has the fleet planned under its caps at once, and its batteries, tanks and heat
// pumps too, after a change of limits.
func (tx *Tx) CapsChanged(ctx context.Context) error {
	_, err := tx.exec(
		ctx,
		`UPDATE caps SET version = version + 1, due_at = $2, leased_to = 0, shadow = '' WHERE org_id = $1`,
		tx.org.Bytes(),
		micros(tx.now),
	)
	if err == nil {
		err = tx.plannedUnderCaps(ctx)
	}

	tx.Wake(WakeControl)

	return err
}

// plannedUnderCaps has the organisation's batteries, tanks and heat pumps planned again at
// once, after a change of import limits. The plans of tanks and heat pumps are locked in the
// order of their ids, and before those of batteries, as by MarkRead and
// lockTankPlansAtSitesOf.
func (tx *Tx) plannedUnderCaps(ctx context.Context) error {
	for _, query := range []string{
		`UPDATE tank_plan SET planned_at = 0 WHERE org_id = $1 AND asset_id IN
			(SELECT asset_id FROM tank_plan WHERE org_id = $1 AND NOT freed ORDER BY asset_id` + tx.db.d.forUpdate + `)`,
		`UPDATE battery_plan SET again = TRUE WHERE org_id = $1`,
	} {
		if _, err := tx.exec(ctx, query, tx.org.Bytes()); err != nil {
			return err
		}
	}

	return nil
}

// noFallback is stored for a link without a fallback of its import: a limit that never binds.
const noFallback = flex.CapMax

// CapLinks returns the organisation's links, by their group.
func (tx *Tx) CapLinks(ctx context.Context) ([]flex.CapLink, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (flex.CapLink, error) {
			var seconds int64
			var drawn, given sql.NullInt64
			var l flex.CapLink
			err := s.Scan(
				&l.Group,
				&drawn,
				&given,
				&seconds,
				instant{&l.HeardAt},
				instant{&l.LostAt},
			)

			l.Silence = time.Duration(seconds) * time.Second
			l.Fallback, l.Export = fallbackOf(drawn), wattsOf(given)
			return l, err
		},
		`SELECT group_name, fallback_w, export_fallback_w, silence_s, heard_at, lost_at FROM cap_link WHERE org_id = $1 ORDER BY group_name`,
		tx.org.Bytes(),
	)
}

// fallbackOf returns a link's fallback of its import from its column; nil for none.
func fallbackOf(kept sql.NullInt64) *flex.Watts {
	if flex.Watts(kept.Int64) >= noFallback {
		return nil
	}
	return wattsOf(kept)
}

// SetCapLink stores a link, which is heard now.
func (tx *Tx) SetCapLink(ctx context.Context, l flex.CapLink) error {
	drawn := noFallback
	if l.Fallback != nil {
		drawn = *l.Fallback
	}

	_, err := tx.exec(
		ctx,
		`INSERT INTO cap_link (org_id, group_name, fallback_w, export_fallback_w, silence_s, heard_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (org_id, group_name) DO UPDATE SET fallback_w = excluded.fallback_w, export_fallback_w = excluded.export_fallback_w,
			silence_s = excluded.silence_s, heard_at = excluded.heard_at, lost_at = NULL`,
		tx.org.Bytes(),
		l.Group,
		int64(drawn),
		wattsOrNull(l.Export),
		int64(l.Silence/time.Second),
		micros(tx.now),
	)

	return err
}

// DropCapLink deletes a link, and reports whether there was one.
func (tx *Tx) DropCapLink(ctx context.Context, group string) (bool, error) {
	if err := tx.exportChanged(ctx, group); err != nil {
		return false, err
	}

	n, err := tx.exec(
		ctx,
		`DELETE FROM cap_link WHERE org_id = $1 AND group_name = $2`,
		tx.org.Bytes(),
		group,
	)

	return n > 0, err
}

// CapLinkAlive records that a group's link is alive now, if it has one. It reports whether the
// link was lost before.
func (tx *Tx) CapLinkAlive(
	ctx context.Context,
	group string,
) (back bool, err error) {
	n, err := tx.exec(
		ctx,
		`UPDATE cap_link SET lost_at = NULL WHERE org_id = $1 AND group_name = $2 AND lost_at IS NOT NULL`,
		tx.org.Bytes(),
		group,
	)
	if err == nil && n > 0 {
		err = tx.exportChanged(ctx, group)
	}
	if err != nil {
		return false, err
	}

	_, err = tx.exec(
		ctx,
		`UPDATE cap_link SET heard_at = $3 WHERE org_id = $1 AND group_name = $2`,
		tx.org.Bytes(),
		group,
		micros(tx.now),
	)

	return n > 0, err
}

// LoseCapLinks puts the fallbacks in force of links on which nothing was heard for too long,
// and returns how many links that are.
func (tx *Tx) LoseCapLinks(ctx context.Context) (int64, error) {
	const lost = ` WHERE org_id = $1 AND lost_at IS NULL AND heard_at + silence_s * 1000000 <= $2`
	groups, err := rows(
		ctx,
		tx.conn,
		scalar[string],
		`SELECT group_name FROM cap_link`+lost+` AND export_fallback_w IS NOT NULL`,
		tx.org.Bytes(),
		micros(tx.now),
	)

	for i := 0; i < len(groups) && err == nil; i++ {
		err = tx.exportChanged(ctx, groups[i])
	}
	if err != nil {
		return 0, err
	}

	return tx.exec(
		ctx,
		`UPDATE cap_link SET lost_at = $2`+lost,
		tx.org.Bytes(),
		micros(tx.now),
	)
}

// NextCapLink returns when the next link is lost, if nothing is heard until then.
func (tx *Tx) NextCapLink(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.next(ctx, capLinkDue, after)
}

// OrgsWithSilentLinks returns the organisations that have a link on which nothing was heard
// for too long and whose fallback does not bind yet.
func (all *All) OrgsWithSilentLinks(ctx context.Context) ([]flex.OrgID, error) {
	return rows(ctx, all.conn, scalar[flex.OrgID], `SELECT DISTINCT l.org_id FROM cap_link l JOIN org g ON g.id = l.org_id
		WHERE l.lost_at IS NULL AND l.heard_at + l.silence_s * 1000000 <= $1 + g.clock_offset ORDER BY l.org_id`, micros(all.Now()))
}

// LostCapLinks returns how many links are lost, and the one that was lost first.
func (all *All) LostCapLinks(
	ctx context.Context,
	org flex.OrgID,
) (int, LostCapLink, error) {
	where, args := `FROM cap_link WHERE lost_at IS NOT NULL`, []any(nil)
	if !org.IsZero() {
		where, args = where+` AND org_id = $1`, append(args, org.Bytes())
	}

	var n int
	if err := all.row(
		ctx,
		`SELECT count(*) `+where,
		args...,
	).Scan(&n); err != nil || n == 0 {
		return 0, LostCapLink{}, err
	}

	var drawn, given sql.NullInt64
	var first LostCapLink
	err := all.row(
		ctx,
		`SELECT org_id, group_name, fallback_w, export_fallback_w, lost_at `+where+` ORDER BY lost_at, group_name LIMIT 1`,
		args...,
	).Scan(
		&first.Org,
		&first.Group,
		&drawn,
		&given,
		instant{&first.At},
	)

	var held []string
	if w := fallbackOf(drawn); w != nil {
		held = append(held, fmt.Sprintf("%g kW", w.KW()))
	}
	if w := wattsOf(given); w != nil {
		held = append(held, fmt.Sprintf("%g kW of export", w.KW()))
	}

	first.Held = strings.Join(held, " and ")

	return n, first, err
}

// LostCapLink is a group whose fallback is in force.
type LostCapLink struct {
	Org   flex.OrgID
	Group string
	Held  string    // what the fallback is, in words
	At    time.Time // since when it binds
}
