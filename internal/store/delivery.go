package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// Delivery is a push with its state and its latest attempt. Instants are by the true clock.
type Delivery struct {
	ID         flex.EventID
	Endpoint   flex.EndpointName
	Kind       PushKind
	AssetID    flex.AssetID // zero for what concerns no single asset
	Generation int64
	State      flex.DeliveryState
	QueuedAt   time.Time
	Tries      int
	Last       Attempt             // zero before the first
	NextAt     time.Time           // of a pending one: the earliest time of the next attempt
	Callback   flex.CallbackStatus // the furthest status that the client reported, "" if none
}

// DeliveryQuery selects deliveries; a zero field selects all.
type DeliveryQuery struct {
	AssetID  flex.AssetID
	Kind     PushKind
	State    flex.DeliveryState
	Endpoint flex.EndpointName
	Since    time.Time
	Before   flex.EventID // the last delivery of the page before; zero for the first page
	Limit    int
	Model    string // of the asset, in upper or lower case
	Firmware string // likewise
	GSPGroup string // of its site
	Status   *int   // of HTTP, of the latest attempt; 0: there was no answer
	Sort     DeliveryOrder
	Key      int64 // of the delivery Before, by Sort
	// only those that have waited since before this instant, also for their first attempt
	WaitingBefore time.Time
}

// untried reports whether the query includes pushes that were not tried yet.
func (q DeliveryQuery) untried() bool {
	return (q.State == "" || q.State == flex.DeliveryPending) && q.Status == nil
}

func (q DeliveryQuery) where(w *where, alias string) {
	if !q.AssetID.IsZero() {
		w.and(alias+".asset_id = $%d", q.AssetID.Bytes())
	}

	if q.Kind != "" {
		w.and(alias+".kind = $%d", string(q.Kind))
	}

	if q.Endpoint != "" {
		w.and(alias+".endpoint = $%d", string(q.Endpoint))
	}

	if !q.WaitingBefore.IsZero() {
		w.and("o.event_id = "+alias+".event_id AND "+lateWhere, micros(q.WaitingBefore))
	}

	if !q.Since.IsZero() {
		w.and(alias+".queued_at >= $%d", micros(q.Since))
	}

	if q.Model != "" {
		w.and("EXISTS (SELECT 1 FROM asset a WHERE a.id = "+alias+
			".asset_id AND "+modelKeySQL+" = $%d)", modelKey(q.Model))
	}

	if q.Firmware != "" {
		w.and("EXISTS (SELECT 1 FROM asset a WHERE a.id = "+alias+
			".asset_id AND "+firmwareKeySQL+" = $%d)", modelKey(q.Firmware))
	}

	if q.GSPGroup != "" {
		w.and(`EXISTS (SELECT 1 FROM asset a JOIN site t ON t.id = a.site_id JOIN meter m ON m.mpan = t.mpan
			WHERE a.id = `+alias+".asset_id AND m.gsp_group = $%d)", q.GSPGroup)
	}
}

// conditions adds the conditions on deliveries d that were tried.
func (q DeliveryQuery) conditions(w *where) {
	q.where(w, "d")

	if q.State != "" {
		w.and(stateOf+" = $%d", string(q.State))
		w.text.WriteString(storedStateCondition(q.State))
	}

	if q.Status != nil {
		w.and("d.tries > 0 AND d.status = $%d", *q.Status)
	}
}

// storedStateCondition returns the condition on the column state of deliveries that are in a state, which
// stateOf derives from it. Few deliveries are not accepted, and those have a partial index. Its condition is
// written as a constant, as neither engine recognises it in a parameter.
func storedStateCondition(state flex.DeliveryState) string {
	if state == flex.DeliveryAccepted {
		return ""
	}

	stored := flex.DeliveryPending
	if state == flex.DeliveryRejected || state == flex.DeliveryExpired {
		stored = state
	}

	return " AND d.state = '" + string(stored) + "' AND d.state <> 'accepted'"
}

// stateOf is the SQL expression of the state of delivery d, with o the outbox row of its subject.
const stateOf = `CASE WHEN d.state <> 'pending' THEN d.state WHEN o.event_id IS NULL OR o.event_id <> d.event_id THEN 'superseded'
	WHEN o.expires_at = 0 THEN 'retracted' ELSE 'pending' END`

const deliverySelect = `SELECT d.event_id, d.endpoint, d.kind, d.asset_id, d.generation, ` +
	stateOf + `, d.queued_at, d.tries,
		d.at, d.took, d.status, d.error, d.answer, CASE WHEN d.state = 'pending' AND o.event_id = d.event_id THEN o.turn_at END` +
	deliveryFrom

const deliveryFrom = `
	FROM delivery d LEFT JOIN outbox o ON o.subject = CASE d.kind WHEN 'schedule' THEN d.asset_id ELSE d.event_id END
	WHERE d.org_id = $1`

func scanDelivery(s scanner) (Delivery, error) {
	var took int64
	var d Delivery
	err := s.Scan(
		&d.ID,
		&d.Endpoint,
		&d.Kind,
		&d.AssetID,
		&d.Generation,
		&d.State,
		instant{&d.QueuedAt},
		&d.Tries,
		instant{&d.Last.At},
		&took,
		&d.Last.Status,
		&d.Last.Error,
		&d.Last.Answer,
		instant{&d.NextAt},
	)

	d.Last.Took = time.Duration(took) * time.Microsecond

	return d, err
}

// untried selects pushes of the outbox that were not tried yet, and so have no row in delivery.
const untried = `SELECT o.event_id, o.endpoint, o.kind, o.asset_id, o.generation, o.queued_at, o.turn_at` + untriedFrom

const untriedFrom = `
	FROM outbox o
	WHERE o.org_id = $1 AND o.turn_at IS NOT NULL AND o.expires_at > 0
		AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.org_id = o.org_id AND d.event_id = o.event_id)`

func scanUntried(s scanner) (Delivery, error) {
	var d Delivery
	d.State = flex.DeliveryPending
	err := s.Scan(
		&d.ID,
		&d.Endpoint,
		&d.Kind,
		&d.AssetID,
		&d.Generation,
		instant{&d.QueuedAt},
		instant{&d.NextAt},
	)

	return d, err
}

// Deliveries returns the organisation's deliveries that the query selects, in its order.
func (tx *Tx) Deliveries(
	ctx context.Context,
	q DeliveryQuery,
) ([]Delivery, error) {
	var (
		out []Delivery
		err error
	)

	if q.untried() {
		out, err = tx.untried(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("list pushes that were not tried: %w", err)
		}
	}

	w := where{args: []any{tx.org.Bytes()}}
	q.conditions(&w)
	order := q.page(&w, "d")

	w.args = append(w.args, q.Limit)
	tried, err := rows(
		ctx,
		tx.conn,
		scanDelivery,
		deliverySelect+w.text.String()+
			fmt.Sprintf("%s LIMIT $%d", order, len(w.args)),
		w.args...,
	)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}

	out = append(out, tried...)
	slices.SortFunc(out, q.Sort.compare)
	out = out[:min(len(out), q.Limit)]

	return out, tx.reported(ctx, out)
}

// untried returns the deliveries that wait for their first attempt.
func (tx *Tx) untried(
	ctx context.Context,
	q DeliveryQuery,
) ([]Delivery, error) {
	w := where{args: []any{tx.org.Bytes()}}
	q.where(&w, "o")
	order := q.page(&w, "o")

	w.args = append(w.args, q.Limit)
	order += fmt.Sprintf(" LIMIT $%d", len(w.args))

	return rows(
		ctx,
		tx.conn,
		scanUntried,
		untried+w.text.String()+order,
		w.args...,
	)
}

// reported sets each delivery's Callback.
func (tx *Tx) reported(ctx context.Context, ds []Delivery) error {
	at := make(map[flex.EventID]*Delivery, len(ds))
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

				var status flex.CallbackStatus
				if err := s.Scan(&id, &status); err != nil {
					return err
				}

				if d := at[id]; status.Stage() > d.Callback.Stage() {
					d.Callback = status
				}

				return nil
			},
			`SELECT event_id, status FROM callback WHERE org_id = $1 AND event_id IN `+list,
			args...,
		)
		if err != nil {
			return fmt.Errorf("read callbacks: %w", err)
		}
	}

	return nil
}

// Delivery returns one delivery with every attempt, the earliest first. A schedule that was replaced
// before it was tried has none.
func (tx *Tx) Delivery(
	ctx context.Context,
	id flex.EventID,
) (Delivery, []Attempt, error) {
	found, err := rows(
		ctx,
		tx.conn,
		scanDelivery,
		deliverySelect+` AND d.event_id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)

	if err == nil && len(found) == 0 {
		found, err = rows(
			ctx,
			tx.conn,
			scanUntried,
			untried+
				` AND o.event_id = $2 AND (o.subject = $2 OR o.subject = (SELECT asset_id FROM schedule WHERE event_id = $2))`,
			tx.org.Bytes(),
			id.Bytes(),
		)
	}

	if err == nil && len(found) == 0 {
		found, err = rows(
			ctx,
			tx.conn,
			scanUnsent,
			`SELECT s.event_id, s.asset_id, s.generation, COALESCE(o.generation, 0) FROM schedule s
			LEFT JOIN outbox o ON o.subject = s.asset_id WHERE s.org_id = $1 AND s.event_id = $2`,
			tx.org.Bytes(),
			id.Bytes(),
		)
	}

	if err != nil {
		return Delivery{}, nil, err
	}

	if len(found) == 0 {
		return Delivery{}, nil, flex.Fail(
			flex.NotFound,
			"delivery not found or not authorized",
		)
	}

	if err := tx.reported(ctx, found); err != nil {
		return Delivery{}, nil, err
	}

	attempts, err := rows(
		ctx,
		tx.conn,
		scanAttempt,
		`SELECT at, took, status, error, answer FROM attempt
		WHERE org_id = $1 AND event_id = $2 ORDER BY number`,
		tx.org.Bytes(),
		id.Bytes(),
	)

	d := found[0]
	if d.Tries > 0 {
		attempts = append(attempts, d.Last)
	}

	return d, attempts, err
}

// scanUnsent reads a schedule that was never tried: a newer one replaced it, or it was retracted.
func scanUnsent(s scanner) (Delivery, error) {
	var newest int64
	var d Delivery
	d.Endpoint = flex.ScheduleEndpoint
	d.Kind = SchedulePush
	d.State = flex.DeliveryRetracted
	err := s.Scan(&d.ID, &d.AssetID, &d.Generation, &newest)

	if newest > d.Generation {
		d.State = flex.DeliverySuperseded
	}

	return d, err
}

func scanAttempt(s scanner) (Attempt, error) {
	var took int64
	var a Attempt
	err := s.Scan(instant{&a.At}, &took, &a.Status, &a.Error, &a.Answer)
	a.Took = time.Duration(took) * time.Microsecond
	return a, err
}

// PushOf returns the push of a delivery, with the record that its body is made of.
func (tx *Tx) PushOf(ctx context.Context, d Delivery) (ClaimedPush, error) {
	pushes := []ClaimedPush{{
		Push: Push{
			AssetID:    d.AssetID,
			EventID:    d.ID,
			Kind:       d.Kind,
			To:         d.Endpoint,
			Generation: d.Generation,
		},
		Tries:    d.Tries,
		QueuedAt: d.QueuedAt,
	}}

	err := tx.readContents(ctx, pushes)

	return pushes[0], err
}

// Replay has a delivery sent once more, at once. It is a Conflict if a newer schedule has replaced it,
// if it was retracted, and if it has expired.
func (tx *Tx) Replay(ctx context.Context, d Delivery) error {
	subject := d.ID.Bytes()
	if d.Kind == SchedulePush {
		subject = d.AssetID.Bytes()
	}

	n, err := tx.exec(
		ctx,
		`UPDATE outbox SET turn_at = CASE WHEN sending > 0 THEN turn_at ELSE CAST($4 AS BIGINT) END
		WHERE org_id = $1 AND subject = $2 AND event_id = $3 AND expires_at > $5`,
		tx.org.Bytes(),
		subject,
		d.ID.Bytes(),
		micros(tx.db.Now()),
		micros(tx.now),
	)

	if err == nil && n == 0 {
		return flex.Fail(
			flex.Conflict,
			"delivery %v cannot be sent again: a newer schedule has taken its place, or its time is over",
			d.ID,
		)
	}

	tx.Wake(WakePush)

	return err
}

// Accepted returns the newest generation of the asset's schedule that the client has accepted, 0 for
// none.
func (tx *Tx) Accepted(
	ctx context.Context,
	asset flex.AssetID,
) (int64, error) {
	found, err := rows(
		ctx,
		tx.conn,
		scalar[int64],
		`SELECT accepted FROM outbox WHERE org_id = $1 AND subject = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
	)

	var generation int64
	if len(found) > 0 {
		generation = found[0]
	}

	return generation, err
}

// deliveryDrop is how many deliveries are deleted in one transaction at most.
const deliveryDrop = 5000

// undetected is the condition that event x is a schedule of a session whose flex events were not detected
// yet: detection depends on whether the schedule was followed.
const undetected = `EXISTS (SELECT 1 FROM schedule c JOIN session s ON s.id = c.session_id
	WHERE c.event_id = x.event_id AND (s.plugged_out_at IS NULL
		OR EXISTS (SELECT 1 FROM reckoning r WHERE r.session_id = s.id AND r.detect_at IS NOT NULL)))`

// dropped are the tables that DropDeliveries deletes from, with their conditions, in this order.
var dropped = []string{"attempt AS x WHERE TRUE", "delivery AS x WHERE NOT " + undetected}

// DropDeliveries deletes some of the deliveries that were queued before an instant of the true clock, and
// returns the largest number of rows that it deleted from one table: 0 when none is left. The deliveries of
// schedules stay until the flex events of their session were detected, however long the car is plugged in.
func (tx *Tx) DropDeliveries(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	oldest := flex.EventID(flex.MakeID[struct{}](before, [10]byte{}))
	last, err := tx.lastDropped(ctx, oldest)
	if err != nil {
		return 0, err
	}

	n, err := tx.exec(
		ctx,
		`DELETE FROM callback WHERE org_id = $1 AND event_id IN (
		SELECT x.event_id FROM callback x WHERE x.org_id = $1 AND x.event_id < $2 AND NOT `+undetected+`
		ORDER BY x.event_id LIMIT $3)`,
		tx.org.Bytes(),
		oldest.Bytes(),
		deliveryDrop,
	)
	if err != nil {
		return 0, fmt.Errorf("delete old callbacks: %w", err)
	}

	for _, from := range dropped {
		table, _, _ := strings.Cut(from, " ")

		// The list is ordered: for an unordered one PostgreSQL would read all schedules.
		gone, err := tx.exec(
			ctx,
			`DELETE FROM `+table+` WHERE org_id = $1 AND event_id IN (
			SELECT x.event_id FROM `+from+` AND x.org_id = $1 AND x.event_id <= $2 ORDER BY x.event_id LIMIT $3)`,
			tx.org.Bytes(),
			last.Bytes(),
			deliveryDrop,
		)
		if err != nil {
			return n, fmt.Errorf("delete old deliveries: %w", err)
		}

		n = max(n, gone)
	}

	return n, nil
}

// lastDropped returns the last event whose delivery and attempts one transaction deletes, so that no attempt
// is ever left without its delivery: that of the deliveryDrop-th row of either table, or before if there
// are fewer.
func (tx *Tx) lastDropped(ctx context.Context, before flex.EventID) (flex.EventID, error) {
	last := before

	for _, from := range dropped {
		found, err := rows(
			ctx,
			tx.conn,
			scalar[flex.EventID],
			`SELECT x.event_id FROM `+from+` AND x.org_id = $1 AND x.event_id < $2 ORDER BY x.event_id LIMIT 1 OFFSET $3`,
			tx.org.Bytes(),
			last.Bytes(),
			deliveryDrop-1,
		)
		if err != nil {
			return last, fmt.Errorf("find old deliveries: %w", err)
		}

		if len(found) > 0 {
			last = found[0]
		}
	}

	return last, nil
}

var (
	_ = law("an accepted delivery was tried and answered 2xx",
		`SELECT event_id AS what FROM delivery WHERE state = 'accepted' AND (tries = 0 OR status < 200 OR status > 299)`)
	_ = law(
		"what the client has accepted is recorded so",
		`SELECT d.event_id AS what FROM delivery d JOIN outbox o ON o.subject = d.asset_id
		WHERE d.kind = 'schedule' AND d.state = 'accepted' AND o.accepted < d.generation`,
	)
	_ = law(
		"attempts are counted",
		`SELECT a.event_id AS what FROM attempt a LEFT JOIN delivery d ON d.org_id = a.org_id AND d.event_id = a.event_id
		WHERE d.event_id IS NULL OR a.number >= d.tries`,
	)
)

// Tried are the attempts of one delivery, for statistics.
type Tried struct {
	Endpoint flex.EndpointName
	State    flex.DeliveryState
	Tries    int
	Took     time.Duration // of the latest attempt
}

// TriedSince returns the organisation's deliveries that were queued since the instant and
// have been tried, the newest of them.
func (tx *Tx) TriedSince(
	ctx context.Context,
	since time.Time,
	limit int,
) ([]Tried, error) {
	oldest := flex.MakeID[struct{}](since, [10]byte{})
	return rows(ctx, tx.conn, func(s scanner) (Tried, error) {
		var took int64
		var t Tried
		err := s.Scan(&t.Endpoint, &t.State, &t.Tries, &took)
		t.Took = time.Duration(took) * time.Microsecond
		return t, err
	}, `SELECT d.endpoint, d.state, d.tries, d.took FROM delivery d WHERE d.org_id = $1 AND d.event_id >= $2 AND d.tries > 0
		ORDER BY d.event_id DESC LIMIT $3`, tx.org.Bytes(), oldest[:], limit)
}

// FailedPushes are pushes whose latest attempt failed, of one kind.
type FailedPushes struct {
	Endpoint flex.EndpointName
	Status   int    // of HTTP; 0: there was no answer
	Model    string // of the asset, in lower case; empty if it is not known, or there is no single asset
	Firmware string // likewise
	GSPGroup string // of its site
	Pushes   int
}

// FailedSince counts the organisation's pushes that were queued since the instant and whose latest
// attempt failed: those that were refused or expired, and those that are tried again.
func (tx *Tx) FailedSince(
	ctx context.Context,
	since time.Time,
) ([]FailedPushes, error) {
	oldest := flex.MakeID[struct{}](since, [10]byte{})

	return rows(
		ctx,
		tx.conn,
		func(s scanner) (FailedPushes, error) {
			var f FailedPushes
			err := s.Scan(
				&f.Endpoint,
				&f.Status,
				&f.Model,
				&f.Firmware,
				&f.GSPGroup,
				&f.Pushes,
			)
			return f, err
		},
		`SELECT d.endpoint, d.status, COALESCE(`+modelKeySQL+`, ''), COALESCE(`+firmwareKeySQL+`, ''), COALESCE(m.gsp_group, ''), count(*)
		FROM delivery d LEFT JOIN asset a ON a.id = d.asset_id
		LEFT JOIN site t ON t.id = a.site_id LEFT JOIN meter m ON m.mpan = t.mpan
		WHERE d.org_id = $1 AND d.event_id >= $2 AND d.tries > 0 AND (d.state IN ('rejected', 'expired') OR d.state = 'pending' AND (d.status < 200 OR d.status > 299))
		GROUP BY d.endpoint, d.status, COALESCE(`+modelKeySQL+`, ''), COALESCE(`+firmwareKeySQL+`, ''), COALESCE(m.gsp_group, '')
		ORDER BY 6 DESC, 1, 2, 3, 4, 5`,
		tx.org.Bytes(),
		oldest[:],
	)
}

// DeliveryOrg returns the organisation of a push, or a NotFound failure.
func (all *All) DeliveryOrg(
	ctx context.Context,
	id flex.EventID,
) (flex.OrgID, error) {
	return orgOf(
		ctx,
		all,
		"there is no push of that id",
		`SELECT org_id FROM schedule WHERE event_id = $1
		UNION SELECT org_id FROM delivery WHERE event_id = $1 UNION SELECT org_id FROM outbox WHERE event_id = $1`,
		id.Bytes(),
	)
}
