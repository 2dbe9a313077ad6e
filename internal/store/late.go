package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/ramp"
	"flexd/internal/flex"
)

// lateAfter is how long a schedule must have waited for its push to count as late.
const lateAfter = time.Minute

// lateSchedules selects the schedules that are due, at $1, and were queued before $2, and
// those that wait for the turn that an earlier spread gave them.
const lateSchedules = `SELECT o.subject, c.cause, c.ready_by, c.need_wh - c.delivered_wh, CASE WHEN c.power_w > 0 THEN c.power_w ELSE $3 END,
		o.org_id, COALESCE(m.gsp_group, ''), COALESCE(g.name, ''), o.turn_at
	FROM outbox o JOIN schedule c ON c.event_id = o.event_id LEFT JOIN asset a ON a.id = c.asset_id` + rampSite + `
	WHERE o.kind = 'schedule' AND o.turn_at IS NOT NULL AND o.sending = 0 AND o.expires_at > 0
		AND (o.turn_at <= $1 AND o.queued_at < $2 OR o.turn_at > $1 AND o.tries = 0 AND o.holder = 0)`

// SpreadLate spreads late schedules of all organisations over time, so that the power of those
// that are sent in one minute is at most the ramp, in all and in each group. Schedules that
// wait already since an earlier spread share the ramp, and do not become due earlier. It
// returns how many schedules wait; without a ramp none does. Schedules of an organisation that
// is moving to another database are left out.
func (all *All) SpreadLate(
	ctx context.Context,
	most flex.Ramp,
) (int, error) {
	return all.conn.spreadLate(ctx, all.db.Now(), most, atRest("o"))
}

// SpreadLate is All.SpreadLate for the schedules of one endpoint.
func (tx *Tx) SpreadLate(
	ctx context.Context,
	name flex.EndpointName,
	most flex.Ramp,
) (int, error) {
	return tx.conn.spreadLate(
		ctx,
		tx.db.Now(),
		most,
		` AND o.org_id = $4 AND o.endpoint = $5`,
		tx.org.Bytes(),
		string(name),
	)
}

func (c conn) spreadLate(
	ctx context.Context,
	now time.Time,
	most flex.Ramp,
	which string,
	args ...any,
) (int, error) {
	if most == (flex.Ramp{}) {
		return 0, nil
	}

	args = slices.Insert(
		args,
		0,
		micros(now),
		micros(now.Add(-lateAfter)),
		any(int64(flex.DefaultPower)),
	)

	trees, err := c.nestedGroups(ctx)
	if err != nil {
		return 0, err
	}

	numbers := lateGroups{trees: trees, known: map[RampGroup]int{}}
	scan := func(s scanner) (ramp.Late, error) { return scanLate(s, now, numbers) }
	late, err := rows(ctx, c, scan, lateSchedules+which, args...)
	if err != nil {
		return 0, fmt.Errorf("read what is late: %w", err)
	}

	at := map[time.Duration][]flex.EventID{}

	var waiting int
	for i, turn := range ramp.Turns(late, most) {
		if turn > 0 {
			waiting++
		}
		if turn != late[i].Wait {
			at[turn] = append(at[turn], flex.EventID(late[i].ID))
		}
	}

	return waiting, c.postpone(ctx, now, at)
}

// lateGroups assigns numbers to groups, from 1 on.
type lateGroups struct {
	trees map[flex.OrgID]flex.CapTree // by organisation: which groups lie in others
	known map[RampGroup]int
}

func (n lateGroups) indexOf(g RampGroup) int {
	if n.known[g] == 0 {
		n.known[g] = len(n.known) + 1
	}
	return n.known[g]
}

// scanLate reads a row of lateSchedules.
func scanLate(
	s scanner,
	now time.Time,
	numbers lateGroups,
) (ramp.Late, error) {
	var subject flex.EventID
	var org flex.OrgID
	var gsp, constraint string
	var cause Cause
	var readyBy, turnAt time.Time
	var need flex.WattHours

	var l ramp.Late
	err := s.Scan(
		&subject,
		&cause,
		instant{&readyBy},
		&need,
		&l.Power,
		&org,
		&gsp,
		&constraint,
		instant{&turnAt},
	)
	if err != nil {
		return l, err
	}

	groups := rampGroups(
		org,
		gsp,
		constraint,
		numbers.trees[org],
	)
	for i, g := range groups {
		l.Groups[i] = numbers.indexOf(g)
	}

	l.ID = subject
	l.AtOnce = cause == CauseChargeNow
	l.Wait = max(0, turnAt.Sub(now))
	l.Slack = readyBy.Sub(now) -
		time.Duration(float64(max(0, need))/float64(l.Power)*float64(time.Hour))

	return l, nil
}

// postpone has subjects of the outbox wait, by how long. What was queued since they were read
// is not late.
func (c conn) postpone(
	ctx context.Context,
	now time.Time,
	by map[time.Duration][]flex.EventID,
) error {
	for turn, subjects := range by {
		for chunk := range slices.Chunk(subjects, outboxChunk) {
			list, args := in([]any{micros(now.Add(turn)), micros(now)}, chunk)
			_, err := c.exec(
				ctx,
				`UPDATE outbox SET turn_at = $1 WHERE sending = 0 AND turn_at IS NOT NULL AND queued_at <= $2 AND subject IN `+
					list,
				args...,
			)

			if err != nil {
				return fmt.Errorf("give what is late its turn: %w", err)
			}
		}
	}

	return nil
}
