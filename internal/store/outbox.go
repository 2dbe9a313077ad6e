package store

import (
	"context"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/trace"
)

// PushKind says what a push carries.
type PushKind string

// The kinds of push.
const (
	// an asset's charging profile; a newer one replaces it
	SchedulePush PushKind = "schedule"
	DispatchPush PushKind = "dispatch" // a dispatch event, sent for itself
	// a site's invitation to a product, or what became of it
	InvitationPush PushKind = "invitation"
	TestPush       PushKind = "test" // a message that changes nothing
)

// Push is a message to the organisation's client. Its body is not stored: it is rendered, when
// it is sent, from the record that it announces.
type Push struct {
	AssetID flex.AssetID // zero if it concerns no single asset
	EventID flex.EventID // the webhook's id, and what the callback names
	Kind    PushKind
	To      flex.EndpointName // empty: the endpoint of its kind
	// of the asset's schedule; 1 for other kinds
	Generation int64
	// the saving: a push that saves more is sent earlier. Urgent goes first
	Value flex.MicroPounds
	// by the organisation's clock; it is not sent from then on
	ExpiresAt time.Time
}

// Urgent is the value of a push that somebody waits for, as at plug-in.
const Urgent flex.MicroPounds = 3600e6

// turn returns when a push may be sent, in microseconds: a micro-pound of value makes it a
// microsecond earlier, up to an hour. Of one wave the most valuable pushes go first, and yet
// none waits for ever.
func (p Push) turn(now time.Time) int64 {
	return now.UnixMicro() - int64(min(max(p.Value, 0), Urgent))
}

// subject identifies what a push is about: a newer push with the same subject replaces it. It
// is the asset of a schedule, else the event itself.
func (p Push) subject() []byte {
	if p.Kind == SchedulePush {
		return p.AssetID.Bytes()
	}
	return p.EventID.Bytes()
}

// to returns the endpoint that the push is sent to.
func (p Push) to() flex.EndpointName {
	if p.To != "" {
		return p.To
	}

	if p.Kind == DispatchPush {
		return flex.DispatchEndpoint
	}

	if p.Kind == InvitationPush {
		return flex.InvitationEndpoint
	}

	return flex.ScheduleEndpoint
}

const (
	outboxColumns = 11
	outboxChunk   = 500
)

// Enqueue has the pushes sent once the transaction has committed. A schedule replaces the
// asset's pending one if its generation is newer, and is dropped if it is not. While an
// older one is under way it waits until that attempt has ended.
func (tx *Tx) Enqueue(ctx context.Context, ps ...Push) error {
	now := tx.db.Now()
	args := make([]any, 0, outboxColumns*min(len(ps), outboxChunk))

	for len(ps) > 0 {
		chunk := newest(ps[:min(len(ps), outboxChunk)])
		ps = ps[min(len(ps), outboxChunk):]
		args = args[:0]

		for _, p := range chunk {
			var asset any
			if !p.AssetID.IsZero() {
				asset = p.AssetID.Bytes()
			}

			trace.Queued(ctx, p.EventID)
			args = append(
				args,
				p.subject(),
				tx.org.Bytes(),
				string(p.to()),
				string(p.Kind),
				asset,
				p.EventID.Bytes(),
				p.Generation,
				micros(now),
				micros(now),
				micros(p.ExpiresAt),
				p.turn(now),
			)
		}

		err := tx.bulk(ctx, outboxInsert, outboxConflict, outboxColumns, args)
		if err != nil {
			return err
		}
	}

	tx.Wake(WakePush)

	return nil
}

const (
	outboxInsert   = `INSERT INTO outbox (subject, org_id, endpoint, kind, asset_id, event_id, generation, queued_at, waiting_since, expires_at, turn_at)`
	outboxConflict = outboxReplace +
		`THEN outbox.turn_at ELSE excluded.turn_at END` + outboxOlder
	// A fleet's new schedules do not bring forward what waits for its turn or for another try:
	// see SpreadLate.
	fleetConflict = outboxReplace +
		`OR outbox.turn_at > excluded.queued_at THEN outbox.turn_at ELSE excluded.turn_at END` +
		outboxOlder

	outboxReplace = `ON CONFLICT (subject) DO UPDATE SET endpoint = excluded.endpoint, event_id = excluded.event_id,
			generation = excluded.generation, queued_at = excluded.queued_at, expires_at = excluded.expires_at, tries = 0,
			waiting_since = CASE WHEN outbox.turn_at IS NOT NULL AND outbox.expires_at > 0 AND outbox.generation > outbox.accepted
				THEN outbox.waiting_since ELSE excluded.waiting_since END,
			turn_at = CASE WHEN outbox.sending > 0 `
	outboxOlder = ` WHERE outbox.org_id = excluded.org_id AND outbox.generation < excluded.generation`
)

// enqueueSchedules is Enqueue for the schedules with ids from first to last, which are read
// where they are kept. One that replaces what waits for its turn waits as long.
func (tx *Tx) enqueueSchedules(
	ctx context.Context,
	first, last flex.EventID,
) error {
	now := tx.db.Now().UnixMicro()
	_, err := tx.exec(ctx, outboxInsert+`
		SELECT asset_id, org_id, 'schedule', 'schedule', asset_id, event_id, generation, CAST($4 AS BIGINT), CAST($4 AS BIGINT), to_at,
			CAST($4 AS BIGINT) - CASE WHEN value < 0 THEN 0 WHEN value > $5 THEN $5 ELSE value END
		FROM schedule WHERE org_id = $1 AND event_id >= $2 AND event_id <= $3 `+fleetConflict,
		tx.org.Bytes(), first.Bytes(), last.Bytes(), now, int64(Urgent))

	tx.Wake(WakePush)

	return err
}

// NewEventID makes the id of a push that announces no record.
func (tx *Tx) NewEventID() flex.EventID { return flex.EventID(tx.newID()) }

// newest leaves of several pushes of one subject the last one of the newest generation, as
// one statement may touch a row once only.
func newest(ps []Push) []Push {
	at := make(map[string]int, len(ps))
	out := ps[:0:0]

	for _, p := range ps {
		i, seen := at[string(p.subject())]
		if !seen {
			at[string(p.subject())] = len(out)
			out = append(out, p)
		} else if p.Generation >= out[i].Generation {
			out[i] = p
		}
	}

	return out
}

// Retract drops what is still to be sent for the assets' schedules, and what was sent is
// not sent again. An attempt that is under way may yet arrive.
func (tx *Tx) Retract(ctx context.Context, assets ...flex.AssetID) error {
	for len(assets) > 0 {
		chunk := assets[:min(len(assets), outboxChunk)]
		assets = assets[len(chunk):]
		ids, args := in([]any{tx.org.Bytes()}, chunk)

		// A row under way keeps its lease, so that a newer one waits for it.
		_, err := tx.exec(
			ctx,
			`UPDATE outbox SET expires_at = 0, turn_at = CASE WHEN sending > 0 THEN turn_at END
			WHERE org_id = $1 AND subject IN `+ids,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// keepName stores the external id of an asset that is about to be deleted, for the
// reports that its client must still get.
func (tx *Tx) keepName(ctx context.Context, asset flex.AssetID) error {
	_, err := tx.exec(
		ctx,
		`UPDATE outbox SET external_id = (SELECT external_id FROM asset WHERE org_id = $1 AND id = $2)
		WHERE org_id = $1 AND subject = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
	)

	return err
}

// in appends the ids to a statement's arguments and returns the list that stands for them.
// It fills the list up to a power of two, so that few different statements are prepared.
func in[Of any](args []any, ids []flex.ID[Of]) (string, []any) {
	n := 1
	for n < len(ids) {
		n *= 2
	}

	var b strings.Builder
	for i := range n {
		args = append(args, ids[min(i, len(ids)-1)].Bytes())
		b.WriteString(",$" + strconv.Itoa(len(args)))
	}

	return "(" + b.String()[1:] + ")", args
}

var (
	_ = law("a push of a schedule has its asset for its subject",
		`SELECT event_id AS what FROM outbox WHERE kind = 'schedule' AND (asset_id IS NULL OR asset_id <> subject)`)
	_ = law(
		"a push of an event has the event for its subject",
		`SELECT event_id AS what FROM outbox WHERE kind <> 'schedule' AND event_id <> subject`,
	)
	_ = law(
		"nothing newer was sent or accepted than was queued",
		`SELECT event_id AS what FROM outbox WHERE accepted > generation OR sending > generation`,
	)
	// What a halt set aside is held by haltHolder, which is below 0.
	_ = law("what is under way has a holder and a lease",
		`SELECT event_id AS what FROM outbox WHERE (sending > 0) <> (holder <> 0 AND holder <> -1) OR sending > 0 AND turn_at IS NULL`)
	_ = law(
		"the newest schedule of a car that is plugged in was queued",
		`SELECT s.event_id AS what FROM session s
		LEFT JOIN outbox o ON o.subject = s.asset_id
		WHERE s.plugged_out_at IS NULL AND s.event_id IS NOT NULL AND (o.subject IS NULL OR o.event_id <> s.event_id OR o.org_id <> s.org_id)`,
	)
)
