package store

import (
	"context"
	"database/sql"

	"flexd/internal/flex"
)

var (
	_ = law("an offer ends after it begins and offers something",
		`SELECT id AS what FROM offer WHERE to_at <= from_at OR power_w <= 0 OR confidence NOT BETWEEN 1 AND 99`)
	_ = law("an offer that was accepted became an instruction of its organisation",
		`SELECT f.id AS what FROM offer f LEFT JOIN instruction i ON i.id = f.instruction_id AND i.org_id = f.org_id
		 WHERE (f.accepted_at IS NULL) <> (f.instruction_id IS NULL) OR (f.accepted_at IS NULL) <> (f.accepted_w IS NULL)
			OR f.instruction_id IS NOT NULL AND i.id IS NULL`)
)

const offerColumns = `id, service, group_name, gsp_group, from_at, to_at, up, power_w, confidence, price, who, made_at, accepted_at, accepted_w, instruction_id`

func scanOffer(s scanner) (flex.Offer, error) {
	var accepted sql.NullInt64
	var o flex.Offer
	err := s.Scan(
		&o.ID,
		&o.Service,
		&o.Scope.Group,
		&o.Scope.GSPGroup,
		instant{&o.From},
		instant{&o.To},
		&o.Up,
		&o.Power,
		&o.Confidence,
		&o.Price,
		&o.Who,
		instant{&o.MadeAt},
		instant{&o.AcceptedAt},
		&accepted,
		&o.Instruction,
	)

	o.Accepted = flex.Watts(accepted.Int64)

	return o, err
}

// AddOffer stores an offer. Its id and its instant are set here.
func (tx *Tx) AddOffer(ctx context.Context, o *flex.Offer) error {
	o.ID, o.MadeAt = flex.OfferID(tx.newID()), tx.now
	return tx.insert(ctx, "offer", []value{
		{"org_id", tx.org.Bytes()},
		{"id", o.ID.Bytes()},
		{"service", o.Service},
		{"group_name", o.Scope.Group},
		{"gsp_group", o.Scope.GSPGroup},
		{"from_at", micros(o.From)},
		{"to_at", micros(o.To)},
		{"up", o.Up},
		{"power_w", int64(o.Power)},
		{"confidence", o.Confidence},
		{"price", int64(o.Price)},
		{"who", o.Who},
		{"made_at", micros(tx.now)},
	})
}

// Offer returns one of the organisation's offers.
func (tx *Tx) Offer(ctx context.Context, id flex.OfferID) (flex.Offer, error) {
	return one(
		ctx,
		tx.conn,
		"offer not found or not authorized",
		scanOffer,
		`SELECT `+offerColumns+` FROM offer WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// Offers returns at most limit of the organisation's offers, the newest first, those that were
// made before one, if it is given, and how many there are.
func (tx *Tx) Offers(
	ctx context.Context,
	before flex.OfferID,
	limit int,
) ([]flex.Offer, int, error) {
	var total int
	if err := tx.row(
		ctx,
		`SELECT count(*) FROM offer WHERE org_id = $1`,
		tx.org.Bytes(),
	).Scan(&total); err != nil {
		return nil, 0, err
	}

	if before.IsZero() {
		before = flex.OfferID(lastAsset)
	}

	found, err := rows(
		ctx,
		tx.conn,
		scanOffer,
		`SELECT `+offerColumns+
			` FROM offer WHERE org_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`,
		tx.org.Bytes(),
		before.Bytes(),
		limit,
	)

	return found, total, err
}

// AcceptOffer notes that an offer became an instruction. One that was accepted before is a
// Conflict.
func (tx *Tx) AcceptOffer(
	ctx context.Context,
	id flex.OfferID,
	became flex.InstructionID,
	power flex.Watts,
) error {
	if _, err := tx.Offer(ctx, id); err != nil {
		return err
	}

	n, err := tx.exec(
		ctx,
		`UPDATE offer SET accepted_at = $3, accepted_w = $4, instruction_id = $5 WHERE org_id = $1 AND id = $2 AND accepted_at IS NULL`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(tx.now),
		int64(power),
		became.Bytes(),
	)
	if err == nil && n == 0 {
		return flex.Fail(flex.Conflict, "the offer was accepted before")
	}

	return err
}
