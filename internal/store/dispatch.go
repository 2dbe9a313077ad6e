package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law(
		"a dispatch ends after it begins and has an asset",
		`SELECT d.event_id AS what FROM dispatch d
		WHERE d.to_at <= d.from_at OR NOT EXISTS (SELECT 1 FROM dispatch_asset a WHERE a.event_id = d.event_id)`,
	)
	_ = law(
		"a dispatch that is no batch has one asset",
		`SELECT event_id AS what FROM dispatch_asset
		WHERE event_id IN (SELECT event_id FROM dispatch WHERE NOT batch) GROUP BY event_id HAVING count(*) > 1`,
	)
)

// Dispatch asks assets for a power during a time. The id is that of its push.
type Dispatch struct {
	ID       flex.EventID
	Market   string    // the interface's market_id
	IssuedAt time.Time // by the organisation's clock, as is the span
	flex.Span
	Batch  bool // one message for all its assets; else it has one asset
	Own    bool // of the battery's own plan, which an instruction may have changed; else an operator's
	Assets []DispatchedAsset
	// the instruction that an operator's dispatch of batteries makes, just after it was sent; zero if read from the store, or without a battery
	Instruction flex.InstructionID
}

// DispatchedAsset is an asset's part in a dispatch.
type DispatchedAsset struct {
	ID    flex.AssetID
	Power flex.Watts // positive draws from the grid
	// Without is the power that the asset would have had without the market, in each
	// half-hour that the dispatch touches; if nil, AddDispatch takes it from its plan.
	Without []flex.Watts
}

// AddDispatch stores a dispatch and has it sent. Its id and its instant are set here.
func (tx *Tx) AddDispatch(ctx context.Context, d Dispatch) (Dispatch, error) {
	d.ID, d.IssuedAt = flex.EventID(tx.newID()), tx.now

	row := []value{
		{"event_id", d.ID.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"market", d.Market},
		{"issued_at", micros(d.IssuedAt)},
		{"from_at", micros(d.From)},
		{"to_at", micros(d.To)},
		{"batch", d.Batch},
		{"own", d.Own},
	}

	err := tx.insert(ctx, "dispatch", row)
	if err != nil {
		return d, err
	}

	if err := tx.withoutMarket(ctx, &d); err != nil {
		return d, err
	}

	if err := tx.addDispatched(ctx, &d); err != nil {
		return d, err
	}

	if err := tx.askBatteries(ctx, &d); err != nil {
		return d, err
	}

	p := Push{
		EventID:    d.ID,
		Kind:       DispatchPush,
		Generation: 1,
		Value:      Urgent,
		ExpiresAt:  d.To,
	}

	if !d.Batch {
		p.AssetID = d.Assets[0].ID
	}

	return d, tx.Enqueue(ctx, p)
}

// askBatteries has the batteries of a dispatch that is not of their own plans planned again around it, with the others of
// their sites.
func (tx *Tx) askBatteries(ctx context.Context, d *Dispatch) error {
	if d.Own {
		return nil
	}

	ids := make([]flex.AssetID, len(d.Assets))
	for i, a := range d.Assets {
		ids[i] = a.ID
	}

	for chunk := range slices.Chunk(ids, outboxChunk) {
		list, args := in([]any{tx.org.Bytes(), micros(d.To)}, chunk)
		_, err := tx.exec(
			ctx,
			`UPDATE battery_plan SET asked_to = CASE WHEN asked_to > $2 THEN asked_to ELSE $2 END
			WHERE org_id = $1 AND asset_id IN `+list,
			args...,
		)
		if err != nil {
			return err
		}

		list, args = in([]any{tx.org.Bytes()}, chunk)
		n, err := tx.exec(
			ctx,
			`UPDATE battery_plan SET again = TRUE WHERE org_id = $1 AND asset_id IN (SELECT o.id FROM asset a
				JOIN asset o ON o.site_id = a.site_id AND o.type = 'battery' WHERE a.org_id = $1 AND a.id IN `+list+`)`,
			args...,
		)
		if err != nil {
			return err
		}

		if n > 0 {
			tx.Wake(WakeControl)
		}
	}

	return nil
}

// OrdersBeside returns what dispatches that are not of a battery's own plan ask of it in a span: at any instant the newest that is
// followed. An own dispatch of no power is among them, as it takes another one back.
func (tx *Tx) OrdersBeside(
	ctx context.Context,
	battery flex.AssetID,
	span flex.Span,
) ([]BatteryOrder, error) {
	orders, err := tx.ordersOf(ctx, battery, span)

	return slices.DeleteFunc(OrdersInForce(orders), func(o BatteryOrder) bool {
		return o.Own && o.Power != 0
	}), err
}

// AskedTo is the end of the last dispatch of a battery that is not over and not of its own plan; zero if there is none.
func (tx *Tx) AskedTo(
	ctx context.Context,
	battery flex.AssetID,
) (time.Time, error) {
	var last time.Time
	err := tx.row(
		ctx,
		`SELECT max(d.to_at) FROM dispatch d JOIN dispatch_asset a ON a.event_id = d.event_id
		WHERE d.org_id = $1 AND a.asset_id = $2 AND a.over_at > $3 AND d.to_at > $3 AND NOT d.own`,
		tx.org.Bytes(),
		battery.Bytes(),
		micros(tx.now),
	).Scan(instant{&last})

	return last, err
}

// addDispatched records which assets a dispatch is for, and when to look for their flex events.
func (tx *Tx) addDispatched(ctx context.Context, d *Dispatch) error {
	const columns = 8
	args := make([]any, 0, columns*len(d.Assets))
	detectAt := micros(flex.PeriodAt(d.To.Add(-1)).End().Add(DetectAfter))
	releaseAt := micros(d.To.Add(ReleaseAfter))

	for _, a := range d.Assets {
		args = append(
			args,
			d.ID.Bytes(),
			a.ID.Bytes(),
			tx.org.Bytes(),
			int64(a.Power),
			writeWatts(a.Without),
			detectAt,
			releaseAt,
			micros(d.To),
		)
	}

	into := `INSERT INTO dispatch_asset (event_id, asset_id, org_id, power_w, without_market, detect_at, release_at, over_at)`

	return tx.bulk(ctx, into, ``, columns, args)
}

// Dispatch returns one of the organisation's dispatches, its assets in the order of their
// ids.
func (tx *Tx) Dispatch(ctx context.Context, id flex.EventID) (Dispatch, error) {
	d, err := one(
		ctx,
		tx.conn,
		"dispatch not found or not authorized",
		scanDispatch,
		`SELECT event_id, market, issued_at, from_at, to_at, batch FROM dispatch WHERE org_id = $1 AND event_id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
	if err != nil {
		return d, err
	}

	part := func(s scanner) (DispatchedAsset, error) {
		var a DispatchedAsset
		err := s.Scan(&a.ID, &a.Power)
		return a, err
	}

	d.Assets, err = rows(
		ctx,
		tx.conn,
		part,
		`SELECT asset_id, power_w FROM dispatch_asset WHERE org_id = $1 AND event_id = $2 ORDER BY asset_id`,
		tx.org.Bytes(),
		id.Bytes(),
	)

	return d, err
}

// Dispatches returns the organisation's dispatches, the newest first.
func (tx *Tx) Dispatches(ctx context.Context, limit int) ([]Dispatch, error) {
	ds, err := rows(
		ctx,
		tx.conn,
		scanDispatch,
		`SELECT event_id, market, issued_at, from_at, to_at, batch FROM dispatch
		WHERE org_id = $1 ORDER BY event_id DESC LIMIT $2`,
		tx.org.Bytes(),
		limit,
	)
	if err != nil || len(ds) == 0 {
		return nil, err
	}

	at := make(map[flex.EventID]*Dispatch, len(ds))
	ids := make([]flex.EventID, len(ds))

	for i := range ds {
		ids[i], at[ds[i].ID] = ds[i].ID, &ds[i]
	}

	for chunk := range slices.Chunk(ids, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			func(s scanner) error {
				var id flex.EventID
				var a DispatchedAsset
				err := s.Scan(&id, &a.ID, &a.Power)
				if err == nil {
					at[id].Assets = append(at[id].Assets, a)
				}

				return err
			},
			`SELECT event_id, asset_id, power_w FROM dispatch_asset WHERE org_id = $1 AND event_id IN `+
				list+` ORDER BY event_id, asset_id`,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return ds, nil
}

func scanDispatch(s scanner) (Dispatch, error) {
	var d Dispatch
	err := s.Scan(
		&d.ID,
		&d.Market,
		instant{&d.IssuedAt},
		instant{&d.From},
		instant{&d.To},
		&d.Batch,
	)

	return d, err
}

// DetectAfter is how long after the end of its last half-hour a dispatch is looked at: what was delivered
// at the last moment has been noted by then, and so has each other dispatch of these half-hours.
const DetectAfter = time.Minute

// duringSpan is the part of a plan, which begins with a period, that lies within the span. It
// is idle where the plan says nothing.
func duringSpan(
	span flex.Span,
	begins flex.Period,
	plan []flex.Watts,
) []flex.Watts {
	first, last := flex.PeriodAt(span.From), flex.PeriodAt(span.To.Add(-1))
	part := make([]flex.Watts, last.Sub(first)+1)
	for i := range part {
		if n := first.Add(i).Sub(begins); n >= 0 && n < len(plan) {
			part[i] = plan[n]
		}
	}

	return part
}

// retractDispatches drops what is still to be sent of the assets' dispatches that are not over: of those of their own plans,
// and with all those of an operator too. A message that is for other assets as well is sent, and so is what takes another
// dispatch back: an own one of no power. An attempt that is under way may yet arrive.
func (tx *Tx) retractDispatches(
	ctx context.Context,
	all bool,
	assets ...flex.AssetID,
) error {
	whose := ` AND d.own`
	if all {
		whose = ``
	}

	for chunk := range slices.Chunk(assets, outboxChunk) {
		list, args := in([]any{tx.org.Bytes(), micros(tx.now)}, chunk)

		// A row under way keeps its lease, as in Retract.
		_, err := tx.exec(
			ctx,
			`UPDATE outbox SET expires_at = 0, turn_at = CASE WHEN sending > 0 THEN turn_at END
			WHERE org_id = $1 AND kind = 'dispatch' AND subject IN (SELECT a.event_id
				FROM dispatch_asset a JOIN dispatch d ON d.event_id = a.event_id
				WHERE a.org_id = $1 AND a.over_at > $2 AND d.to_at > $2 AND NOT (d.own AND a.power_w = 0)`+whose+` AND a.asset_id IN `+list+`
					AND NOT EXISTS (SELECT 1 FROM dispatch_asset b WHERE b.event_id = a.event_id AND b.asset_id <> a.asset_id))`,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// withoutMarket fills in what the assets would have done without the market, where that was
// not said, from their plans as they stand. An asset without a plan would have been idle.
func (tx *Tx) withoutMarket(ctx context.Context, d *Dispatch) error {
	at := map[flex.AssetID]*DispatchedAsset{}
	var ids []flex.AssetID

	for i := range d.Assets {
		if a := &d.Assets[i]; a.Without == nil {
			ids, at[a.ID] = append(ids, a.ID), a
		}
	}

	read := func(s scanner) error {
		var id flex.AssetID
		var stored time.Time

		var text string
		if err := s.Scan(&id, instant{&stored}, &text); err != nil {
			return err
		}

		planned, err := readWatts(text)
		at[id].Without = duringSpan(d.Span, flex.PeriodAt(stored), planned)

		return err
	}

	for chunk := range slices.Chunk(ids, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			read,
			`SELECT asset_id, stored_at, without_market FROM battery_plan WHERE org_id = $1 AND asset_id IN `+
				list,
			args...,
		)

		if err != nil {
			return err
		}
	}

	return nil
}

func writeWatts(ws []flex.Watts) string { return writeNumbers(ws) }

func readWatts(text string) ([]flex.Watts, error) {
	return readNumbers[flex.Watts]("powers", text)
}

// EndedDispatch is an asset's part in a dispatch whose time is over.
type EndedDispatch struct {
	ID      flex.EventID
	AssetID flex.AssetID
	// zero if the asset was taken away and nothing is known of it
	SiteID   flex.SiteID
	IssuedAt time.Time
	flex.Span
	Power   flex.Watts
	Without []flex.Watts
	// the asset's own power, or its model's; 0 if neither is known
	Rated flex.Watts
	// when the client accepted it, or reported it as followed after a failure; zero if it did not, or it was refused or failed
	TakenAt time.Time
}

// DispatchPart names an asset's part in a dispatch.
type DispatchPart struct {
	Event flex.EventID
	Asset flex.AssetID
}

// dispatchOver is that an asset's part in a dispatch is over by $2 and its flex events have not been looked for.
const dispatchOver = `p.detect_at <= $2`

// DueDispatches returns up to limit parts of dispatches that are over and whose flex events
// have not been looked for.
func (tx *Tx) DueDispatches(
	ctx context.Context,
	limit int,
) ([]DispatchPart, error) {
	scan := func(s scanner) (DispatchPart, error) {
		var p DispatchPart
		err := s.Scan(&p.Event, &p.Asset)
		return p, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT p.event_id, p.asset_id FROM dispatch_asset p
		WHERE p.org_id = $1 AND `+dispatchOver+` ORDER BY p.detect_at, p.event_id, p.asset_id LIMIT $3`,
		tx.org.Bytes(),
		micros(tx.now),
		limit,
	)
}

// EndedDispatches returns those of the parts whose flex events are to be looked for still, as another process may have done it
// meanwhile, and that no other process holds, and keeps others off them.
func (tx *Tx) EndedDispatches(
	ctx context.Context,
	parts []DispatchPart,
) ([]EndedDispatch, error) {
	lock := ""
	if tx.db.d.skipLocked != "" {
		lock = " FOR UPDATE OF p SKIP LOCKED"
	}

	args := []any{tx.org.Bytes(), micros(tx.now)}
	either := make([]string, len(parts))
	for i, p := range parts {
		args = append(args, p.Event.Bytes(), p.Asset.Bytes())
		either[i] = fmt.Sprintf(`p.event_id = $%d AND p.asset_id = $%d`, len(args)-1, len(args))
	}

	return rows(
		ctx,
		tx.conn,
		scanEndedDispatch,
		endedDispatch+`WHERE (`+strings.Join(either, ` OR `)+`) AND (p.org_id = $1) IS TRUE AND `+dispatchOver+`
		ORDER BY p.detect_at, p.event_id, p.asset_id`+lock,
		args...,
	)
}

const endedDispatch = `SELECT p.event_id, p.asset_id, a.site_id, g.site_id, d.issued_at, d.from_at, d.to_at, p.power_w, p.without_market,
		COALESCE(a.power_w, m.power_w, g.power_w, 0), ` + answerColumns + `
	FROM dispatch_asset p JOIN dispatch d ON d.event_id = p.event_id LEFT JOIN asset a ON a.id = p.asset_id
		LEFT JOIN model m ON m.key = ` + modelKeySQL + ` LEFT JOIN former_asset g ON g.id = p.asset_id` + answerJoins

func scanEndedDispatch(s scanner) (EndedDispatch, error) {
	var site, former flex.SiteID
	var without string
	var answer dispatchAnswer
	var d EndedDispatch
	err := s.Scan(append(
		[]any{
			&d.ID,
			&d.AssetID,
			&site,
			&former,
			instant{&d.IssuedAt},
			instant{&d.From},
			instant{&d.To},
			&d.Power,
			&without,
			&d.Rated,
		},
		answer.dest()...,
	)...)

	if err != nil {
		return d, err
	}

	d.SiteID = site
	if site.IsZero() {
		d.SiteID = former
	}

	d.TakenAt = answer.takenAt(d.IssuedAt)
	d.Without, err = readWatts(without)

	return d, err
}

// DispatchesBeside returns an asset's parts in all dispatches, over or not, that touch the half-hours of one of
// them, itself among them, in the order in which they were sent.
func (tx *Tx) DispatchesBeside(
	ctx context.Context,
	d EndedDispatch,
) ([]EndedDispatch, error) {
	return rows(
		ctx,
		tx.conn,
		scanEndedDispatch,
		endedDispatch+`WHERE p.org_id = $1 AND p.asset_id = $2 AND p.over_at > $4 AND d.from_at < $3 AND d.to_at > $4 ORDER BY d.issued_at, d.event_id`,
		tx.org.Bytes(),
		d.AssetID.Bytes(),
		micros(flex.PeriodAt(d.To.Add(-1)).End()),
		micros(flex.PeriodAt(d.From).Start()),
	)
}

// DispatchDetected notes that the flex events of an asset's part in a dispatch have been
// looked for.
func (tx *Tx) DispatchDetected(
	ctx context.Context,
	id flex.EventID,
	asset flex.AssetID,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE dispatch_asset SET detect_at = NULL WHERE org_id = $1 AND event_id = $2 AND asset_id = $3`,
		tx.org.Bytes(),
		id.Bytes(),
		asset.Bytes(),
	)

	return err
}
