package store

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// PaidCall is a time in which an instruction that says what it pays called an asset.
type PaidCall struct {
	flex.Span
	Instruction flex.InstructionID
	Price       flex.Price
	Down        bool // less was asked for
	// of the product that it carries out; empty: the terms'
	Baseline settle.Method
}

// PaidCalls returns the times within a span in which instructions that say what they pay called an
// asset, in order: from the call on, until it was released or the instruction was stopped or ended.
func (tx *Tx) PaidCalls(
	ctx context.Context,
	asset flex.AssetID,
	within flex.Span,
) ([]PaidCall, error) {
	found, err := rows(
		ctx,
		tx.conn,
		func(s scanner) (PaidCall, error) { return scanPaidCall(s, within) },
		`SELECT i.id, c.called_at, c.released_at, i.from_at, i.to_at, i.stopped_at, i.price, i.change_w, COALESCE(p.baseline, '')
		FROM called_asset c JOIN instruction i ON i.id = c.instruction_id LEFT JOIN grid_product p ON p.id = i.product_id
		WHERE c.asset_id = $1 AND c.org_id = $2 AND i.price > 0 AND i.price <= $5 AND i.from_at < $3 AND i.to_at > $4 AND c.called_at < $3
		ORDER BY i.from_at, i.id`,
		asset.Bytes(),
		tx.org.Bytes(),
		micros(within.To),
		micros(within.From),
		int64(settle.MaxPrice),
	)
	if err != nil {
		return nil, err
	}

	kept := found[:0]
	for _, c := range found {
		if c.From.Before(c.To) {
			kept = append(kept, c)
		}
	}

	return kept, nil
}

// scanPaidCall reads a call, as far as it is within a span.
func scanPaidCall(s scanner, within flex.Span) (PaidCall, error) {
	var called, released, stopped time.Time
	var change int64
	var c PaidCall
	err := s.Scan(
		&c.Instruction,
		instant{&called},
		instant{&released},
		instant{&c.From},
		instant{&c.To},
		instant{&stopped},
		&c.Price,
		&change,
		&c.Baseline,
	)

	c.Down = change <= 0
	c.Span = c.Meet(flex.Span{From: called, To: within.To}).Meet(within)
	for _, end := range []time.Time{released, stopped} {
		if !end.IsZero() && end.Before(c.To) {
			c.To = end
		}
	}

	return c, err
}

// InstructedEvents returns what became of the events that an instruction pays for. Of a half-hour
// that is the instruction's for a part of its time, all counts: the market's part is in its price.
func (tx *Tx) InstructedEvents(
	ctx context.Context,
	id flex.InstructionID,
) (flex.InstructedEvents, error) {
	found, err := rows(
		ctx,
		tx.conn,
		func(s scanner) (FlexEvent, error) { return scanFlexEvent(s) },
		`SELECT `+flexEventColumns+` FROM called_asset c
		JOIN instruction i ON i.id = c.instruction_id
		JOIN flex_event e ON e.org_id = c.org_id AND e.asset_id = c.asset_id AND e.from_at < i.to_at AND e.to_at > i.from_at
			AND e.from_at > i.from_at - 90000000000
		WHERE c.instruction_id = $1 AND c.org_id = $2 AND e.instructed IS NOT NULL ORDER BY e.id`,
		id.Bytes(),
		tx.org.Bytes(),
	)

	var sum flex.InstructedEvents
	if err != nil {
		return sum, err
	}

	var ids []flex.FlexEventID
	for _, e := range found {
		if !paysFor(e.Instructed, id) {
			continue
		}

		ids = append(ids, e.ID)
		sum.Found++
		if e.Version == 0 || e.Missing > 0 {
			sum.Waiting++
		}
	}

	err = tx.addSettled(ctx, &sum, id, ids)

	return sum, err
}

// paysFor reports whether an instruction pays for a part of an event.
func paysFor(parts []settle.Instructed, id flex.InstructionID) bool {
	return slices.ContainsFunc(parts, func(p settle.Instructed) bool {
		return p.Instruction == id
	})
}

// addSettled adds up what the newest settlements of events have in an instruction's half-hours.
func (tx *Tx) addSettled(
	ctx context.Context,
	sum *flex.InstructedEvents,
	id flex.InstructionID,
	ids []flex.FlexEventID,
) error {
	var revenue settle.PicoPounds
	for chunk := range slices.Chunk(ids, instantsChunk) {
		settled, err := tx.PostedSettlements(ctx, chunk)
		if err != nil {
			return err
		}

		newest := map[flex.FlexEventID]*settle.Result{}
		for _, s := range settled { // an event's versions in their order
			newest[s.Event] = s.Result
		}

		for _, r := range newest {
			for _, p := range r.Periods {
				if p.Known && p.Instruction == id {
					sum.Flex += p.Flex
					revenue += p.Revenue
				}
			}
		}
	}

	sum.Revenue = revenue.MicroPounds(settle.HalfAway)

	return nil
}
