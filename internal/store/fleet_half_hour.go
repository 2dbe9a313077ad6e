package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"flexd/internal/flex"
)

// FleetGroup is a part of a fleet: the assets whose attribute has a value. The zero group is all.
type FleetGroup struct {
	Attribute string // one of FleetAttributes
	Name      string // "" for assets of which none is known
}

// FleetAttributes are what a fleet is counted by, beside as a whole.
var FleetAttributes = []string{"gsp_group", "model", "firmware"}

// FleetHalfHour is what a group of a fleet was planned to draw and drew in a half-hour that is over.
type FleetHalfHour struct {
	FleetGroup
	At        time.Time
	CountedAt time.Time

	Plugged int // sessions that touch it
	Planned flex.WattHours
	// the same energy, had each car begun at full power when it was plugged in
	Unmoved flex.WattHours
	Metered flex.WattHours // by chargers
	Wanted  int            // chargers with a car throughout
	Known   int            // of them, those that were metered

	BatteryPlanned flex.WattHours // by dispatches; more import is positive
	BatteryMetered flex.WattHours

	HeatPlanned flex.WattHours // by tanks and heat pumps
	HeatMetered flex.WattHours

	Earned flex.MicroPounds // by flex events that began in it, before shares
	// by the schedules of sessions that began in it, at market prices
	Saved    flex.MicroPounds
	Unpriced int         // of these sessions, those that a price is missing for
	Cap      *flex.Watts // of the fleet, when it was first counted
}

// fleetHalfHourColumns are as PutFleetHalfHours writes them after org_id.
var fleetHalfHourColumns = []string{
	"org_id", "at", "attribute", "name", "counted_at",
	"plugged", "planned_wh", "unmoved_wh", "metered_wh", "wanted", "known",
	"battery_planned_wh", "battery_metered_wh",
	"earned", "saved", "unpriced", "cap_w",
	"heat_planned_wh", "heat_metered_wh",
}

// PutFleetHalfHours stores the half-hours of a span in place of how they were counted before. The fleet's
// cap stays as it was first. Another process that does the same for the organisation is waited for.
func (tx *Tx) PutFleetHalfHours(
	ctx context.Context,
	span flex.Span,
	hs []FleetHalfHour,
) error {
	if err := tx.LockOrg(ctx); err != nil {
		return err
	}

	before, err := tx.fleetCaps(ctx, span)
	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`DELETE FROM fleet_half_hour WHERE org_id = $1 AND at >= $2 AND at < $3`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
	)
	if err != nil {
		return err
	}

	var args []any
	for i := range hs {
		h := &hs[i]
		kept, again := before[h.At]
		if !again {
			kept = h.Cap
		}

		args = append(
			args,
			tx.org.Bytes(), micros(h.At), h.Attribute, h.Name, micros(tx.now),
			h.Plugged, int64(h.Planned), int64(h.Unmoved), int64(h.Metered), h.Wanted, h.Known,
			int64(h.BatteryPlanned), int64(h.BatteryMetered),
			int64(h.Earned), int64(h.Saved), h.Unpriced, wattsOrNull(kept),
			int64(h.HeatPlanned), int64(h.HeatMetered),
		)
	}

	return tx.addValues(ctx, "fleet_half_hour", fleetHalfHourColumns, args)
}

// fleetCaps are the caps that the half-hours of a span were first counted with.
func (tx *Tx) fleetCaps(
	ctx context.Context,
	span flex.Span,
) (map[time.Time]*flex.Watts, error) {
	caps := map[time.Time]*flex.Watts{}
	err := eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			var w sql.NullInt64
			var at time.Time
			err := s.Scan(instant{&at}, &w)
			caps[at] = wattsOf(w)
			return err
		},
		`SELECT at, cap_w FROM fleet_half_hour
		WHERE org_id = $1 AND at >= $2 AND at < $3 AND attribute = '' AND name = ''`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
	)

	return caps, err
}

// FleetHalfHours returns a span's half-hours of the groups by an attribute, or of the fleet as a whole for
// "", by time and name.
func (tx *Tx) FleetHalfHours(
	ctx context.Context,
	attribute string,
	span flex.Span,
) ([]FleetHalfHour, error) {
	return rows(
		ctx,
		tx.conn,
		scanFleetHalfHour,
		`SELECT at, attribute, name, counted_at, plugged, planned_wh, unmoved_wh, metered_wh, wanted, known,
			battery_planned_wh, battery_metered_wh, earned, saved, unpriced, cap_w,
			heat_planned_wh, heat_metered_wh
		FROM fleet_half_hour WHERE org_id = $1 AND at >= $2 AND at < $3 AND attribute = $4 ORDER BY at, name`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
		attribute,
	)
}

// CountedHalfHour is when a half-hour of a fleet was last counted.
type CountedHalfHour struct {
	At        time.Time
	CountedAt time.Time
}

// FleetCounted returns when each half-hour of a span was counted last, by time. It is asked every few minutes,
// for many half-hours: it reads no more than that.
func (tx *Tx) FleetCounted(
	ctx context.Context,
	span flex.Span,
) ([]CountedHalfHour, error) {
	scan := func(s scanner) (CountedHalfHour, error) {
		var c CountedHalfHour
		err := s.Scan(instant{&c.At}, instant{&c.CountedAt})
		return c, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT at, counted_at FROM fleet_half_hour
		WHERE org_id = $1 AND at >= $2 AND at < $3 AND attribute = '' ORDER BY at`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
	)
}

// FleetNames lists the groups by an attribute that were counted in a span.
func (tx *Tx) FleetNames(
	ctx context.Context,
	attribute string,
	span flex.Span,
) ([]string, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[string],
		`SELECT DISTINCT name FROM fleet_half_hour WHERE org_id = $1 AND at >= $2 AND at < $3 AND attribute = $4 ORDER BY name`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
		attribute,
	)
}

func scanFleetHalfHour(s scanner) (FleetHalfHour, error) {
	var kept sql.NullInt64
	var h FleetHalfHour
	err := s.Scan(
		instant{&h.At},
		&h.Attribute,
		&h.Name,
		instant{&h.CountedAt},
		&h.Plugged,
		&h.Planned,
		&h.Unmoved,
		&h.Metered,
		&h.Wanted,
		&h.Known,
		&h.BatteryPlanned,
		&h.BatteryMetered,
		&h.Earned,
		&h.Saved,
		&h.Unpriced,
		&kept,
		&h.HeatPlanned,
		&h.HeatMetered,
	)

	h.Cap = wattsOf(kept)

	return h, err
}

// DropFleetHalfHours deletes the organisation's half-hours from before an instant.
func (tx *Tx) DropFleetHalfHours(ctx context.Context, before time.Time) error {
	_, err := tx.exec(
		ctx,
		`DELETE FROM fleet_half_hour WHERE org_id = $1 AND at < $2`,
		tx.org.Bytes(),
		micros(before),
	)

	return err
}

// FirstAsset is when the organisation registered its first asset; zero if it has none.
func (tx *Tx) FirstAsset(ctx context.Context) (time.Time, error) {
	var at time.Time
	err := tx.row(
		ctx,
		`SELECT MIN(created_at) FROM asset WHERE org_id = $1`,
		tx.org.Bytes(),
	).Scan(instant{&at})

	return at, err
}

// GroupedAsset is an asset with the values of the attributes that a fleet is counted by.
type GroupedAsset struct {
	ID     flex.AssetID
	Type   flex.AssetType
	Values [3]string // by FleetAttributes
}

// GroupedAssets returns the organisation's assets by their ids after one, at most limit.
func (tx *Tx) GroupedAssets(
	ctx context.Context,
	after flex.AssetID,
	limit int,
) ([]GroupedAsset, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (GroupedAsset, error) {
			var a GroupedAsset
			err := s.Scan(&a.ID, &a.Type, &a.Values[0], &a.Values[1], &a.Values[2])
			return a, err
		},
		`SELECT a.id, a.type, COALESCE(m.gsp_group, ''), a.model, a.firmware
		FROM asset a JOIN site s ON s.id = a.site_id LEFT JOIN meter m ON m.mpan = s.mpan
		WHERE a.org_id = $1 AND a.id > $2 ORDER BY a.id LIMIT $3`,
		tx.org.Bytes(),
		after.Bytes(),
		limit,
	)
}

// SessionPlan is a schedule of a session, or a session without one.
type SessionPlan struct {
	Asset   flex.AssetID
	Session flex.SessionID
	flex.Span
	Power flex.Watts
	// up to when the car is to be done; none without a schedule; good until the next is read
	Steps []flex.Step
}

// sessionReach is how long before a span a session may have begun that ended and is counted in it.
const sessionReach = 14 * 24 * time.Hour

// EachSessionPlan calls fn with every schedule of the sessions that touch a span, by asset, session and
// generation. The end of an open session is zero. A session that ended is left out if it began long
// before the span.
func (tx *Tx) EachSessionPlan(
	ctx context.Context,
	span flex.Span,
	fn func(*SessionPlan),
) error {
	rs, err := tx.query(
		ctx,
		`WITH RECURSIVE near AS (
			SELECT id, asset_id, number, plugged_in_at, plugged_out_at, event_id FROM session
				WHERE org_id = $1 AND plugged_out_at IS NULL AND plugged_in_at < $3
			UNION ALL SELECT id, asset_id, number, plugged_in_at, plugged_out_at, event_id FROM session
				WHERE org_id = $1 AND plugged_in_at >= $4 AND plugged_in_at > 0 AND plugged_in_at < $3 AND plugged_out_at > $2),
		chain (session_id, event_id) AS (
			SELECT id, event_id FROM near WHERE event_id IS NOT NULL
			UNION ALL SELECT chain.session_id, c.before_id FROM chain JOIN schedule c ON c.event_id = chain.event_id
				WHERE c.before_id IS NOT NULL)
		SELECT n.asset_id, n.id, n.plugged_in_at, COALESCE(n.plugged_out_at, 0), COALESCE(c.from_at, 0), COALESCE(c.power_w, 0), COALESCE(c.steps, ''),
			COALESCE(c.ready_by, 0), COALESCE(c.charge_now_to, 0)
		FROM near n LEFT JOIN chain h ON h.session_id = n.id LEFT JOIN schedule c ON c.event_id = h.event_id
		ORDER BY n.asset_id, n.number, c.generation`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
		micros(span.From.Add(-sessionReach)),
	)
	if err != nil {
		return err
	}

	defer rs.Close()
	var p SessionPlan

	for rs.Next() {
		if err := p.scan(rs); err != nil {
			return err
		}
		fn(&p)
	}

	return rs.Err()
}

// scan reads the next plan into the place of the last.
func (p *SessionPlan) scan(s scanner) error {
	var in, out, from, ready, now int64
	var steps string
	err := s.Scan(
		&p.Asset,
		&p.Session,
		&in,
		&out,
		&from,
		&p.Power,
		&steps,
		&ready,
		&now,
	)
	if err != nil {
		return err
	}

	p.Span = flex.Span{From: time.UnixMicro(in).UTC()}
	if out != 0 {
		p.To = time.UnixMicro(out).UTC()
	}

	p.Steps, err = appendSteps(
		p.Steps[:0],
		time.UnixMicro(from).UTC(),
		steps,
	)

	p.Steps = cutAt(p.Steps, time.UnixMicro(max(ready, now)).UTC())

	return err
}

// BatteryOrder is the power that a dispatch asked an asset for.
type BatteryOrder struct {
	Asset    flex.AssetID
	IssuedAt time.Time
	flex.Span
	Power  flex.Watts // positive draws from the grid
	Own    bool       // of the battery's own plan
	Market string     // the interface's market_id
	// the asset does not follow the dispatch, or never will: see dispatchAnswer
	NotFollowed bool
}

// DispatchLongest is how long a dispatch may last.
const DispatchLongest = 48 * time.Hour

// orderReach is how long before a span a dispatch may have begun that is counted in it.
const orderReach = DispatchLongest

// BatteryOrders returns what dispatches ask for in a span. At any instant an asset has one order at most: the newest that is followed.
func (tx *Tx) BatteryOrders(
	ctx context.Context,
	span flex.Span,
) ([]BatteryOrder, error) {
	orders, err := rows(
		ctx,
		tx.conn,
		scanOrder,
		ordersQuery+` ORDER BY d.event_id`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
		micros(span.From.Add(-orderReach)),
	)

	return OrdersInForce(orders), err
}

// DispatchesOf returns all that dispatches asked an asset for in a span, the first first.
func (tx *Tx) DispatchesOf(
	ctx context.Context,
	asset flex.AssetID,
	span flex.Span,
) ([]BatteryOrder, error) {
	orders, err := tx.ordersOf(ctx, asset, span)
	slices.SortStableFunc(orders, func(a, b BatteryOrder) int {
		return a.From.Compare(b.From)
	})

	return orders, err
}

// OwnOrders returns what dispatches of a battery's own plan asked it for in a span, the newest last, followed or not.
func (tx *Tx) OwnOrders(
	ctx context.Context,
	battery flex.AssetID,
	span flex.Span,
) ([]BatteryOrder, error) {
	orders, err := tx.ordersOf(ctx, battery, span)

	return slices.DeleteFunc(orders, func(o BatteryOrder) bool { return !o.Own }), err
}

// MarketAsked is the market of the newest dispatch that an asset follows and that reaches into a span; empty if there is none.
func (tx *Tx) MarketAsked(
	ctx context.Context,
	asset flex.AssetID,
	span flex.Span,
) (string, error) {
	orders, err := tx.ordersOf(ctx, asset, span)
	for _, o := range slices.Backward(orders) {
		if !o.NotFollowed {
			return o.Market, err
		}
	}

	return "", err
}

// ordersOf returns what dispatches asked an asset for in a span, the newest last.
func (tx *Tx) ordersOf(
	ctx context.Context,
	asset flex.AssetID,
	span flex.Span,
) ([]BatteryOrder, error) {
	return rows(
		ctx,
		tx.conn,
		scanOrder,
		ordersQuery+` AND p.asset_id = $5 ORDER BY d.event_id`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
		micros(span.From.Add(-orderReach)),
		asset.Bytes(),
	)
}

// OrdersInForce is what is left of orders, the newest last, where a newer one for the same asset takes an older one's place. One that
// is not followed is left out, and takes no other's place.
func OrdersInForce(orders []BatteryOrder) []BatteryOrder {
	var kept []BatteryOrder
	newer := map[flex.AssetID][]flex.Span{}

	for _, o := range slices.Backward(orders) {
		if o.NotFollowed {
			continue
		}

		var over []flex.Span
		for _, n := range newer[o.Asset] {
			if !n.Meet(o.Span).Empty() {
				over = append(over, n)
			}
		}

		newer[o.Asset] = append(newer[o.Asset], o.Span)
		for _, left := range outside(o.Span, over) {
			o.Span = left
			kept = append(kept, o)
		}
	}

	return kept
}

// MadeAt returns when dispatches, and the plans of tanks and heat pumps that are in force, were made by the organisation's
// clock, by the events that they were sent as. Other events are left out.
func (tx *Tx) MadeAt(
	ctx context.Context,
	events []flex.EventID,
) (map[flex.EventID]time.Time, error) {
	made := map[flex.EventID]time.Time{}
	add := func(s scanner) error {
		var id flex.EventID
		var at time.Time

		err := s.Scan(&id, instant{&at})
		made[id] = at

		return err
	}

	for chunk := range slices.Chunk(events, outboxChunk) {
		ids, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			add,
			`SELECT event_id, issued_at FROM dispatch WHERE org_id = $1 AND event_id IN `+ids+`
			UNION ALL SELECT event_id, made_at FROM tank_plan WHERE org_id = $1 AND event_id IN `+ids,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return made, nil
}

const ordersQuery = `SELECT p.asset_id, d.issued_at, d.from_at, d.to_at, p.power_w, d.own, d.market, ` + answerColumns + `
	FROM dispatch d JOIN dispatch_asset p ON p.event_id = d.event_id` + answerJoins + `
	WHERE d.org_id = $1 AND d.from_at >= $4 AND d.from_at < $3 AND d.to_at > $2 AND p.over_at > $2`

func scanOrder(s scanner) (BatteryOrder, error) {
	var answer dispatchAnswer
	var o BatteryOrder
	err := s.Scan(append(
		[]any{
			&o.Asset,
			instant{&o.IssuedAt},
			instant{&o.From},
			instant{&o.To},
			&o.Power,
			&o.Own,
			&o.Market,
		},
		answer.dest()...,
	)...)
	o.NotFollowed = !answer.applies()

	return o, err
}

// Earning is what flex events of an asset that began at an instant brought in, before shares.
type Earning struct {
	Asset  flex.AssetID
	At     time.Time
	Amount flex.MicroPounds
}

// Earnings returns what flex events that began in a span brought in: the final amount, or what is
// estimated until it is known.
func (tx *Tx) Earnings(
	ctx context.Context,
	span flex.Span,
) ([]Earning, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (Earning, error) {
			var e Earning
			err := s.Scan(&e.Asset, instant{&e.At}, &e.Amount)
			return e, err
		},
		`SELECT asset_id, from_at, COALESCE(final, estimated) FROM flex_event WHERE org_id = $1 AND from_at >= $2 AND from_at < $3`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
	)
}
