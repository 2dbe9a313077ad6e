package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// readingsWhere is the WHERE clause of a query of readings.
type readingsWhere struct {
	where
	knownAt any  // the readings are asked for as they were known then; nil for now
	history bool // some of them were corrected
}

// where begins the condition with the organisation's own assets, and those that it had.
func (q ReadingQuery) where(org flex.OrgID) *readingsWhere {
	w := &readingsWhere{}
	if !q.KnownAt.IsZero() {
		w.knownAt, w.history = q.KnownAt.UnixMicro(), q.history
	}

	if q.dense {
		fmt.Fprintf(
			&w.text,
			"r.asset_id >= %s AND r.asset_id <= %s",
			w.param(q.Assets[0].Bytes()),
			w.param(q.Assets[len(q.Assets)-1].Bytes()),
		)

		return w
	}

	ids := make([]any, len(q.Assets))
	for i, id := range q.Assets {
		ids[i] = id.Bytes()
	}

	w.text.WriteString("r.asset_id IN (SELECT id FROM asset WHERE org_id = " +
		w.param(org.Bytes()))
	w.inValues("id", ids)
	w.text.WriteString(" UNION SELECT id FROM former_asset WHERE org_id = " +
		w.param(org.Bytes()))
	w.inValues("id", ids)
	w.text.WriteByte(')')

	return w
}

// finder reads what conditions let through.
type finder struct {
	tx     *Tx
	query  ReadingQuery
	wanted map[flex.AssetID]bool // nil: all
	found  []flex.Reading
}

// finder is a finder for a query. A dense one asks for a range of assets, and what lies
// between those that are wanted is passed over.
func (tx *Tx) finder(q ReadingQuery) finder {
	f := finder{tx: tx, query: q}
	if q.dense {
		f.wanted = make(map[flex.AssetID]bool, len(q.Assets))
		for _, id := range q.Assets {
			f.wanted[id] = true
		}
	}

	return f
}

// atEdges collects the readings at the edges of half-hours, some hundred instants at a time.
func (f *finder) atEdges(ctx context.Context, labels []any, marks bool) error {
	if len(labels) == 0 {
		return nil
	}

	for chunk := range slices.Chunk(f.query.instants(marks), instantsChunk) {
		w := f.query.where(f.tx.org)
		w.inValues("r.at", chunk)
		w.inValues("r.label", labels)

		if err := f.collect(ctx, w); err != nil {
			return err
		}
	}

	return nil
}

// atAnyTime collects the readings that meet the days, each once.
func (f *finder) atAnyTime(ctx context.Context, labels []any) error {
	if len(labels) == 0 {
		return nil
	}

	var before flex.Span // where was looked last
	for _, d := range f.query.Days {
		w := f.query.where(f.tx.org)
		w.inValues("r.label", labels)
		span := f.query.span(d)
		w.meets(span, before.To)

		if err := f.collect(ctx, w); err != nil {
			return err
		}

		before = span
	}

	return nil
}

// query is the statement that reads what the condition lets through.
func (w *readingsWhere) query() string {
	const columns = `SELECT r.asset_id, r.at, r.label, r.seconds, r.value FROM `
	where := w.text.String()
	query := columns + `reading r WHERE ` + where
	if w.knownAt == nil {
		return query
	}

	at := w.param(w.knownAt)
	query += " AND r.known_at <= " + at
	if w.history {
		query += " UNION ALL " + columns + `reading_history r WHERE ` + where +
			" AND r.known_at <= " + at + " AND r.replaced_at > " + at
	}

	return query
}

// collect runs the condition over what is known now, or over what was known then.
func (f *finder) collect(ctx context.Context, w *readingsWhere) error {
	query := w.query()
	rs, err := f.tx.query(ctx, query, w.args...)
	if err != nil {
		return err
	}

	defer rs.Close()
	var r flex.Reading
	var at, seconds, label, value int64
	row := []any{&r.AssetID, &at, &label, &seconds, &value}

	for rs.Next() {
		if err := rs.Scan(row...); err != nil {
			return err
		}
		if f.wanted != nil && !f.wanted[r.AssetID] {
			continue
		}

		r.Label = labels[int16(label)]
		r.From = time.UnixMicro(at).UTC()
		r.Value = flex.Micro(value)
		r.To = r.From.Add(time.Duration(seconds) * time.Second)
		if r.Label.Register() {
			r.From, r.To = r.From.Add(-time.Duration(seconds)*time.Second), r.From
		}

		f.found = append(f.found, r)
	}

	return rs.Err()
}
