package store

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
)

var _ = law("a limit that is exceeded is so from an instant to a later one",
	`SELECT id AS what FROM cap_limit WHERE over_w > 0 AND (over_from_at IS NULL OR over_to_at IS NULL OR over_to_at <= over_from_at)`)

// CapExcess is a limit of what a group draws, and when more than that is drawn by the newest plan.
type CapExcess struct {
	flex.CapLimit
	id   flex.ID[flex.CapLimit]
	Over flex.Span
	Most flex.Watts // that is drawn beyond it; zero for nothing
}

// CapExcesses returns the limits of what groups draw that are not over and begin before an instant.
func (tx *Tx) CapExcesses(
	ctx context.Context,
	before time.Time,
) ([]CapExcess, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (CapExcess, error) {
			var x CapExcess
			err := s.Scan(
				&x.id,
				&x.Group,
				instant{&x.From},
				instant{&x.To},
				&x.Power,
				&x.Order,
				instant{&x.Over.From},
				instant{&x.Over.To},
				&x.Most,
			)

			return x, err
		},
		`SELECT id, group_name, from_at, to_at, limit_w, order_id, over_from_at, over_to_at, over_w FROM cap_limit
		WHERE org_id = $1 AND to_at > $2 AND from_at < $3 AND direction = 'import' ORDER BY id`,
		tx.org.Bytes(),
		micros(tx.now),
		micros(before),
	)
}

// SetCapExcess stores when a limit is exceeded. If an order of an OpenADR event asked for it,
// its report says so as soon as may be.
func (tx *Tx) SetCapExcess(ctx context.Context, x *CapExcess) error {
	_, err := tx.exec(
		ctx,
		`UPDATE cap_limit SET over_from_at = $3, over_to_at = $4, over_w = $5 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		x.id.Bytes(),
		micros(x.Over.From),
		micros(x.Over.To),
		int64(x.Most),
	)
	if err != nil || x.Order.IsZero() {
		return err
	}

	_, err = tx.exec(
		ctx,
		`UPDATE adr_order SET problem = $3, report_at = $4 WHERE org_id = $1 AND id = $2 AND state = 'limited'`,
		tx.org.Bytes(),
		x.Order.Bytes(),
		x.problem(),
		micros(tx.now),
	)

	tx.Wake(WakeInstructions)

	return err
}

// problem says to the dispatcher how the limit is exceeded; it is empty if it is not.
func (x *CapExcess) problem() string {
	if x.Most == 0 {
		return ""
	}

	return fmt.Sprintf(
		"the limit of %g kW is exceeded: by plan up to %g kW are drawn between %s and %s",
		x.Power.KW(),
		(x.Power + x.Most).KW(),
		x.Over.From.UTC().Format(time.RFC3339),
		x.Over.To.UTC().Format(time.RFC3339),
	)
}

// ExceededCapLimit is a limit of a group that is exceeded, by plan.
type ExceededCapLimit struct {
	Org   flex.OrgID
	Group string
	Limit flex.Watts
	Over  flex.Span
	Most  flex.Watts // that is drawn beyond it
}

// ExceededCapLimits returns of how many groups a limit is exceeded, of those that are so in
// time to come or were within ADROrdersKept, and the one that is exceeded most. What is
// imported again while it is exceeded is several limits, and one group.
func (all *All) ExceededCapLimits(
	ctx context.Context,
	org flex.OrgID,
) (int, ExceededCapLimit, error) {
	where := `FROM cap_limit l JOIN org g ON g.id = l.org_id WHERE l.over_w > 0 AND l.over_to_at > $1 + g.clock_offset`
	args := []any{micros(all.Now().Add(-ADROrdersKept))}
	if !org.IsZero() {
		where, args = where+` AND l.org_id = $2`, append(args, org.Bytes())
	}

	var n int
	if err := all.row(
		ctx,
		`SELECT count(*) FROM (SELECT DISTINCT l.org_id, l.group_name `+where+`) x`,
		args...,
	).Scan(&n); err != nil || n == 0 {
		return 0, ExceededCapLimit{}, err
	}

	var most ExceededCapLimit
	err := all.row(
		ctx,
		`SELECT l.org_id, l.group_name, l.limit_w, l.over_from_at, l.over_to_at, l.over_w `+where+` ORDER BY l.over_w DESC, l.id LIMIT 1`,
		args...,
	).Scan(
		&most.Org,
		&most.Group,
		&most.Limit,
		instant{&most.Over.From},
		instant{&most.Over.To},
		&most.Most,
	)

	return n, most, err
}
