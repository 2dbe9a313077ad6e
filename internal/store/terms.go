package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// Terms returns every term of the organisation that was ever set, by name and then by day.
func (tx *Tx) Terms(ctx context.Context) ([]flex.Term, error) {
	scan := func(s scanner) (flex.Term, error) {
		var from string
		var t flex.Term
		if err := s.Scan(
			&t.Name,
			&from,
			&t.Value,
			instant{&t.SetAt},
			&t.SetBy,
		); err != nil ||
			from == "" {
			return t, err
		}

		var err error
		t.From, err = flex.ParseDay(from)
		return t, err
	}

	return rows(
		ctx,
		tx.unqueued(),
		scan,
		`SELECT name, from_day, value, set_at, set_by FROM term WHERE org_id = $1 ORDER BY name, from_day`,
		tx.org.Bytes(),
	)
}

// PutTerm stores a term from a day on, in the place of what was to hold from that day.
func (tx *Tx) PutTerm(ctx context.Context, t flex.Term) error {
	from := ""
	if t.From != (flex.Day{}) {
		from = t.From.String()
	}

	_, err := tx.exec(
		ctx,
		`INSERT INTO term (org_id, name, from_day, value, set_at, set_by) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (org_id, name, from_day) DO UPDATE SET value = excluded.value, set_at = excluded.set_at, set_by = excluded.set_by`,
		tx.org.Bytes(),
		t.Name,
		from,
		t.Value,
		micros(tx.now),
		t.SetBy,
	)

	return err
}

// DropTerm deletes every value that a term had or was to have.
func (tx *Tx) DropTerm(ctx context.Context, name string) error {
	_, err := tx.exec(
		ctx,
		`DELETE FROM term WHERE org_id = $1 AND name = $2`,
		tx.org.Bytes(),
		name,
	)

	return err
}

// LastSettled returns the last London day of which a flex event was settled, by a run of
// whatever kind, or a plug session that began on it was credited; zero if there is none.
func (tx *Tx) LastSettled(ctx context.Context) (flex.Day, error) {
	return tx.lastSettled(ctx, "")
}

// LastSettledAt is LastSettled of one site alone.
func (tx *Tx) LastSettledAt(
	ctx context.Context,
	site flex.SiteID,
) (flex.Day, error) {
	return tx.lastSettled(ctx, ` AND site_id = $2`, site.Bytes())
}

func (tx *Tx) lastSettled(
	ctx context.Context,
	where string,
	args ...any,
) (flex.Day, error) {
	args = append([]any{tx.org.Bytes()}, args...)
	var event, session time.Time

	err := tx.row(
		ctx,
		`SELECT MAX(e.from_at) FROM flex_event e WHERE e.org_id = $1`+where+`
		AND (e.version > 0 OR EXISTS (SELECT 1 FROM settlement s WHERE s.flex_event_id = e.id))`,
		args...,
	).Scan(
		instant{&event},
	)
	if err != nil {
		return flex.Day{}, err
	}

	err = tx.row(
		ctx,
		`SELECT MAX(from_at) FROM reckoning WHERE org_id = $1`+where+
			` AND posted > 0`,
		args...,
	).Scan(instant{&session})
	if err != nil {
		return flex.Day{}, err
	}

	if session.After(event) {
		event = session
	}

	if event.IsZero() {
		return flex.Day{}, nil
	}

	return flex.DayAt(event), nil
}
