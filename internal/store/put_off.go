package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

// PutOffKind is a kind of items that a background job may put off.
type PutOffKind string

// The kinds of items.
const (
	// the settlement of a session
	PutOffSession PutOffKind = "session"
	// the search for flex events of a session, of a pause, and of an asset's part in a dispatch
	PutOffSessionEvents PutOffKind = "session_events"
	PutOffPause         PutOffKind = "pause"
	PutOffDispatch      PutOffKind = "dispatch"
	// the settlement of a flex event
	PutOffFlexEvent PutOffKind = "flex_event"
	// the look at a dispatch's assets after its end
	PutOffRelease PutOffKind = "release"
)

// PutOffItem is an item that failed and is tried again.
type PutOffItem struct {
	Kind  PutOffKind
	ID    [16]byte     // of a session, a pause, a flex event or a dispatch
	Part  flex.AssetID // of a dispatch; else zero
	Until time.Time    // by the organisation's clock
	Error string       // of the latest try
	Tries int
}

// putOffRule is how the items of a kind are found: their table, the columns of their ids, and the mark that says when they are due.
type putOffRule struct {
	table string
	as    string // the table's alias
	id    string
	part  string // empty if an item has none
	mark  string
	due   string // on which an item is due at $2
	also  string // what else is set
	gone  string // that an item is done although its mark stays; empty if it never does
}

// waitsForNone is set as a missing reading that is there would have a session or an event due before its time.
const waitsForNone = `, waits_at = NULL`

var putOffRules = map[PutOffKind]putOffRule{
	PutOffSession: {
		table: `reckoning`, as: `r`, id: `session_id`,
		mark: `look_at`, due: sessionSettlementDue, also: waitsForNone,
	},
	PutOffSessionEvents: {
		table: `reckoning`, as: `r`, id: `session_id`,
		mark: `detect_at`, due: sessionOver,
	},
	PutOffPause: {
		table: `pause`, as: `p`, id: `id`,
		// A release before migration 655 looks for the event of a pause and leaves its mark.
		mark: `detect_at`, due: pauseOver, gone: `p.detected`,
	},
	PutOffDispatch: {
		table: `dispatch_asset`, as: `p`, id: `event_id`, part: `asset_id`,
		mark: `detect_at`, due: dispatchOver,
	},
	PutOffFlexEvent: {
		table: `flex_event`, as: `e`, id: `id`,
		mark: `look_at`, due: flexEventDue, also: waitsForNone,
	},
	PutOffRelease: {
		table: `dispatch_asset`, as: `p`, id: `event_id`,
		mark: `release_at`, due: `p.release_at <= $2`,
	},
}

// is is the condition that a record is of an item whose ids are given as SQL.
func (r putOffRule) is(org, id, part string) string {
	where := r.as + `.org_id = ` + org + ` AND ` + r.as + `.` + r.id + ` = ` + id
	if r.part != "" {
		where += ` AND ` + r.as + `.` + r.part + ` = ` + part
	}

	return where
}

// PutOff has an item that failed looked at again at an instant, and not before. It reports whether the item was still due: another
// process may have done it meanwhile.
func (tx *Tx) PutOff(
	ctx context.Context,
	item PutOffItem,
) (bool, error) {
	rule := putOffRules[item.Kind]
	id := flex.EventID(item.ID)
	args := []any{
		tx.org.Bytes(),
		micros(tx.now),
		micros(item.Until),
		id.Bytes(),
	}
	if rule.part != "" {
		args = append(args, item.Part.Bytes())
	}

	n, err := tx.exec(
		ctx,
		`UPDATE `+rule.table+` AS `+rule.as+` SET `+rule.mark+` = $3`+rule.also+`
		WHERE `+rule.is("$1", "$4", "$5")+` AND `+rule.due,
		args...,
	)
	if err != nil || n == 0 {
		return false, err
	}

	row := []value{
		{"org_id", tx.org.Bytes()},
		{"kind", string(item.Kind)},
		{"id", id.Bytes()},
		{"part", item.Part.Bytes()},
		{"until_at", micros(item.Until)},
		{"error", errorText(item.Error)},
		{"tries", 1},
	}

	_, err = tx.upsert(ctx, "put_off", row, rewrite{
		key:  []string{"org_id", "kind", "id", "part"},
		keep: []string{"tries"},
		also: `tries = put_off.tries + 1`,
	})

	return true, err
}

// putOffBefore is how often an item was put off already without having been done since.
func (tx *Tx) putOffBefore(
	ctx context.Context,
	item PutOffItem,
) (int, error) {
	var tries int
	err := tx.row(
		ctx,
		`SELECT COALESCE(max(tries), 0) FROM put_off WHERE org_id = $1 AND kind = $2 AND id = $3 AND part = $4`,
		tx.org.Bytes(),
		string(item.Kind),
		flex.EventID(item.ID).Bytes(),
		item.Part.Bytes(),
	).Scan(&tries)
	if err != nil {
		return 0, fmt.Errorf("read how often an item was put off: %w", err)
	}

	return tries, nil
}

// errorText is what is stored of an error's text.
func errorText(text string) string {
	return flex.Keepable(strings.ToValidUTF8(text[:min(len(text), jobErrorMax)], ""))
}

// AnyPutOff reports whether items of any of the kinds were put off.
func (tx *Tx) AnyPutOff(
	ctx context.Context,
	kinds ...PutOffKind,
) (any bool, err error) {
	for _, kind := range kinds {
		err = tx.row(
			ctx,
			`SELECT EXISTS (SELECT 1 FROM put_off WHERE org_id = $1 AND kind = $2)`,
			tx.org.Bytes(),
			string(kind),
		).Scan(&any)
		if err != nil || any {
			return any, err
		}
	}

	return false, nil
}

// LeftPutOff returns up to limit items of a kind that are put off, those first that are due first, and how many there are. What was
// done since, or is gone, it forgets.
func (tx *Tx) LeftPutOff(
	ctx context.Context,
	kind PutOffKind,
	limit int,
) ([]PutOffItem, int, error) {
	if err := tx.forgetDone(ctx, kind); err != nil {
		return nil, 0, fmt.Errorf("forget what is put off no longer: %w", err)
	}

	var total int
	scan := func(s scanner) (PutOffItem, error) {
		var id flex.EventID
		i := PutOffItem{Kind: kind}
		err := s.Scan(
			&id,
			&i.Part,
			instant{&i.Until},
			&i.Error,
			&i.Tries,
			&total,
		)
		i.ID = id

		return i, err
	}

	items, err := rows(
		ctx,
		tx.conn,
		scan,
		`SELECT id, part, until_at, error, tries, count(*) OVER () FROM put_off
		WHERE org_id = $1 AND kind = $2 ORDER BY until_at, id, part LIMIT `+strconv.Itoa(limit),
		tx.org.Bytes(),
		string(kind),
	)

	return items, total, err
}

// forgetDone removes the rows of items that are put off no longer. Another process may put one of these off again meanwhile: its
// row, which is then of another time, stays. A single statement would remove it on PostgreSQL, where it waits for that row and then reads
// the item as it was before.
func (tx *Tx) forgetDone(ctx context.Context, kind PutOffKind) error {
	rule := putOffRules[kind]
	same := rule.is("o.org_id", "o.id", "o.part") + ` AND ` + rule.as + `.` + rule.mark + ` = o.until_at`
	if rule.gone != "" {
		same += ` AND NOT ` + rule.gone
	}

	scan := func(s scanner) (PutOffItem, error) {
		var id flex.EventID
		var i PutOffItem
		err := s.Scan(&id, &i.Part, instant{&i.Until})
		i.ID = id

		return i, err
	}

	done, err := rows(
		ctx,
		tx.conn,
		scan,
		`SELECT o.id, o.part, o.until_at FROM put_off o WHERE o.org_id = $1 AND o.kind = $2
			AND NOT EXISTS (SELECT 1 FROM `+rule.table+` `+rule.as+` WHERE `+same+`) ORDER BY o.id, o.part`,
		tx.org.Bytes(),
		string(kind),
	)
	if err != nil {
		return err
	}

	for _, i := range done {
		err := tx.later(
			ctx,
			`DELETE FROM put_off WHERE org_id = $1 AND kind = $2 AND id = $3 AND part = $4 AND until_at = $5`,
			tx.org.Bytes(),
			string(kind),
			flex.EventID(i.ID).Bytes(),
			i.Part.Bytes(),
			micros(i.Until),
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// anyPutOffOf is that the organisation o has put off items of any of the kinds.
func anyPutOffOf(kinds ...PutOffKind) string {
	texts := make([]string, len(kinds))
	for i, kind := range kinds {
		texts[i] = `'` + string(kind) + `'`
	}

	return `EXISTS (SELECT 1 FROM put_off x WHERE x.org_id = o.id AND x.kind IN (` + strings.Join(texts, `, `) + `))`
}

var _ = law(
	"what is put off says until when and why, and was tried",
	`SELECT id AS what FROM put_off WHERE until_at <= 0 OR error = '' OR tries < 1`,
)
