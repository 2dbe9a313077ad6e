package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// ScopeBattery is a home battery under control of a scope, with what an instruction needs to know of it.
type ScopeBattery struct {
	AssetID flex.AssetID
	Callable
	Taken  bool        // its newest dispatch was accepted, and is followed
	SentAt time.Time   // when that was made; zero if there is none
	Since  flex.Period // that its powers begin with
	// in each half-hour, as planned; below zero it gives
	Powers []flex.Watts
}

// Steps are its powers as steps; none without a plan.
func (b *ScopeBattery) Steps() []flex.Step { return PowerSteps(b.Since, b.Powers) }

// PowerSteps are the powers of half-hours as steps.
func PowerSteps(
	from flex.Period,
	powers []flex.Watts,
) []flex.Step {
	steps := make([]flex.Step, len(powers))
	for i, w := range powers {
		steps[i] = flex.Step{
			Span:  from.Add(i).Span(),
			Limit: w,
		}
	}

	return steps
}

// ScopeBatteries returns the batteries under control of a scope that have a plan, by their ids, for a call in a span; the
// state of charge was read lately if that was since an instant.
func (tx *Tx) ScopeBatteries(
	ctx context.Context,
	scope flex.Scope,
	span flex.Span,
	since time.Time,
) ([]ScopeBattery, error) {
	where, args, err := tx.scopeWhere(ctx, scope, []any{tx.org.Bytes()})
	if err != nil {
		return nil, err
	}

	called, err := tx.CalledIn(ctx, span)
	if err != nil {
		return nil, err
	}

	const day = int64(24 * time.Hour / time.Microsecond)
	args = append(
		args,
		micros(since),
		since.UnixMicro()/day,
		tx.now.UnixMicro()/day,
		labelNumbers[flex.BatteryStateOfCharge],
		labelNumbers[flex.BatteryStoredEnergy],
	)

	n := len(args)

	found, err := rows(ctx, tx.conn, scanScopeBattery, fmt.Sprintf(`SELECT s.id, s.site_id, n.stored_at, n.planned_w,
			`+siteCalls+`,
			EXISTS (SELECT 1 FROM reading r WHERE r.asset_id = s.id AND r.at >= $%d AND (r.at / 86400000000) IN ($%d, $%d)
				AND r.label >= 10 AND r.label IN ($%d, $%d)),
			d.issued_at, `+answerColumns+`
		FROM (SELECT a.id, a.site_id, a.org_id FROM asset a WHERE a.org_id = $1 AND a.type = 'battery' AND `+controlled+`) s
			JOIN battery_plan n ON n.asset_id = s.id
			LEFT JOIN dispatch_asset p ON p.asset_id = s.id
				AND p.event_id = (SELECT l.event_id FROM dispatch_asset l WHERE l.asset_id = s.id ORDER BY l.event_id DESC LIMIT 1)
			LEFT JOIN dispatch d ON d.event_id = p.event_id`+answerJoins+`
		WHERE n.org_id = $1`+where+` ORDER BY s.id`, n-4, n-3, n-2, n-1, n), args...)

	for i := range found {
		found[i].Called = called[found[i].AssetID]
	}

	return found, err
}

func scanScopeBattery(s scanner) (ScopeBattery, error) {
	var stored time.Time
	var planned string
	var answer dispatchAnswer
	var b ScopeBattery
	err := s.Scan(append(
		[]any{
			&b.AssetID,
			&b.SiteID,
			instant{&stored},
			&planned,
			&b.Calls,
			&b.Metered,
			instant{&b.SentAt},
		},
		answer.dest()...,
	)...)
	b.Taken = answer.followed()

	if err != nil {
		return b, err
	}

	b.Since = flex.PeriodAt(stored)
	b.Powers, err = readPowers(b.Since, planned)

	return b, err
}

// BatteryCall is the time in which a battery keeps to an instruction that calls it.
type BatteryCall struct {
	Spans   []flex.Span
	Window  flex.Span // of the instruction
	Since   time.Time // when it was called
	Service string    // that it is for
	Up      bool
}

// BatteryCalls returns what active instructions have a battery keep to.
func (tx *Tx) BatteryCalls(
	ctx context.Context,
	id flex.AssetID,
) ([]BatteryCall, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (BatteryCall, error) {
			var h BatteryCall
			err := s.Scan(
				closedTime{&h.Spans},
				instant{&h.Window.From},
				instant{&h.Window.To},
				instant{&h.Since},
				&h.Service,
				&h.Up,
			)

			return h, err
		},
		`SELECT c.closed, i.from_at, i.to_at, c.called_at, i.service, i.change_w > 0 FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
		WHERE c.asset_id = $1 AND c.org_id = $2 AND c.battery AND NOT c.dispatched AND c.released_at IS NULL AND i.stopped_at IS NULL AND i.to_at > $3 ORDER BY i.id`,
		id.Bytes(),
		tx.org.Bytes(),
		micros(tx.now.Add(-closedFor)),
	)
}

// releasedNow is the condition that instruction i released asset c in this transaction, whose instant is $2.
const releasedNow = `(c.released_at = $2 OR c.released_at IS NULL AND i.stopped_at = $2)`

// FreedBatteries returns which of some assets are batteries that an instruction released in this transaction, with the time in
// which they kept to it, in the order of their ids.
func (tx *Tx) FreedBatteries(
	ctx context.Context,
	assets []flex.AssetID,
) ([]Called, error) {
	var freed []Called
	for chunk := range slices.Chunk(assets, outboxChunk) {
		list, args := in([]any{tx.org.Bytes(), micros(tx.now)}, chunk)
		found, err := rows(
			ctx,
			tx.conn,
			func(s scanner) (Called, error) { return scanCalled(s) },
			`SELECT `+calledColumns+` FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
			WHERE c.org_id = $1 AND c.battery AND `+releasedNow+` AND c.asset_id IN `+list+` ORDER BY c.asset_id, c.instruction_id`,
			args...,
		)

		if err != nil {
			return nil, err
		}

		freed = append(freed, found...)
	}

	return freed, nil
}

// ExpectOfBattery notes the powers of a battery's plan with the instructions that call it: what is expected of it is
// what was planned last.
func (tx *Tx) ExpectOfBattery(
	ctx context.Context,
	id flex.AssetID,
	p *BatteryPlan,
) error {
	return tx.expectOf(
		ctx,
		id,
		false,
		reportedAfter,
		PowerSteps(p.StoredAt, p.Powers),
	)
}

// ExpectOfNamed notes with the dispatches that name a battery what is expected of it by its newest plan.
func (tx *Tx) ExpectOfNamed(
	ctx context.Context,
	id flex.AssetID,
	steps []flex.Step,
) error {
	return tx.expectOf(
		ctx,
		id,
		true,
		reportedAfter,
		steps,
	)
}

// expectOf notes the steps of a plan with the instructions that call its asset, which is a battery or a heater, or with the dispatches
// that name it, until so long after their end.
func (tx *Tx) expectOf(
	ctx context.Context,
	id flex.AssetID,
	dispatched bool,
	after time.Duration,
	steps []flex.Step,
) error {
	type row struct {
		instruction flex.InstructionID
		Called
	}

	found, err := rows(
		ctx,
		tx.conn,
		func(s scanner) (row, error) {
			var r row
			var err error
			r.Called, err = scanCalled(s, &r.instruction)
			return r, err
		},
		`SELECT `+calledColumns+`, c.instruction_id FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
		WHERE c.asset_id = $1 AND c.org_id = $2 AND (c.battery OR c.heater) AND c.dispatched = $4 AND c.released_at IS NULL AND i.stopped_at IS NULL AND i.to_at > $3`,
		id.Bytes(),
		tx.org.Bytes(),
		micros(tx.now.Add(-after)),
		dispatched,
	)

	for i := 0; i < len(found) && err == nil; i++ {
		r := &found[i]
		r.expect(steps, tx.now.Truncate(time.Second))
		_, err = tx.exec(
			ctx,
			`UPDATE called_asset SET expected = $4 WHERE org_id = $1 AND instruction_id = $2 AND asset_id = $3`,
			tx.org.Bytes(),
			r.instruction.Bytes(),
			id.Bytes(),
			writeSteps(r.Expected),
		)
	}

	return err
}

// expect has a battery do as some steps say from an instant on, and until then what was expected of it before.
func (c *Called) expect(
	steps []flex.Step,
	from time.Time,
) {
	begin := c.Expected[0].From
	from = flex.Later(begin, from)
	last := c.Baseline[len(c.Baseline)-1].To
	before := flex.Span{
		From: begin,
		To:   from,
	}

	after := flex.Span{
		From: from,
		To:   last,
	}

	next := spanSteps(c.Expected, before)
	next = append(next, spanSteps(steps, after)...)

	if len(next) > 0 && next[0].From.Equal(begin) {
		c.Expected = next
	}
}

// spanSteps are the parts of steps within a span.
func spanSteps(
	steps []flex.Step,
	within flex.Span,
) []flex.Step {
	var out []flex.Step
	for _, s := range steps {
		s.Span = s.Meet(within)
		if !s.Empty() {
			out = append(out, s)
		}
	}

	return out
}

// MeetingCall is an asset that an active instruction calls in the half-hours of a time.
type MeetingCall struct {
	flex.Span   // of the instruction
	AssetID     flex.AssetID
	Instruction flex.InstructionID
	Dispatched  bool // it is a dispatch of named batteries
}

// MeetingCalls returns by which active instructions some assets are called in the half-hours of a span.
func (tx *Tx) MeetingCalls(
	ctx context.Context,
	assets []flex.AssetID,
	span flex.Span,
) ([]MeetingCall, error) {
	var found []MeetingCall
	for chunk := range slices.Chunk(assets, outboxChunk) {
		list, args := in(
			[]any{tx.org.Bytes(), micros(tx.now), micros(span.From), micros(span.To)},
			chunk,
		)

		some, err := rows(
			ctx,
			tx.conn,
			func(s scanner) (MeetingCall, error) {
				var m MeetingCall
				err := s.Scan(
					&m.AssetID,
					&m.Instruction,
					&m.Dispatched,
					instant{&m.From},
					instant{&m.To},
				)

				return m, err
			},
			`SELECT c.asset_id, c.instruction_id, c.dispatched, i.from_at, i.to_at FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
			WHERE c.org_id = $1 AND `+occupies+` AND c.asset_id IN `+list+` ORDER BY c.asset_id, c.instruction_id`,
			args...,
		)

		if err != nil {
			return nil, err
		}

		found = append(found, some...)
	}

	return found, nil
}
