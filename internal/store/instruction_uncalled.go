package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// UncalledInstruction is an instruction that binds, or will, and calls no asset, or only assets that have refused what they were sent.
type UncalledInstruction struct {
	Org     flex.OrgID
	ID      flex.InstructionID
	From    time.Time
	Begun   bool // by the organisation's clock
	Refused bool // it calls assets, and all of them have refused
}

// UncalledInstructions returns the instructions of which nothing comes as nobody is called, or all have refused, those that begin first before
// the others: of one organisation or, where org is zero, of all. What an operator dispatched to named batteries is left out.
func (all *All) UncalledInstructions(
	ctx context.Context,
	org flex.OrgID,
) ([]UncalledInstruction, error) {
	refused, of := refusedWhere, ""
	args := []any{micros(all.Now())}
	if !org.IsZero() {
		refused, of = refusedOfOne, ` AND i.org_id = $2`
		args = append(args, org.Bytes())
	}

	const calls = `EXISTS (SELECT 1 FROM called_asset c WHERE c.instruction_id = i.id AND c.released_at IS NULL`

	return rows(
		ctx,
		all.conn,
		func(s scanner) (UncalledInstruction, error) {
			var u UncalledInstruction
			err := s.Scan(
				&u.Org,
				&u.ID,
				instant{&u.From},
				&u.Begun,
				&u.Refused,
			)

			return u, err
		},
		`SELECT i.org_id, i.id, i.from_at, i.from_at <= $1 + h.clock_offset, `+calls+`)
		FROM org h JOIN instruction i ON i.org_id = h.id AND i.to_at > $1 + h.clock_offset AND i.stopped_at IS NULL AND NOT i.dispatched
		WHERE NOT `+calls+` AND c.asset_id NOT IN (SELECT o.asset_id `+refused+`) AND c.asset_id NOT IN (SELECT p.asset_id `+refusedDispatch+`))`+of+`
		ORDER BY i.from_at, i.id`,
		args...,
	)
}

// UnansweredProduct is a product that waits to be sent, and in which no household takes part.
type UnansweredProduct struct {
	Org       flex.OrgID
	Reference string
	AnswerBy  time.Time
	Ended     bool // answers have ended, by the organisation's clock
}

// UnansweredProducts returns the products in which nobody takes part, and to which answers have ended or end within a time, those to which they end
// first before the others: of one organisation or, where org is zero, of all.
func (all *All) UnansweredProducts(
	ctx context.Context,
	org flex.OrgID,
	within time.Duration,
) ([]UnansweredProduct, error) {
	now := all.Now()
	of, args := "", []any{micros(now), micros(now.Add(within))}
	if !org.IsZero() {
		of, args = ` AND p.org_id = $3`, append(args, org.Bytes())
	}

	return rows(
		ctx,
		all.conn,
		func(s scanner) (UnansweredProduct, error) {
			var u UnansweredProduct
			err := s.Scan(
				&u.Org,
				&u.Reference,
				instant{&u.AnswerBy},
				&u.Ended,
			)

			return u, err
		},
		`SELECT p.org_id, p.reference, p.answer_by, p.answer_by <= $1 + h.clock_offset
		FROM grid_product p JOIN org h ON h.id = p.org_id
		WHERE p.send_at IS NOT NULL AND p.answer_by <= $2 + h.clock_offset AND p.to_at > $1 + h.clock_offset
			AND NOT EXISTS (SELECT 1 FROM product_site s WHERE s.product_id = p.id AND s.takes_part)`+of+`
		ORDER BY p.answer_by, p.id`,
		args...,
	)
}
