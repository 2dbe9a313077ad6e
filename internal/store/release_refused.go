package store

import (
	"context"
	"fmt"

	"flexd/internal/flex"
)

// RefusedParts returns those assets' parts in some dispatches that the client refused: the
// whole message for good, or the part of that asset. An asset whose message has no answer may
// have received it, and one that failed may have begun: neither counts as refused.
func (tx *Tx) RefusedParts(
	ctx context.Context,
	of []flex.EventID,
) (map[DispatchPart]bool, error) {
	list, args := in([]any{tx.org.Bytes()}, of)
	refused := map[DispatchPart]bool{}
	add := func(s scanner) error {
		var part DispatchPart
		var message bool
		var answer dispatchAnswer
		err := s.Scan(append(
			[]any{&part.Event, &part.Asset, &message},
			answer.dest()...,
		)...)
		if answer.rejected || message && answer.refused() {
			refused[part] = true
		}

		return err
	}

	err := eachRow(
		ctx,
		tx.conn,
		add,
		`SELECT p.event_id, p.asset_id, COALESCE(v.state = 'rejected', FALSE), `+answerColumns+`
		FROM dispatch_asset p`+answerJoins+`
		WHERE p.org_id = $1 AND p.event_id IN `+list,
		args...,
	)
	if err != nil {
		return nil, fmt.Errorf("read which dispatches were refused: %w", err)
	}

	return refused, nil
}
