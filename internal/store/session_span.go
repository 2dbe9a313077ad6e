package store

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
)

// SessionSpans returns when cars were plugged in at assets of the organisation, of the
// sessions that touch a span. The end of an open one is zero.
func (tx *Tx) SessionSpans(
	ctx context.Context,
	assets []flex.AssetID,
	touching flex.Span,
) (map[flex.AssetID][]flex.Span, error) {
	spans := map[flex.AssetID][]flex.Span{}
	if len(assets) == 0 {
		return spans, nil
	}

	list, args := in(
		[]any{tx.org.Bytes(), micros(touching.From), micros(touching.To)},
		assets,
	)

	err := eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			var asset flex.AssetID
			var from, to time.Time
			err := s.Scan(&asset, instant{&from}, instant{&to})
			spans[asset] = append(spans[asset], flex.Span{From: from, To: to})
			return err
		},
		`SELECT asset_id, plugged_in_at, plugged_out_at FROM session
		WHERE org_id = $1 AND plugged_in_at < $3 AND (plugged_out_at IS NULL OR plugged_out_at > $2) AND asset_id IN `+list+`
		ORDER BY asset_id, number`,
		args...,
	)
	if err != nil {
		return nil, fmt.Errorf("read when cars were plugged in: %w", err)
	}

	return spans, nil
}
