package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

// Plugged is an asset that is plugged in, with its schedule in force, if any.
type Plugged struct {
	Org          flex.OrgID
	AssetID      flex.AssetID
	PluggedInAt  time.Time
	PluggedOutAt time.Time // zero while it is plugged in
	// whether a schedule is in force; without one the following fields are zero
	Planned   bool
	ReadyBy   time.Time
	Need      flex.WattHours // as asked for
	Delivered flex.WattHours // of Need, when the schedule was made
	CountFrom time.Time      // since when Delivered is counted
	Power     flex.Watts
	ChargeNow flex.Span
	Freed     bool // control ended with this schedule, which lets the asset charge freely
	// without a Zone if no tariff is known: then all hours are off-peak
	Tariff flex.Tariff
	// the steps in which it is to charge, at least one, which may have no length; the slice is reused for
	// the next asset
	Steps []flex.Step
	// the site was not planned as a whole, or its planning stopped early
	CutShort bool
	// the check before sending refused the site's plan
	PlanRefused bool
}

// PluggedPart is a part of the assets that are plugged in, in the order of organisations and assets: from
// one asset on, up to but not including another. Zero is no bound.
type PluggedPart struct{ from, to pluggedAt }

type pluggedAt struct {
	org   flex.OrgID
	asset flex.AssetID
}

// PluggedParts divides the assets that are plugged in into n parts of equal size, to be read in
// parallel. With fewer than n assets there is one part.
func (all *All) PluggedParts(
	ctx context.Context,
	n int,
) ([]PluggedPart, error) {
	var total int
	err := all.row(
		ctx,
		`SELECT count(*) FROM session WHERE plugged_out_at IS NULL`,
	).Scan(&total)
	if err != nil {
		return nil, fmt.Errorf("count the fleet: %w", err)
	}

	parts := []PluggedPart{{}}
	for i := 1; i < n && total >= n; i++ {
		var cut pluggedAt
		err := all.row(
			ctx,
			`SELECT org_id, asset_id FROM session WHERE plugged_out_at IS NULL
			ORDER BY org_id, asset_id LIMIT 1 OFFSET $1`,
			i*total/n,
		).Scan(&cut.org, &cut.asset)
		if err != nil {
			return nil, fmt.Errorf("divide the fleet: %w", err)
		}

		parts[i-1].to = cut
		parts = append(parts, PluggedPart{from: cut})
	}

	return parts, nil
}

// pluggedQuery reads assets that are plugged in, with their schedules in force.
const pluggedQuery = pastQuery + ` WHERE s.plugged_out_at IS NULL`

// pastQuery reads sessions with the newest of their schedules.
const pastQuery = pastColumns + `
	FROM session s LEFT JOIN schedule c ON c.event_id = s.event_id`

// pastColumns are the columns of a session and its schedule, as scanPlugged reads them.
const pastColumns = `SELECT s.org_id, s.asset_id, s.plugged_in_at, COALESCE(s.plugged_out_at, 0), COALESCE(c.from_at, 0), COALESCE(c.steps, ''), COALESCE(c.ready_by, 0),
		COALESCE(c.need_wh, 0), COALESCE(c.delivered_wh, 0), COALESCE(c.power_w, 0), COALESCE(c.charge_now_from, 0),
		COALESCE(c.charge_now_to, 0), COALESCE(c.off_peak, ''), COALESCE(c.zone, ''), COALESCE(c.tariff_type, ''),
		COALESCE(c.origins, ''), COALESCE(c.count_from, 0), COALESCE(c.cause = '` + string(CauseFreed) + `', FALSE)`

// EachPlugged calls fn with every asset of the part, in no particular order. An asset whose schedule cannot
// be read is left out and logged, and does not hide the others.
func (all *All) EachPlugged(
	ctx context.Context,
	part PluggedPart,
	fn func(*Plugged),
) error {
	query, args := pluggedQuery+` AND (s.org_id, s.asset_id) >= ($1, $2)`, []any{
		part.from.org.Bytes(),
		part.from.asset.Bytes(),
	}
	if part.to != (pluggedAt{}) {
		query, args = query+` AND (s.org_id, s.asset_id) < ($3, $4)`, append(
			args,
			part.to.org.Bytes(),
			part.to.asset.Bytes(),
		)
	}

	var left leftOut
	err := all.plugged(
		ctx,
		fn,
		func(p *Plugged, err error) error {
			left.add(p.AssetID, err)
			return nil
		},
		query,
		args...,
	)
	left.log(ctx, all.conn)

	return err
}

// EachPlugged calls fn with every asset of the organisation that is plugged in at a site of the scope, in
// no particular order.
func (tx *Tx) EachPlugged(
	ctx context.Context,
	scope flex.Scope,
	fn func(*Plugged),
) error {
	where, args, err := tx.scopeWhere(ctx, scope, []any{tx.org.Bytes()})
	if err != nil {
		return err
	}
	return tx.eachPlugged(
		ctx,
		fn,
		pluggedQuery+` AND s.org_id = $1`+where,
		args...,
	)
}

// EachStay calls fn with every session of the organisation that began in a span at a site of the scope,
// with the newest of its schedules, the earliest session first.
func (tx *Tx) EachStay(
	ctx context.Context,
	scope flex.Scope,
	span flex.Span,
	fn func(*Plugged),
) error {
	where, args, err := tx.scopeWhere(ctx, scope, []any{
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
	})
	if err != nil {
		return err
	}

	// plugged_in_at > 0 is the condition of the partial index. It comes after the instants, as SQLite
	// searches by the first condition.
	return tx.eachPlugged(
		ctx,
		fn,
		pastQuery+
			` WHERE s.org_id = $1 AND s.plugged_in_at >= $2 AND s.plugged_in_at > 0 AND s.plugged_in_at < $3`+
			where+
			` ORDER BY s.plugged_in_at`,
		args...,
	)
}

// eachPlugged calls fn with every asset that a query finds.
func (c conn) eachPlugged(
	ctx context.Context,
	fn func(*Plugged),
	query string,
	args ...any,
) error {
	return c.plugged(
		ctx,
		fn,
		func(_ *Plugged, err error) error { return err },
		query,
		args...,
	)
}

// plugged is eachPlugged, with unread called for an asset whose schedule cannot be read. If unread returns
// an error, the read ends with it.
func (c conn) plugged(
	ctx context.Context,
	fn func(*Plugged),
	unread func(*Plugged, error) error,
	query string,
	args ...any,
) error {
	rs, err := c.query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read the fleet: %w", err)
	}

	defer rs.Close()
	var p Plugged

	for rs.Next() {
		p, err = scanPlugged(rs, p.Steps[:0])
		if errors.Is(err, ErrUnreadable) {
			err = unread(&p, err)
		} else if err == nil {
			fn(&p)
		}

		if err != nil {
			return fmt.Errorf("read the fleet: %w", err)
		}
	}

	return rs.Err()
}

// scanPlugged reads an asset. Its steps are appended to the buffer.
func scanPlugged(rs scanner, buffer []flex.Step) (Plugged, error) {
	var steps, origins string
	var pluggedIn, pluggedOut, from, ready, count int64
	var now [2]int64

	var p Plugged
	err := rs.Scan(
		&p.Org,
		&p.AssetID,
		&pluggedIn,
		&pluggedOut,
		&from,
		&steps,
		&ready,
		&p.Need,
		&p.Delivered,
		&p.Power,
		&now[0],
		&now[1],
		&p.Tariff.OffPeak,
		&p.Tariff.Zone,
		&p.Tariff.Type,
		&origins,
		&count,
		&p.Freed,
	)

	p.Steps = buffer
	p.mark(origins)
	p.PluggedInAt = time.UnixMicro(pluggedIn).UTC()
	p.Planned = steps != ""
	if pluggedOut != 0 {
		p.PluggedOutAt = time.UnixMicro(pluggedOut).UTC()
	}

	if err != nil || !p.Planned {
		return p, err
	}

	p.ReadyBy = time.UnixMicro(ready).UTC()
	p.CountFrom = time.UnixMicro(count).UTC()
	if now[0] != 0 && now[1] != 0 {
		p.ChargeNow = flex.Span{
			From: time.UnixMicro(now[0]).UTC(),
			To:   time.UnixMicro(now[1]).UTC(),
		}
	}

	err = p.readCharging(from, steps)

	return p, err
}

// readCharging reads the steps of a schedule in which the asset is to charge, and appends them to Steps.
func (p *Plugged) readCharging(from int64, text string) error {
	steps, err := appendSteps(p.Steps, time.UnixMicro(from).UTC(), text)
	p.Steps = cutAt(steps, flex.Later(p.ReadyBy, p.ChargeNow.To))

	return err
}

// mark sets the exceptions that the origins of a schedule name.
func (p *Plugged) mark(origins string) {
	p.CutShort = strings.Contains(origins, " "+CutShort)
	p.PlanRefused = strings.HasSuffix(origins, " "+PlanRefused)
}

// appendSteps is readSteps that appends to a slice, and so allocates nothing.
func appendSteps(
	to []flex.Step,
	from time.Time,
	text string,
) ([]flex.Step, error) {
	for text != "" {
		seconds, i := leadingNumber(text)
		if i == 0 || i+1 >= len(text) || text[i] != 'x' {
			return nil, fmt.Errorf("%w: steps %q", ErrUnreadable, text)
		}

		limit, j := leadingNumber(text[i+1:])
		end := from.Add(time.Duration(seconds) * time.Second)
		to = append(to, flex.Step{
			Span:  flex.Span{From: from, To: end},
			Limit: flex.Watts(limit),
		})

		from, text = end, text[i+1+j:]
		if text != "" {
			text = text[1:] // the space between steps
		}
	}

	return to, nil
}

// leadingNumber returns the number that a text begins with, and how many digits it has.
func leadingNumber(text string) (int64, int) {
	var (
		n      int64
		length int
	)

	for length < len(text) && '0' <= text[length] && text[length] <= '9' {
		n = 10*n + int64(text[length]-'0')
		length++
	}

	return n, length
}

// FleetCount is how many assets and sites an organisation has.
type FleetCount struct {
	Org    flex.OrgID
	Sites  int
	Assets int
}

// FleetCounts counts the sites and assets of every organisation.
func (all *All) FleetCounts(ctx context.Context) ([]FleetCount, error) {
	return rows(ctx, all.conn, func(s scanner) (FleetCount, error) {
		var c FleetCount
		err := s.Scan(&c.Org, &c.Sites, &c.Assets)
		return c, err
	},
		`SELECT o.id, (SELECT count(*) FROM site s WHERE s.org_id = o.id), (SELECT count(*) FROM asset a WHERE a.org_id = o.id) FROM org o ORDER BY o.id`)
}

// Waiting is a push that waits to be sent.
type Waiting struct {
	Org     flex.OrgID
	AssetID flex.AssetID // zero for what concerns no single asset
	EventID flex.EventID
	// the first was queued that its client has not taken; it may have been planned again
	Since time.Time
	Tries int
	// what went wrong with the latest attempt, in words; "" if nothing was tried
	Error string
}

// Dispatches have an exception of their own where there is no endpoint for them: no client is at fault.
const (
	waitingPlaced = ` AND (endpoint <> 'dispatch' OR EXISTS (SELECT 1 FROM endpoint e WHERE e.org_id = outbox.org_id AND e.name = 'dispatch'))`
	latePlaced    = ` AND (o.endpoint <> 'dispatch' OR EXISTS (SELECT 1 FROM endpoint e WHERE e.org_id = o.org_id AND e.name = 'dispatch'))`
)

// waitingWhere is which rows of the outbox wait since before an instant, their first parameter.
const waitingWhere = `turn_at IS NOT NULL AND expires_at > 0 AND waiting_since < $1 AND generation > accepted` + waitingPlaced

// lateWhere is waitingWhere of a row of the outbox (o) beside others.
const lateWhere = `o.turn_at IS NOT NULL AND o.expires_at > 0 AND o.waiting_since < $%d AND o.generation > o.accepted` + latePlaced

// WaitingSince returns pushes that wait since before the instant, the longest first, of one
// organisation or, if org is zero, of all; and how many there are.
func (all *All) WaitingSince(
	ctx context.Context,
	org flex.OrgID,
	before time.Time,
	limit int,
) ([]Waiting, int, error) {
	where, args := waitingWhere, []any{micros(before)}
	if !org.IsZero() {
		where, args = where+` AND org_id = $2`, append(args, org.Bytes())
	}

	var total int

	// The same read counts and takes examples: each rule of the alerts asks for both.
	found, err := rows(
		ctx,
		all.conn,
		func(s scanner) (Waiting, error) {
			var v Waiting
			err := s.Scan(
				&v.Org,
				&v.AssetID,
				&v.EventID,
				instant{&v.Since},
				&v.Tries,
				&v.Error,
				&total,
			)

			return v, err
		},
		`SELECT org_id, asset_id, event_id, waiting_since, tries,
			COALESCE((SELECT d.error FROM delivery d WHERE d.org_id = outbox.org_id AND d.event_id = outbox.event_id), ''),
			count(*) OVER () FROM outbox WHERE `+
			where+` ORDER BY waiting_since LIMIT `+strconv.Itoa(limit),
		args...,
	)

	return found, total, err
}

// UnplacedDispatches returns how many dispatches wait for an endpoint that was never set, of each
// organisation that has any.
func (all *All) UnplacedDispatches(ctx context.Context) (map[flex.OrgID]int, error) {
	found := map[flex.OrgID]int{}

	err := eachRow(
		ctx,
		all.conn,
		func(s scanner) error {
			var (
				org flex.OrgID
				n   int
			)

			err := s.Scan(&org, &n)
			found[org] = n

			return err
		},
		`SELECT g.id, count(*) FROM org g JOIN outbox o ON o.org_id = g.id AND o.endpoint = 'dispatch'
		WHERE o.turn_at IS NOT NULL AND o.expires_at > 0 AND o.generation > o.accepted
			AND NOT EXISTS (SELECT 1 FROM endpoint e WHERE e.org_id = g.id AND e.name = 'dispatch')
		GROUP BY g.id`,
	)

	return found, err
}

// AllEndpoints returns the endpoints of every organisation.
func (all *All) AllEndpoints(ctx context.Context) ([]flex.Endpoint, error) {
	return rows(
		ctx,
		all.conn,
		all.scanEndpoint,
		`SELECT `+endpointColumns+` FROM endpoint e ORDER BY e.org_id, e.name`,
	)
}

// AssetOwner says what an asset is called, and whose it is.
type AssetOwner struct{ ExternalID, OrgName string }

// AssetOwners returns what assets are called, and whose they are; so many at most as a statement takes.
func (all *All) AssetOwners(
	ctx context.Context,
	ids []flex.AssetID,
) (map[flex.AssetID]AssetOwner, error) {
	owners := make(map[flex.AssetID]AssetOwner, len(ids))
	if len(ids) == 0 {
		return owners, nil
	}

	list, args := in(nil, ids)
	err := eachRow(
		ctx,
		all.conn,
		func(s scanner) error {
			var o AssetOwner
			var id flex.AssetID
			err := s.Scan(&id, &o.ExternalID, &o.OrgName)
			owners[id] = o

			return err
		},
		`SELECT a.id, a.external_id, o.name FROM asset a JOIN org o ON o.id = a.org_id WHERE a.id IN `+list,
		args...,
	)

	return owners, err
}

// AssetNames returns the external ids of assets.
func (all *All) AssetNames(
	ctx context.Context,
	ids []flex.AssetID,
) (map[flex.AssetID]string, error) {
	names := make(map[flex.AssetID]string, len(ids))
	for len(ids) > 0 {
		list, args := in(nil, ids[:min(len(ids), ownersChunk)])
		ids = ids[min(len(ids), ownersChunk):]
		err := eachRow(
			ctx,
			all.conn,
			func(s scanner) error {
				var name string
				var id flex.AssetID
				err := s.Scan(&id, &name)
				names[id] = name

				return err
			},
			`SELECT id, external_id FROM asset WHERE id IN `+list,
			args...,
		)

		if err != nil {
			return nil, err
		}
	}

	return names, nil
}

// PlannedAfter returns the organisation's plugged-in assets that have a schedule, in the
// order of their ids after one, at most limit.
func (tx *Tx) PlannedAfter(
	ctx context.Context,
	after flex.AssetID,
	limit int,
) ([]ScheduledAsset, error) {
	return allRead(tx.PlannedEachAfter(ctx, after, limit))
}

// PlannedEachAfter is PlannedAfter, and includes the assets whose schedules cannot be read, with
// the reason in Unread.
func (tx *Tx) PlannedEachAfter(
	ctx context.Context,
	after flex.AssetID,
	limit int,
) ([]ScheduledAsset, error) {
	return tx.plannedEach(
		ctx,
		min(limit, wavePartSize),
		`s.asset_id > $2 ORDER BY s.asset_id LIMIT $3`,
		tx.org.Bytes(),
		after.Bytes(),
		limit,
	)
}

// CauseCount is how many schedules were made for a cause.
type CauseCount struct {
	Cause Cause
	Count int
}

// SchedulesSince counts the organisation's schedules that were committed since the instant
// of the true clock, by cause.
func (tx *Tx) SchedulesSince(
	ctx context.Context,
	since time.Time,
) ([]CauseCount, error) {
	oldest := flex.MakeID[struct{}](since, [10]byte{})
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (CauseCount, error) {
			var c CauseCount
			err := s.Scan(&c.Cause, &c.Count)
			return c, err
		},
		`SELECT cause, count(*) FROM schedule WHERE event_id >= $2 AND org_id = $1 GROUP BY cause ORDER BY cause`,
		tx.org.Bytes(),
		oldest[:],
	)
}
