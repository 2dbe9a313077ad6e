package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// reportedAfter is how long after the end of an instruction what it called is reported.
const reportedAfter = time.Hour

// sentCalled is an asset that an instruction calls, with the schedule that was just put in force.
type sentCalled struct {
	Called
	by   flex.InstructionID
	next Schedule
}

// keepSent notes with the assets that instructions call which schedules were just put in
// force: what is expected of a car is what it was sent last. A car that needs more than was
// known when it was called may be sent more than it was first.
func (tx *Tx) keepSent(ctx context.Context, sent ...*Schedule) error {
	var assets []flex.AssetID
	for _, s := range sent {
		if len(s.From.Closed) > 0 {
			assets = append(assets, s.AssetID)
		}
	}

	for chunk := range slices.Chunk(assets, outboxChunk) {
		found, err := tx.sentCalled(ctx, chunk)
		if err != nil {
			return fmt.Errorf("read who is called: %w", err)
		}

		var args []any
		for i := range found {
			f := &found[i]
			f.send(&f.next)
			args = f.args(tx.org, f.by, args)
		}

		if err := tx.bulk(
			ctx,
			`INSERT INTO called_asset (`+strings.Join(calledFields, ", ")+`)`,
			` ON CONFLICT (instruction_id, asset_id) DO UPDATE
			SET power_w = excluded.power_w, baseline = excluded.baseline, expected = excluded.expected`,
			len(calledFields),
			args,
		); err != nil {
			return fmt.Errorf("keep what was sent to who is called: %w", err)
		}
	}

	return nil
}

// sentCalled reads those of the assets that an instruction calls, or called until an hour ago
// at most.
func (tx *Tx) sentCalled(
	ctx context.Context,
	assets []flex.AssetID,
) ([]sentCalled, error) {
	list, args := in(
		[]any{tx.org.Bytes(), micros(tx.now.Add(-reportedAfter))},
		assets,
	)

	return rows(
		ctx,
		tx.conn,
		func(s scanner) (sentCalled, error) {
			var from time.Time
			var steps string
			var c sentCalled
			n := &c.next

			var err error
			c.Called, err = scanCalled(
				s,
				&c.by,
				instant{&from},
				&steps,
				&n.From.Power,
				instant{&n.From.ReadyBy},
				instant{&n.From.ChargeNow.To},
			)
			if err != nil {
				return c, err
			}

			n.Steps, err = readSteps(from, steps)
			return c, err
		},
		`SELECT `+calledColumns+`, c.instruction_id, n.from_at, n.steps, n.power_w, n.ready_by, n.charge_now_to
		FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
			JOIN session s ON s.asset_id = c.asset_id AND s.plugged_out_at IS NULL
			JOIN schedule n ON n.event_id = s.event_id
		WHERE c.org_id = $1 AND i.to_at > $2 AND i.stopped_at IS NULL AND c.released_at IS NULL AND c.asset_id IN `+list,
		args...,
	)
}

// send has the asset draw by a schedule from its beginning on until the car is to be done, and
// until then by what it was sent before. Each is cut at the power that it was made with.
func (c *Called) send(s *Schedule) {
	from := s.Steps[0].From
	before := flex.Span{From: c.Expected[0].From, To: from}
	after := flex.Span{From: from, To: s.From.done()}
	expected := cutSteps(c.Expected, before, c.Power)
	if n := len(expected); n > 0 && expected[n-1].To.Before(from) {
		expected = append(expected, flex.Step{Span: flex.Span{
			From: expected[n-1].To,
			To:   from,
		}})
	}

	whole := flex.Span{
		From: c.Baseline[0].From,
		To:   c.Baseline[len(c.Baseline)-1].To,
	}

	expected = append(expected, cutSteps(s.Steps, after, s.From.Power)...)
	if len(expected) == 0 {
		return // both begin where the car is done
	}

	c.Expected = expected
	c.Baseline = cutSteps(c.Baseline, whole, c.Power)
	c.Power = max(c.Power, s.From.Power)
}

// cutSteps are the parts of steps within a span, with a power at most.
func cutSteps(
	steps []flex.Step,
	within flex.Span,
	most flex.Watts,
) []flex.Step {
	var out []flex.Step
	for _, s := range steps {
		s.Span = s.Meet(within)
		s.Limit = min(s.Limit, most)
		if !s.Empty() {
			out = append(out, s)
		}
	}

	return out
}
