package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// dispatchAnswer is what a client answered to a dispatch, and what it reported of one of the dispatch's assets.
type dispatchAnswer struct {
	final    bool          // nothing of it is sent any more
	accepted bool          // the message
	after    sql.NullInt64 // from when it was queued until it was first accepted, in microseconds
	rejected bool          // of the asset, after the message was accepted
	failed   bool          // the same
	executed time.Time     // when that was reported, as after a failure; zero if it was not
}

// takenFirst is when one of an event's attempts before the latest was accepted, as an instant; null if none was. An event that was
// accepted may be sent again: by an operator, or after its end to an asset that goes on with it.
const takenFirst = `(SELECT min(t.at + t.took) FROM attempt t WHERE t.org_id = v.org_id AND t.event_id = v.event_id AND t.status BETWEEN 200 AND 299)`

// answerColumns are the columns of a dispatchAnswer, of a part p that answerJoins follows.
const answerColumns = `(CASE WHEN o.subject IS NULL THEN COALESCE(v.state IN ('rejected', 'expired'), FALSE) ELSE o.turn_at IS NULL END),
	COALESCE(o.accepted > 0, FALSE) OR COALESCE(v.state = 'accepted', FALSE),
	COALESCE(` + takenFirst + `, CASE WHEN v.state = 'accepted' OR v.status BETWEEN 200 AND 299 THEN v.at + v.took END) - v.queued_at,
	b.status IS NOT NULL, f.status IS NOT NULL, e.received_at`

const answerJoins = ` LEFT JOIN outbox o ON o.org_id = p.org_id AND o.subject = p.event_id AND o.kind = 'dispatch'
	LEFT JOIN delivery v ON v.org_id = p.org_id AND v.event_id = p.event_id
	LEFT JOIN callback b ON b.org_id = p.org_id AND b.event_id = p.event_id AND b.asset_id = p.asset_id AND b.status = 'REJECTED'
	LEFT JOIN callback f ON f.org_id = p.org_id AND f.event_id = p.event_id AND f.asset_id = p.asset_id AND f.status = 'FAILED'
	LEFT JOIN callback e ON e.org_id = p.org_id AND e.event_id = p.event_id AND e.asset_id = p.asset_id AND e.status = 'EXECUTED' `

// dest are the places that answerColumns are scanned into.
func (a *dispatchAnswer) dest() []any {
	return []any{
		&a.final,
		&a.accepted,
		&a.after,
		&a.rejected,
		&a.failed,
		instant{&a.executed},
	}
}

// lost reports whether the client reported that the asset does not follow the dispatch, and not since that it does.
func (a *dispatchAnswer) lost() bool {
	return a.rejected || a.failed && a.executed.IsZero()
}

// applies reports whether the asset is expected to follow the dispatch: its message was accepted, or is still to be, and the asset was
// not reported as one that does not follow it. One that was refused for good, taken back or over before it was accepted does not
// apply. This is the one place that decides that.
func (a *dispatchAnswer) applies() bool {
	return !a.refused() && !a.lost()
}

// refused reports whether nothing of the dispatch is sent any more, and its message was never accepted.
func (a *dispatchAnswer) refused() bool {
	accepted := a.accepted || a.after.Valid

	return a.final && !accepted
}

// followed reports whether the client accepted the dispatch and the asset follows it.
func (a *dispatchAnswer) followed() bool { return a.accepted && a.applies() }

// takenAt is when the asset began to follow a dispatch that was issued at an instant: when its message was first accepted, or after a failure
// when it was reported as executed; zero if it does not follow.
func (a *dispatchAnswer) takenAt(issued time.Time) time.Time {
	if !a.after.Valid || a.lost() {
		return time.Time{}
	}

	if a.failed {
		return a.executed
	}

	after := time.Duration(max(a.after.Int64, 0)) * time.Microsecond

	return issued.Add(after)
}

// MarkDispatched has what is at the sites of dispatches' assets planned again, as it was found that they do not follow the dispatches, or
// that they do after all: at the site of one asset, or where that is zero of all of them. Events that are no dispatch, or are over,
// change nothing.
func (tx *Tx) MarkDispatched(
	ctx context.Context,
	asset flex.AssetID,
	events ...flex.EventID,
) error {
	var beside []flex.AssetID
	for chunk := range slices.Chunk(events, outboxChunk) {
		found, err := tx.besideDispatched(ctx, asset, chunk)
		if err != nil {
			return err
		}
		beside = append(beside, found...)
	}

	// All at once: rows are locked in the same order whatever the events are.
	if err := tx.MarkDue(ctx, beside...); err != nil {
		return fmt.Errorf("plan the cars beside a dispatch again: %w", err)
	}

	if err := tx.markAgain(ctx, beside); err != nil {
		return fmt.Errorf("plan the batteries of a dispatch again: %w", err)
	}

	return nil
}

// besideDispatched returns what is at the sites of dispatches' assets, or of one of these, as far as the dispatches are not over.
func (tx *Tx) besideDispatched(
	ctx context.Context,
	asset flex.AssetID,
	events []flex.EventID,
) ([]flex.AssetID, error) {
	list, args := in([]any{tx.org.Bytes(), micros(tx.now)}, events)
	where := `p.org_id = $1 AND p.over_at > $2 AND p.event_id IN ` + list
	if !asset.IsZero() {
		args = append(args, asset.Bytes())
		where += fmt.Sprintf(` AND p.asset_id = $%d`, len(args))
	}

	return rows(
		ctx,
		tx.conn,
		scalar[flex.AssetID],
		`SELECT DISTINCT n.id FROM dispatch_asset p JOIN asset a ON a.id = p.asset_id JOIN asset n ON n.site_id = a.site_id WHERE `+where,
		args...,
	)
}

// markAgain has the batteries among some assets planned again at once.
func (tx *Tx) markAgain(ctx context.Context, assets []flex.AssetID) error {
	assets = inIDOrder(assets)
	for len(assets) > 0 {
		chunk := assets[:min(len(assets), outboxChunk)]
		assets = assets[len(chunk):]
		list, args := in([]any{tx.org.Bytes()}, chunk)

		n, err := tx.exec(
			ctx,
			`UPDATE battery_plan SET again = TRUE WHERE org_id = $1 AND asset_id IN `+list,
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
