package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

// ReadingQuery says which readings are wanted.
type ReadingQuery struct {
	Assets []flex.AssetID // none: no readings
	Labels []flex.Label
	Days   []flex.Day // London days; half-hours that touch them are looked for
	// Slots, if set, asks on each day only for the settlement periods First to Last.
	First, Last int
	// KnownAt, if set, asks for the readings as they were known at that instant.
	KnownAt time.Time
	history bool // some of them were corrected
}

// corrected reports whether any reading of the assets was ever corrected.
func (tx *Tx) corrected(ctx context.Context, assets []flex.AssetID) (yes bool, err error) {
	for chunk := range slices.Chunk(assets, ownersChunk) {
		list, args := in(nil, chunk)
		err = tx.row(ctx, `SELECT EXISTS (SELECT 1 FROM reading_history WHERE asset_id IN `+list+`)`, args...).Scan(&yes)
		if err != nil || yes {
			return yes, err
		}
	}
	return false, nil
}

// instantsChunk is the number of instants asked for in one statement.
const instantsChunk = 512

// Readings returns what is known of the query, in no certain order: energies of half-hours
// and registers that were read at the edges of half-hours, and, for every label that is
// neither, all readings that begin in the days.
func (tx *Tx) Readings(ctx context.Context, q ReadingQuery) ([]flex.Reading, error) {
	if len(q.Assets) == 0 || len(q.Labels) == 0 {
		return nil, nil
	}
	if !q.KnownAt.IsZero() {
		var err error
		if q.history, err = tx.corrected(ctx, q.Assets); err != nil {
			return nil, err
		}
	}
	var edges, odd []any
	for _, l := range q.Labels {
		if n := labelNumbers[l]; n < 10 || register(l) {
			edges = append(edges, n)
		} else {
			odd = append(odd, n)
		}
	}
	var found []flex.Reading
	instants := q.instants()
	for len(edges) > 0 && len(instants) > 0 {
		chunk := instants[:min(len(instants), instantsChunk)]
		instants = instants[len(chunk):]
		w := q.where(tx.org)
		w.in("r.label", edges)
		w.in("r.at", chunk)
		if err := tx.collect(ctx, w, &found); err != nil {
			return nil, err
		}
	}
	for _, d := range q.Days {
		if len(odd) == 0 {
			break
		}
		w := q.where(tx.org)
		w.in("r.label", odd)
		span := q.span(d)
		w.text.WriteString(" AND r.label >= 10")
		w.in("r.at / 86400000000", []any{span.From.Unix() / 86400, (span.To.Unix() - 1) / 86400})
		fmt.Fprintf(&w.text, " AND r.at >= %s AND r.at < %s", w.param(span.From.UnixMicro()), w.param(span.To.UnixMicro()))
		if err := tx.collect(ctx, w, &found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// span returns the part of the day that the query asks for.
func (q ReadingQuery) span(d flex.Day) flex.Span {
	if q.First == 0 {
		return d.Span()
	}
	return flex.Span{From: d.Period(q.First).Start(), To: d.Period(min(q.Last, d.Periods())).End()}
}

// instants lists the edges of the half-hours that the query asks for.
func (q ReadingQuery) instants() (all []any) {
	last := int64(-1)
	for _, d := range q.Days {
		span := q.span(d)
		for at := span.From; !at.After(span.To); at = at.Add(flex.HalfHour) {
			if us := at.UnixMicro(); us > last {
				all = append(all, us)
				last = us
			}
		}
	}
	return all
}

// condition is a WHERE clause in the making.
type condition struct {
	text    strings.Builder
	args    []any
	knownAt any
	history bool
}

func (w *condition) param(v any) string {
	w.args = append(w.args, v)
	return "$" + strconv.Itoa(len(w.args))
}

// in adds a condition on a column's values. Lists are filled up to a power of two, so that
// few different statements are prepared.
func (w *condition) in(column string, values []any) {
	n := 1
	for n < len(values) {
		n *= 2
	}
	w.text.WriteString(" AND " + column + " IN (")
	for i := range n {
		if i > 0 {
			w.text.WriteByte(',')
		}
		w.text.WriteString(w.param(values[min(i, len(values)-1)]))
	}
	w.text.WriteByte(')')
}

// where begins the condition with the organisation's own assets, and those that it had and
// whose sessions may still be to be reckoned up.
func (q ReadingQuery) where(org flex.OrgID) *condition {
	w := &condition{}
	ids := make([]any, len(q.Assets))
	for i, id := range q.Assets {
		ids[i] = id.Bytes()
	}
	w.text.WriteString("r.asset_id IN (SELECT id FROM asset WHERE org_id = " + w.param(org.Bytes()))
	w.in("id", ids)
	w.text.WriteString(" UNION SELECT asset_id FROM reckoning WHERE org_id = " + w.param(org.Bytes()))
	w.in("asset_id", ids)
	w.text.WriteByte(')')
	if !q.KnownAt.IsZero() {
		w.knownAt, w.history = q.KnownAt.UnixMicro(), q.history
	}
	return w
}

// collect runs the condition over what is known now, or over what was known then.
func (tx *Tx) collect(ctx context.Context, w *condition, to *[]flex.Reading) error {
	const columns = `SELECT r.asset_id, r.at, r.label, r.seconds, r.value FROM `
	where := w.text.String()
	query := columns + `reading r WHERE ` + where
	if w.knownAt != nil {
		at := w.param(w.knownAt)
		query += " AND r.known_at <= " + at
		if w.history {
			query += " UNION ALL " + columns + `reading_history r WHERE ` + where + " AND r.known_at <= " + at + " AND r.replaced_at > " + at
		}
	}
	rs, err := tx.run.QueryContext(ctx, query, w.args...)
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		var r flex.Reading
		var at, seconds int64
		var label int16
		if err := rs.Scan(&r.AssetID, &at, &label, &seconds, &r.Value); err != nil {
			return err
		}
		r.Label, r.From = labels[label], time.UnixMicro(at).UTC()
		r.To = r.From.Add(time.Duration(seconds) * time.Second)
		if register(r.Label) {
			r.From, r.To = r.From.Add(-time.Duration(seconds)*time.Second), r.From
		}
		*to = append(*to, r)
	}
	return rs.Err()
}

// MarksAround returns the register's marks next before and next after an instant, as far
// as they lie within so many days of it.
func (tx *Tx) MarksAround(ctx context.Context, k Register, at time.Time, days int) (before, after *Mark, err error) {
	if before, err = tx.markBeside(ctx, k, at, days, -1); err != nil {
		return nil, nil, err
	}
	after, err = tx.markBeside(ctx, k, at, days, 1)
	return before, after, err
}

// markBeside goes from day to day, a few at a time, and then a month at a time.
func (tx *Tx) markBeside(ctx context.Context, k Register, at time.Time, days int, way int64) (*Mark, error) {
	order, side := "r.at DESC", "r.at < "
	if way > 0 {
		order, side = "r.at", "r.at > "
	}
	for first, chunk := 0, 2; first <= days; first, chunk = first+chunk, 32 {
		w := ReadingQuery{Assets: []flex.AssetID{k.AssetID}}.where(tx.org)
		var near []any
		for i := first; i < first+chunk; i++ {
			near = append(near, at.Unix()/86400+way*int64(i))
		}
		w.in("r.at / 86400000000", near)
		fmt.Fprintf(&w.text, " AND r.label = %s AND r.label >= 10 AND %s%s", w.param(labelNumbers[k.Label]), side, w.param(at.UnixMicro()))
		mark := func(s scanner) (m Mark, err error) { return m, s.Scan(instant{&m.At}, &m.Value) }
		found, err := rows(ctx, tx.conn, mark, `SELECT r.at, r.value FROM reading r WHERE `+w.text.String()+` ORDER BY `+order+` LIMIT 1`, w.args...)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return &found[0], nil
		}
	}
	return nil, nil
}

// DropReadings forgets up to limit readings from before an instant, and of their histories
// as many, and returns how many it forgot.
func (all *All) DropReadings(ctx context.Context, before time.Time, limit int) (dropped int64, err error) {
	dropped, err = all.exec(ctx, `DELETE FROM reading WHERE (at, asset_id, label) IN
		(SELECT at, asset_id, label FROM reading WHERE at < $1 ORDER BY at LIMIT $2)`, before.UnixMicro(), limit)
	if err != nil {
		return 0, err
	}
	_, err = all.exec(ctx, `DELETE FROM reading_history WHERE (asset_id, at, label, replaced_at) IN
		(SELECT asset_id, at, label, replaced_at FROM reading_history WHERE at < $1 LIMIT $2)`, before.UnixMicro(), limit)
	return dropped, err
}

var (
	_ = law("a half-hour's energy begins and ends with it", `SELECT asset_id AS what FROM reading
		WHERE label = 1 AND (at % 1800000000 <> 0 OR seconds <> 1800)`)
	_ = law("a register never falls", `SELECT asset_id AS what FROM (
		SELECT asset_id, value, LAG(value) OVER (PARTITION BY asset_id, label ORDER BY at) AS earlier
		FROM reading WHERE label IN (12, 13, 14)) AS marks WHERE value < earlier`)
	_ = law("a corrected reading was known before", `SELECT asset_id AS what FROM reading_history WHERE known_at >= replaced_at`)
)
