package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// ReadingQuery selects readings.
type ReadingQuery struct {
	Assets []flex.AssetID // none: no readings
	Labels []flex.Label
	Days   []flex.Day // London days; half-hours that touch them are looked for
	// First and Last, if set, restrict each day to the settlement periods from First to Last.
	First int
	Last  int
	// Within, if set, restricts each day to the half-hours in the span.
	Within flex.Span
	// KnownAt, if set, selects the readings as they were known at that instant.
	KnownAt time.Time
	history bool // some of them were corrected
	dense   bool // few other assets lie between the first and the last of them
}

// corrected reports whether any reading of the assets was ever corrected.
func (tx *Tx) corrected(
	ctx context.Context,
	assets []flex.AssetID,
) (yes bool, err error) {
	for chunk := range slices.Chunk(assets, ownersChunk) {
		list, args := in(nil, chunk)
		err = tx.row(
			ctx,
			`SELECT EXISTS (SELECT 1 FROM reading_history WHERE asset_id IN `+
				list+`)`,
			args...,
		).Scan(&yes)
		if err != nil || yes {
			return yes, err
		}
	}

	return false, nil
}

// instantsChunk is the number of instants asked for in one statement.
const instantsChunk = 512

// Readings returns the readings that the query selects, in no particular order: energies of
// half-hours, registers read at the edges of half-hours and, for every other label, all
// readings that overlap the days.
func (tx *Tx) Readings(
	ctx context.Context,
	q ReadingQuery,
) ([]flex.Reading, error) {
	if len(q.Assets) == 0 || len(q.Labels) == 0 {
		return nil, nil
	}

	if !q.KnownAt.IsZero() {
		var err error
		q.history, err = tx.corrected(ctx, q.Assets)
		if err != nil {
			return nil, err
		}
	}

	q.Days = slices.Clone(q.Days)
	slices.SortFunc(q.Days, func(a, b flex.Day) int {
		return a.Start().Compare(b.Start())
	})

	q.Days = slices.Compact(q.Days)

	if err := tx.planAssetScan(ctx, &q); err != nil || len(q.Assets) == 0 {
		return nil, err
	}

	f := tx.finder(q)
	edges, odd := q.labels()
	marks := q.registers()
	if err := f.atEdges(ctx, edges, marks); err != nil {
		return nil, err
	}
	if err := f.atAnyTime(ctx, odd); err != nil {
		return nil, err
	}

	if marks {
		return f.found, tx.markRestarted(ctx, &q, f.found)
	}

	return f.found, nil
}

// registers reports whether any of the labels is a register.
func (q ReadingQuery) registers() bool {
	return slices.ContainsFunc(q.Labels, flex.Label.Register)
}

// labels returns the numbers of the labels that are read at the edges of half-hours, and of
// those that are read at any time.
func (q ReadingQuery) labels() (edges, odd []any) {
	for _, l := range q.Labels {
		if n := labelNumbers[l]; n < 10 || l.Register() {
			edges = append(edges, n)
		} else {
			odd = append(odd, n)
		}
	}

	return edges, odd
}

// markRestarted sets where registers restarted, as it was known.
func (tx *Tx) markRestarted(
	ctx context.Context,
	q *ReadingQuery,
	rs []flex.Reading,
) error {
	if !slices.ContainsFunc(rs, func(r flex.Reading) bool {
		return r.Label.Register()
	}) {
		return nil
	}

	resets, err := tx.resetsKnown(ctx, q.Assets, q.KnownAt)
	if err != nil || len(resets) == 0 {
		return err
	}

	for i := range rs {
		r := &rs[i]
		before := r.To.Add(-flex.HalfHour)

		for _, at := range resets[Register{
			AssetID: r.AssetID,
			Label:   r.Label,
		}] {
			r.Restarted = r.Restarted || at.After(before) && !at.After(r.To)
		}
	}

	return nil
}

// meets adds the condition that a reading at any time overlaps a span, and began no earlier
// than the instant after.
func (w *readingsWhere) meets(span flex.Span, after time.Time) {
	reach := span.From.Add(-readingMax)
	if reach.Before(after) {
		reach = after
	}

	var days []any
	for day := reach.Unix() / 86400; day <= (span.To.Unix()-1)/86400; day++ {
		days = append(days, day)
	}

	w.text.WriteString(" AND r.label >= 10")
	w.inValues("r.at / 86400000000", days)
	from := w.param(span.From.UnixMicro())
	fmt.Fprintf(
		&w.text,
		" AND r.at >= %s AND r.at < %s AND (r.at >= %s OR r.at + 1000000 * CAST(r.seconds AS BIGINT) > %s)",
		w.param(reach.UnixMicro()),
		w.param(span.To.UnixMicro()),
		from,
		from,
	)
}

// readingMax is the longest time that one reading spans.
const readingMax = 24 * time.Hour

// denseMax is how many assets there may be between the first and the last of a query's assets,
// for each of them, so that the whole range is read at once.
const denseMax = 2

// planAssetScan decides how the readings of the query's assets are found. If the assets are
// most of those between the first and the last, their range is read at once, in the order of
// the index, and the query is restricted to assets of the organisation; else each is searched
// by itself.
func (tx *Tx) planAssetScan(ctx context.Context, q *ReadingQuery) error {
	if len(q.Assets) < 4 || len(q.Assets) > ownersChunk {
		return nil
	}

	q.Assets = slices.Clone(q.Assets)
	slices.SortFunc(q.Assets, compareAssets)
	q.Assets = slices.Compact(q.Assets)
	first, last := q.Assets[0], q.Assets[len(q.Assets)-1]
	most := denseMax * len(q.Assets)
	var between int
	err := tx.row(
		ctx,
		`SELECT count(*) FROM (SELECT 1 AS one FROM asset WHERE id >= $1 AND id <= $2 LIMIT $3) AS a`,
		first.Bytes(),
		last.Bytes(),
		most+1,
	).Scan(&between)

	if err != nil || between > most {
		return err
	}

	q.dense = true
	q.Assets, err = tx.everOwned(ctx, q.Assets)
	if err != nil {
		return err
	}

	slices.SortFunc(q.Assets, compareAssets)

	return nil
}

func compareAssets(a, b flex.AssetID) int { return bytes.Compare(a[:], b[:]) }

// everOwned returns those of the assets that belong to the organisation, or did before they
// were deleted.
func (tx *Tx) everOwned(
	ctx context.Context,
	assets []flex.AssetID,
) ([]flex.AssetID, error) {
	list, args := in([]any{tx.org.Bytes()}, assets)
	owned, err := rows(
		ctx,
		tx.conn,
		scalar[flex.AssetID],
		`SELECT id FROM asset WHERE org_id = $1 AND id IN `+list,
		args...,
	)
	if err != nil || len(owned) == len(assets) {
		return owned, err
	}

	gone, err := rows(
		ctx,
		tx.conn,
		scalar[flex.AssetID],
		`SELECT id FROM former_asset WHERE org_id = $1 AND id IN `+list,
		args...,
	)

	return append(owned, gone...), err
}

// span returns the part of the day that the query asks for.
func (q ReadingQuery) span(d flex.Day) flex.Span {
	if !q.Within.Empty() {
		return d.Span().Meet(q.Within)
	}

	if q.First == 0 {
		return d.Span()
	}

	return flex.Span{
		From: d.Period(q.First).Start(),
		To:   d.Period(min(q.Last, d.Periods())).End(),
	}
}

// instants returns the starts of the half-hours that the query asks for, in microseconds; with
// marks, for registers, their ends too.
func (q ReadingQuery) instants(marks bool) []any {
	last := int64(-1)

	var all []any
	for _, d := range q.Days {
		span := q.span(d)
		end := span.To.UnixMicro()

		if !marks {
			end--
		}

		for us := span.From.UnixMicro(); us <= end; us += halfHour {
			if us > last {
				all = append(all, us)
				last = us
			}
		}
	}

	return all
}

// halfHour is the length of a half-hour in microseconds.
const halfHour = int64(flex.HalfHour / time.Microsecond)

// MarksAround returns the register's last mark before an instant and its first one after it,
// each nil if it is more than the number of days away.
func (tx *Tx) MarksAround(
	ctx context.Context,
	k Register,
	at time.Time,
	days int,
) (before, after *Mark, err error) {
	before, err = tx.nextMark(ctx, k, at, days, -1)
	if err != nil {
		return nil, nil, err
	}
	after, err = tx.nextMark(ctx, k, at, days, 1)

	return before, after, err
}

// onDays adds a condition on the days since 1970, which follow each other forward or back.
func (w *readingsWhere) onDays(days []any) {
	w.inValues("r.at / 86400000000", days)
	from, to := days[0].(int64), days[len(days)-1].(int64)
	fmt.Fprintf(
		&w.text,
		" AND r.at >= %s AND r.at < %s",
		w.param(min(from, to)*86400e6),
		w.param((max(from, to)+1)*86400e6),
	)
}

// nextMark returns the register's nearest mark before the instant (way -1) or after it (way
// 1); nil if there is none within the days. It searches two days first, and then 32 at a time.
func (tx *Tx) nextMark(
	ctx context.Context,
	k Register,
	at time.Time,
	days int,
	way int64,
) (*Mark, error) {
	order, side := "r.at DESC", "r.at < "
	if way > 0 {
		order, side = "r.at", "r.at > "
	}

	mark := func(s scanner) (Mark, error) {
		var m Mark
		err := s.Scan(instant{&m.At}, &m.Value)
		return m, err
	}

	for first, chunk := 0, 2; first <= days; first, chunk = first+chunk, 32 {
		w := ReadingQuery{Assets: []flex.AssetID{k.AssetID}}.where(tx.org)
		var near []any

		for i := first; i < first+chunk; i++ {
			near = append(near, at.Unix()/86400+way*int64(i))
		}

		w.onDays(near)
		fmt.Fprintf(
			&w.text,
			" AND r.label = %s AND r.label >= 10 AND %s%s",
			w.param(labelNumbers[k.Label]),
			side,
			w.param(at.UnixMicro()),
		)

		found, err := rows(
			ctx,
			tx.conn,
			mark,
			`SELECT r.at, r.value FROM reading r WHERE `+w.text.String()+
				` ORDER BY `+order+` LIMIT 1`,
			w.args...,
		)

		if err != nil {
			return nil, err
		}

		if len(found) > 0 {
			return &found[0], nil
		}
	}

	return nil, nil
}

// DropReadings deletes up to limit readings from before an instant, and as many of their
// histories, and returns how many it deleted. On PostgreSQL it drops the partitions of whole
// weeks before that.
func (all *All) DropReadings(
	ctx context.Context,
	before time.Time,
	limit int,
) (int64, error) {
	until := before

	var (
		dropped int64
		err     error
	)

	if all.db.d.weekly {
		dropped, until, err = all.dropWeeks(ctx, before)
		if err != nil {
			return 0, err
		}
	}

	others, err := all.exec(
		ctx,
		`DELETE FROM reading WHERE at < $1 AND (at, asset_id, label) IN
		(SELECT at, asset_id, label FROM reading WHERE at < $1 ORDER BY at LIMIT $2)`,
		until.UnixMicro(),
		limit,
	)
	if err != nil {
		return 0, err
	}

	histories, err := all.exec(
		ctx,
		`DELETE FROM reading_history WHERE (asset_id, at, label, replaced_at) IN
		(SELECT asset_id, at, label, replaced_at FROM reading_history WHERE at < $1 LIMIT $2)`,
		before.UnixMicro(),
		limit,
	)

	return dropped + others + histories, err
}

var (
	_ = law(
		"a half-hour's energy begins and ends with it",
		`SELECT asset_id AS what FROM reading
		WHERE label = 1 AND (at % 1800000000 <> 0 OR seconds <> 1800)`,
	)
	_ = law(
		"a register falls only where it began anew",
		`SELECT asset_id AS what FROM (
		SELECT asset_id, label, at, value, LAG(value) OVER (PARTITION BY asset_id, label ORDER BY at) AS earlier,
			LAG(at) OVER (PARTITION BY asset_id, label ORDER BY at) AS before_at
		FROM reading WHERE label IN (12, 13, 14)) AS marks WHERE value < earlier
		AND NOT EXISTS (SELECT 1 FROM register_reset r WHERE r.asset_id = marks.asset_id AND r.label = marks.label
			AND r.at > marks.before_at AND r.at <= marks.at)`,
	)
	_ = law(
		"a corrected reading was known before",
		`SELECT asset_id AS what FROM reading_history WHERE known_at >= replaced_at`,
	)
)
