package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// Delivery is a push and what has become of it. Instants are by the true clock.
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
	NextAt     time.Time           // when it is pending: not before
	Callback   flex.CallbackStatus // the furthest that was reported, "" if none
}

// DeliveryQuery says which deliveries are asked for; a zero field takes all.
type DeliveryQuery struct {
	AssetID  flex.AssetID
	Kind     PushKind
	State    flex.DeliveryState
	Endpoint flex.EndpointName
	Since    time.Time
	Before   flex.EventID // those that come after this one: the next page
	Limit    int
	Model    string // of the asset, in any case of its letters
	Firmware string // likewise
	GSPGroup string // of its site
	Status   *int   // of HTTP, of the latest attempt; 0: no answer came
	Sort     DeliveryOrder
	Key      int64 // of the delivery Before, by Sort
	// only those that have waited since before this instant, also for their first attempt
	WaitingBefore time.Time
}

// untried reports whether the query may have what was not tried yet, which has no status.
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

// conditions are those on what was tried.
func (q DeliveryQuery) conditions(w *where) {
	q.where(w, "d")

	if q.State != "" {
		w.and(stateOf+" = $%d", string(q.State))
		w.text.WriteString(keptAs(q.State))
	}

	if q.Status != nil {
		w.and("d.tries > 0 AND d.status = $%d", *q.Status)
	}
}

// keptAs says of deliveries that are in a state what state is kept of them. What was not taken is little, and has an index, whose
// condition neither engine can tell from a parameter.
func keptAs(state flex.DeliveryState) string {
	if state == flex.DeliveryAccepted {
		return ""
	}

	kept := flex.DeliveryPending
	if state == flex.DeliveryRejected || state == flex.DeliveryExpired {
		kept = state
	}

	return " AND d.state = '" + string(kept) + "' AND d.state <> 'accepted'"
}

// stateOf says in SQL what has become of delivery d, whose subject's outbox row is o.
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

// untried selects what the outbox has that was not tried yet and so is in no log.
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

// Deliveries returns the organisation's deliveries in the order that is asked for.
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
			return nil, fmt.Errorf("list what waits: %w", err)
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

// untried are the deliveries that wait for their first attempt.
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

// reported fills in how far along each is by the client's callbacks.
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

// Delivery returns one delivery with every attempt, the first first. A schedule that was
// replaced before it was tried has none.
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

// scanUnsent reads a schedule that was never tried: a newer one replaced it, or it was
// taken back.
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

// PushOf returns the push of a delivery with what its body is made of.
func (tx *Tx) PushOf(ctx context.Context, d Delivery) (ClaimedPush, error) {
	l := []ClaimedPush{{
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

	err := tx.fill(ctx, l)

	return l[0], err
}

// Replay has a delivery sent once more, at once. It is a Conflict when a newer schedule of
// the asset has taken its place, when it was taken back, and when its time is over.
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

// Accepted returns the newest generation of the asset's schedule that its client has taken,
// 0 for none.
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

// deliveryDrop is how many deliveries are dropped in one transaction.
const deliveryDrop = 5000

// undetected is that an event x is a schedule of a session whose flex events were not looked for: they depend on whether it was followed.
const undetected = `EXISTS (SELECT 1 FROM schedule c JOIN session s ON s.id = c.session_id
	WHERE c.event_id = x.event_id AND (s.plugged_out_at IS NULL
		OR EXISTS (SELECT 1 FROM reckoning r WHERE r.session_id = s.id AND r.detect_at IS NOT NULL)))`

// dropped are the rows that are deleted together, and so counted.
var dropped = []string{"attempt AS x WHERE TRUE", "delivery AS x WHERE NOT " + undetected}

// DropDeliveries deletes deliveries that were queued before an instant of the true clock, some at
// a time, and returns how many rows went from one table at most: 0 when all is done. What became of schedules stays until the flex
// events of their session were looked for, however long the car is plugged in.
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
		return 0, fmt.Errorf("forget old callbacks: %w", err)
	}

	for _, from := range dropped {
		table, _, _ := strings.Cut(from, " ")

		// By a list in order: PostgreSQL would read all schedules for an unordered one.
		k, err := tx.exec(
			ctx,
			`DELETE FROM `+table+` WHERE org_id = $1 AND event_id IN (
			SELECT x.event_id FROM `+from+` AND x.org_id = $1 AND x.event_id <= $2 ORDER BY x.event_id LIMIT $3)`,
			tx.org.Bytes(),
			last.Bytes(),
			deliveryDrop,
		)
		if err != nil {
			return n, fmt.Errorf("forget old deliveries: %w", err)
		}

		n = max(n, k)
	}

	return n, nil
}

// lastDropped is up to which event one transaction drops deliveries with all their attempts, so that no attempt is ever without its
// delivery: as many of each as it may, and all before an event if those are fewer.
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

// Tried is what a delivery took, for figures over many.
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
	Status   int    // of HTTP; 0: no answer came
	Model    string // of the asset, in small letters; empty: none is known, or it is of no single asset
	Firmware string // likewise
	GSPGroup string // of its site
	Pushes   int
}

// FailedSince counts the organisation's pushes that were queued since the instant and whose latest
// attempt failed: what was refused or ran out of time, and what is tried again.
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

// DeliveryOrg returns whose push it is, or a NotFound failure.
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
