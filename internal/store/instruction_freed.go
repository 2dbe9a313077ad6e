package store

import (
	"context"
	"fmt"

	"flexd/internal/flex"
)

// ReleaseCalled releases assets that an instruction calls. The instructions of the organisation are locked.
func (tx *Tx) ReleaseCalled(
	ctx context.Context,
	id flex.InstructionID,
	assets []flex.AssetID,
) error {
	if len(assets) == 0 {
		return nil
	}

	for len(assets) > 0 {
		chunk := assets[:min(len(assets), outboxChunk)]
		assets = assets[len(chunk):]
		list, args := in(
			[]any{tx.org.Bytes(), id.Bytes(), micros(tx.now)},
			chunk,
		)

		_, err := tx.exec(
			ctx,
			`UPDATE called_asset SET released_at = $3 WHERE org_id = $1 AND instruction_id = $2 AND released_at IS NULL AND asset_id IN `+
				list,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return tx.dropCalls(ctx, id)
}

// releaseFreedCar releases a car from active instructions when it is freed while it is plugged in. From now on it
// charges without control, so it contributes nothing and is neither paid nor reported as called. Batteries are
// not released: what they were sent is retracted when their instruction ends. Its calls are locked: see lockCallsBeside.
func (tx *Tx) releaseFreedCar(ctx context.Context, car flex.AssetID) error {
	n, err := tx.exec(
		ctx,
		`UPDATE called_asset SET released_at = $3 WHERE org_id = $1 AND asset_id = $2 AND released_at IS NULL AND NOT (battery OR heater OR dispatched)
			AND instruction_id IN (SELECT i.id FROM instruction i WHERE i.org_id = $1 AND i.stopped_at IS NULL AND i.to_at > $3)`,
		tx.org.Bytes(),
		car.Bytes(),
		micros(tx.now),
	)

	if err != nil || n == 0 {
		return err
	}

	ahead, err := rows(
		ctx,
		tx.conn,
		scalar[flex.InstructionID],
		`SELECT i.id FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
		WHERE c.org_id = $1 AND c.asset_id = $2 AND c.released_at = $3 AND i.from_at >= $3 ORDER BY i.id`,
		tx.org.Bytes(),
		car.Bytes(),
		micros(tx.now),
	)

	for i := 0; i < len(ahead) && err == nil; i++ {
		err = tx.dropCalls(ctx, ahead[i])
	}

	return err
}

// lockToFree locks an asset that is freed, and the calls at its site.
func (tx *Tx) lockToFree(ctx context.Context, id flex.AssetID) error {
	if err := tx.LockAsset(ctx, id); err != nil {
		return err
	}

	if err := tx.lockCallsBeside(ctx, id); err != nil {
		return fmt.Errorf("lock the calls of the site of asset %v: %w", id, err)
	}

	return nil
}

// lockCallsBeside locks the calls that instructions which have not begun make of the assets at a car's site. Of two cars that are freed at
// the same time the second one then finds the first one released: dropCalls goes by whether all are.
func (tx *Tx) lockCallsBeside(ctx context.Context, car flex.AssetID) error {
	if tx.db.d.forUpdate == "" {
		return nil
	}

	_, err := rows(
		ctx,
		tx.conn,
		scalar[int64],
		`SELECT k.number FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
		JOIN called_asset k ON k.org_id = c.org_id AND k.instruction_id = c.instruction_id AND k.site_id = c.site_id
		WHERE c.org_id = $1 AND c.asset_id = $2 AND c.released_at IS NULL AND i.stopped_at IS NULL AND i.from_at >= $3
		ORDER BY k.instruction_id, k.asset_id`+tx.db.d.forUpdate+` OF k`,
		tx.org.Bytes(),
		car.Bytes(),
		micros(tx.now),
	)

	return err
}

// JustCalled returns those of some cars whose schedule in force was made for an instruction, or the end of one, at this transaction's
// instant. Of another an event came between, which planned it itself, or it has left.
func (tx *Tx) JustCalled(
	ctx context.Context,
	cars []flex.AssetID,
) (map[flex.AssetID]bool, error) {
	just := map[flex.AssetID]bool{}
	read := func(s scanner) error {
		var id flex.AssetID
		err := s.Scan(&id)
		just[id] = true

		return err
	}

	for len(cars) > 0 {
		chunk := cars[:min(len(cars), outboxChunk)]
		cars = cars[len(chunk):]
		list, args := in([]any{tx.org.Bytes(), string(CauseCalled), micros(tx.now)}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			read,
			`SELECT s.asset_id FROM session s JOIN schedule c ON c.event_id = s.event_id
			WHERE s.org_id = $1 AND s.plugged_out_at IS NULL AND c.cause = $2 AND c.made_at = $3 AND s.asset_id IN `+list,
			args...,
		)

		if err != nil {
			return nil, err
		}
	}

	return just, nil
}

// CalledWindows returns the times, not over yet, of the instructions that call a car to draw less.
func (tx *Tx) CalledWindows(
	ctx context.Context,
	car flex.AssetID,
) ([]flex.Span, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (flex.Span, error) {
			var window flex.Span
			err := s.Scan(instant{&window.From}, instant{&window.To})

			return window, err
		},
		`SELECT i.from_at, i.to_at FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
		WHERE c.org_id = $1 AND c.asset_id = $2 AND c.released_at IS NULL AND NOT c.dispatched
			AND i.stopped_at IS NULL AND i.to_at > $3 AND i.change_w <= 0 ORDER BY i.from_at, i.id`,
		tx.org.Bytes(),
		car.Bytes(),
		micros(tx.now),
	)
}
