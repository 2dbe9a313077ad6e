package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
)

// Publication is one version of the prices of a span.
type Publication struct {
	ID     flex.PublicationID
	Source string
	// from when on it counts as known, by each organisation's clock
	PublishedAt time.Time
	FetchedAt   time.Time
	Span        flex.Span
	// the source may still change the prices: they are used for plans, not for settlement
	Preliminary bool
}

// AddPublication stores a version of prices. Its id and FetchedAt are set here.
func (all *All) AddPublication(
	ctx context.Context,
	p Publication,
	prices []flex.PricedPeriod,
) (flex.PublicationID, error) {
	p.ID, p.FetchedAt = flex.PublicationID(all.newID()), all.now
	return p.ID, all.keepPublication(ctx, p, prices)
}

// keepPublication stores a version of prices under its id.
func (all *All) keepPublication(
	ctx context.Context,
	p Publication,
	prices []flex.PricedPeriod,
) error {
	row := []value{
		{"id", p.ID.Bytes()},
		{"source", p.Source},
		{"published_at", micros(p.PublishedAt)},
		{"fetched_at", micros(p.FetchedAt)},
		{"from_at", micros(p.Span.From)},
		{"to_at", micros(p.Span.To)},
		{"preliminary", p.Preliminary},
	}

	err := all.insert(ctx, "publication", row)
	if err != nil {
		return err
	}

	_, err = all.exec(
		ctx,
		`INSERT INTO price_source (name, added_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`,
		p.Source,
		micros(all.now),
	)

	if err != nil {
		return err
	}

	if err := all.addPrices(ctx, p.ID, prices); err != nil {
		return err
	}

	err = all.markPriced(ctx, p)
	all.Wake(WakeControl)

	return err
}

func (all *All) addPrices(
	ctx context.Context,
	id flex.PublicationID,
	prices []flex.PricedPeriod,
) error {
	args := make([]any, 0, 4*len(prices))
	for _, q := range prices {
		var price any
		if q.Known {
			price = int64(q.Price)
		}

		args = append(
			args,
			q.Period.Start().UnixMicro(),
			id.Bytes(),
			price,
			q.Derived,
		)
	}

	return all.bulk(
		ctx,
		`INSERT INTO price (start_at, publication_id, price, derived)`,
		``,
		4,
		args,
	)
}

// PublicationsByID returns publications by their ids.
func (tx *Tx) PublicationsByID(
	ctx context.Context,
	ids []flex.PublicationID,
) (map[flex.PublicationID]Publication, error) {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b flex.PublicationID) int {
		return bytes.Compare(a[:], b[:])
	})
	found := map[flex.PublicationID]Publication{}

	for chunk := range slices.Chunk(slices.Compact(ids), 500) {
		scan := func(s scanner) (Publication, error) {
			var p Publication
			err := s.Scan(
				&p.ID,
				&p.Source,
				instant{&p.PublishedAt},
				instant{&p.FetchedAt},
			)

			return p, err
		}

		list, args := in(nil, chunk)
		ps, err := rows(
			ctx,
			tx.conn,
			scan,
			`SELECT id, source, published_at, fetched_at FROM publication WHERE id IN `+list,
			args...,
		)
		if err != nil {
			return nil, err
		}

		for _, p := range ps {
			found[p.ID] = p
		}
	}

	return found, nil
}

// Prices returns the planning prices of the periods of the span as they are known at this
// transaction's instant: for each period the price of the latest known publication that covers
// it, from the sources that the organisation plans on. Periods without one are returned as not
// known.
func (tx *Tx) Prices(
	ctx context.Context,
	span flex.Span,
) ([]flex.PricedPeriod, error) {
	return withoutOrigin(tx.Quotes(ctx, pricing.Planning, span))
}

// Quotes is Prices for any role, with the origin of each price.
func (tx *Tx) Quotes(
	ctx context.Context,
	role pricing.Role,
	span flex.Span,
) ([]flex.Quote, error) {
	return tx.unqueued().roleQuotes(
		ctx,
		tx.org,
		role,
		span,
		`b.published_at <= $3`,
		tx.now.UnixMicro(),
	)
}

// SettlementPrices returns the prices by which energy in the periods of the span is settled,
// as they were known at an instant: from publications that were out and had been fetched by
// then. Preliminary prices do not count.
func (tx *Tx) SettlementPrices(
	ctx context.Context,
	span flex.Span,
	at time.Time,
) ([]flex.PricedPeriod, error) {
	return withoutOrigin(tx.SettlementQuotes(ctx, span, at))
}

// SettlementQuotes is SettlementPrices, with the origin of each price.
func (tx *Tx) SettlementQuotes(
	ctx context.Context,
	span flex.Span,
	at time.Time,
) ([]flex.Quote, error) {
	return tx.roleQuotes(
		ctx,
		tx.org,
		pricing.Settlement,
		span,
		`b.published_at <= $3 AND b.fetched_at <= $3 AND NOT b.preliminary`,
		at.UnixMicro(),
	)
}

// QuotesFrom returns the prices of one source that are known now, whatever its role.
func (tx *Tx) QuotesFrom(
	ctx context.Context,
	source string,
	span flex.Span,
) ([]flex.Quote, error) {
	return tx.quotes(
		ctx,
		span,
		[]string{source},
		`b.published_at <= $3`,
		tx.now.UnixMicro(),
	)
}

// Prices returns the prices of the periods of the span as they are known now: from one source
// or, if that is empty, those that an organisation that has chosen no source would plan on.
func (all *All) Prices(
	ctx context.Context,
	span flex.Span,
	source string,
) ([]flex.PricedPeriod, error) {
	if source != "" {
		return withoutOrigin(all.quotes(
			ctx,
			span,
			[]string{source},
			`b.published_at <= $3`,
			all.now.UnixMicro(),
		))
	}

	return withoutOrigin(all.roleQuotes(
		ctx,
		flex.OrgID{},
		pricing.Planning,
		span,
		`b.published_at <= $3`,
		all.now.UnixMicro(),
	))
}

// QuotesFrom returns the latest prices of a source for the periods of the span, known yet or not.
func (all *All) QuotesFrom(
	ctx context.Context,
	source string,
	span flex.Span,
) ([]flex.Quote, error) {
	return all.quotes(ctx, span, []string{source}, `TRUE`)
}

// roleQuotes is quotes of the sources that count for a role of the organisation's.
func (c conn) roleQuotes(
	ctx context.Context,
	org flex.OrgID,
	role pricing.Role,
	span flex.Span,
	condition string,
	args ...any,
) ([]flex.Quote, error) {
	if span.Empty() {
		return nil, nil
	}

	selection, err := c.selection(ctx, org)
	if err != nil {
		return nil, fmt.Errorf("read which prices count: %w", err)
	}

	// A choice holds from a half-hour on, so the cuts are made between half-hours.
	whole := flex.Span{
		From: flex.PeriodAt(span.From).Start(),
		To:   flex.PeriodAt(span.To.Add(-1)).End(),
	}

	stretches := selection.Stretches(role, whole)
	if len(stretches) == 1 {
		return c.quotes(ctx, whole, stretches[0].Sources, condition, args...)
	}

	out := unquoted(whole)
	for _, s := range stretches {
		found, err := c.quotes(ctx, s.Span, s.Sources, condition, args...)
		if err != nil {
			return nil, err
		}

		for _, q := range found {
			if s.Contains(q.Period.Start()) {
				out[q.Period.Sub(out[0].Period)] = q
			}
		}
	}

	return out, nil
}

func withoutOrigin(qs []flex.Quote, err error) ([]flex.PricedPeriod, error) {
	if err != nil || qs == nil {
		return nil, err
	}

	ps := make([]flex.PricedPeriod, len(qs))
	for i, q := range qs {
		ps[i] = q.PricedPeriod
	}

	return ps, nil
}

// unquoted are the periods of a span, without prices.
func unquoted(span flex.Span) []flex.Quote {
	first := flex.PeriodAt(span.From)
	out := make([]flex.Quote, flex.PeriodAt(span.To.Add(-1)).Sub(first)+1)
	for i := range out {
		out[i].Period = first.Add(i)
	}

	return out
}

// quotes reads the latest publication of each period among those of the sources that the
// condition, whose parameters start at $3, lets through. Made-up prices count where no others
// are. No sources at all have no prices.
func (c conn) quotes(
	ctx context.Context,
	span flex.Span,
	sources []string,
	condition string,
	args ...any,
) ([]flex.Quote, error) {
	if span.Empty() {
		return nil, nil
	}

	out := unquoted(span)
	if len(sources) == 0 {
		return out, nil
	}

	first := out[0].Period
	args = append(
		[]any{first.Start().UnixMicro(), span.To.UnixMicro()},
		args...,
	)

	marks := make([]string, len(sources))

	for i, source := range sources {
		args = append(args, source)
		marks[i] = fmt.Sprintf("$%d", len(args))
	}

	err := eachRow(ctx, c, func(s scanner) error {
		q, err := scanQuote(s)
		if err != nil {
			return err
		}

		at := &out[q.Period.Sub(first)]
		madeUp := q.Source == pricing.SandboxSource && at.Source != "" &&
			at.Source != q.Source
		if !madeUp {
			*at = q // later publications come later and overwrite
		}

		return nil
	}, `
		SELECT p.start_at, p.price, p.derived, p.publication_id, b.source, b.preliminary FROM price p JOIN publication b ON b.id = p.publication_id
		WHERE p.start_at >= $1 AND p.start_at < $2 AND `+condition+` AND b.source IN (`+strings.Join(marks, ", ")+`)
		ORDER BY p.start_at, b.published_at, b.id`, args...)

	return out, err
}

func scanQuote(s scanner) (flex.Quote, error) {
	var start int64
	var price *int64
	var q flex.Quote
	err := s.Scan(&start, &price, &q.Derived, &q.From, &q.Source, &q.Preliminary)
	if err != nil {
		return q, err
	}

	q.Period = flex.PeriodAt(time.UnixMicro(start))
	q.Known = price != nil
	if q.Known {
		q.Price = flex.Price(*price)
	}

	return q, nil
}

// PublicationRecord is a publication with the number of half-hours that it leaves without a
// price.
type PublicationRecord struct {
	Publication
	Missing int
}

// Publications returns the publications that touch the span and are out at this
// transaction's instant, newest first, of one source or, if that is empty, of all.
func (tx *Tx) Publications(
	ctx context.Context,
	span flex.Span,
	source string,
) ([]PublicationRecord, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (PublicationRecord, error) {
			var r PublicationRecord
			err := s.Scan(
				&r.ID,
				&r.Source,
				instant{&r.PublishedAt},
				instant{&r.FetchedAt},
				instant{&r.Span.From},
				instant{&r.Span.To},
				&r.Preliminary,
				&r.Missing,
			)

			return r, err
		},
		`
		SELECT b.id, b.source, b.published_at, b.fetched_at, b.from_at, b.to_at, b.preliminary,
			(SELECT count(*) FROM price p WHERE p.publication_id = b.id AND p.start_at >= b.from_at AND p.start_at < b.to_at AND p.price IS NULL)
		FROM publication b
		WHERE b.from_at < $1 AND b.to_at > $2 AND b.published_at <= $3 AND ($4 = '' OR b.source = $4)
		ORDER BY b.published_at DESC, b.id DESC`,
		span.To.UnixMicro(),
		span.From.UnixMicro(),
		tx.now.UnixMicro(),
		source,
	)
}

// Published returns what the publications that are out at this transaction's instant say of
// the periods of the span, of one source or, if that is empty, of all: those of the newest
// publication first. Periods that a publication does not name are left out.
func (tx *Tx) Published(
	ctx context.Context,
	span flex.Span,
	source string,
) ([]flex.Quote, error) {
	return rows(
		ctx,
		tx.conn,
		scanQuote,
		`
		SELECT p.start_at, p.price, p.derived, p.publication_id, b.source, b.preliminary FROM price p JOIN publication b ON b.id = p.publication_id
		WHERE p.start_at >= $1 AND p.start_at < $2 AND b.published_at <= $3 AND ($4 = '' OR b.source = $4)
		ORDER BY b.published_at DESC, b.id DESC, p.start_at`,
		span.From.UnixMicro(),
		span.To.UnixMicro(),
		tx.now.UnixMicro(),
		source,
	)
}

// SourceState is how far a source's publications reach.
type SourceState struct {
	Source    string
	FetchedAt time.Time // the newest
	Through   time.Time // the end of the last half-hour
}

// sourceStates asks for one source after the other: grouped by source, all publications that
// ever were would be read.
const sourceStates = `WITH RECURSIVE published (source) AS (
		SELECT min(source) FROM publication
		UNION ALL
		SELECT (SELECT min(p.source) FROM publication p WHERE p.source > f.source) FROM published f WHERE f.source IS NOT NULL)
	SELECT f.source, (SELECT max(p.fetched_at) FROM publication p WHERE p.source = f.source),
		(SELECT max(p.to_at) FROM publication p WHERE p.source = f.source)
	FROM published f WHERE f.source IS NOT NULL ORDER BY f.source`

// SourceStates returns the state of every source that ever published, by name.
func (all *All) SourceStates(ctx context.Context) ([]SourceState, error) {
	return rows(ctx, all.conn, func(s scanner) (SourceState, error) {
		var r SourceState
		err := s.Scan(&r.Source, instant{&r.FetchedAt}, instant{&r.Through})
		return r, err
	}, sourceStates)
}

// LatestPublished returns when the latest publication of a source that touches a span counts
// as known, or the zero time.
func (all *All) LatestPublished(
	ctx context.Context,
	source string,
	span flex.Span,
) (time.Time, error) {
	var at time.Time
	err := all.row(
		ctx,
		`SELECT max(published_at) FROM publication WHERE source = $1 AND from_at < $2 AND to_at > $3`,
		source,
		micros(span.To),
		micros(span.From),
	).Scan(instant{&at})

	return at, err
}

// PublishedSince reports whether anything was published of a source's half-hours after an
// instant. Other transactions that ask this of the source wait for the end of this one.
func (all *All) PublishedSince(
	ctx context.Context,
	source string,
	span flex.Span,
	since time.Time,
) (bool, error) {
	_, err := rows(
		ctx,
		all.conn,
		scalar[int],
		`SELECT 1 FROM price_source WHERE name = $1`+all.db.d.forUpdate,
		source,
	)
	if err != nil {
		return false, fmt.Errorf("lock the source: %w", err)
	}

	var found bool
	err = all.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM publication WHERE source = $1 AND from_at < $2 AND to_at > $3 AND fetched_at > $4)`,
		source,
		micros(span.To),
		micros(span.From),
		micros(since),
	).Scan(&found)

	return found, err
}

// PricedThrough returns the end of a source's last half-hour, or the zero time.
func (all *All) PricedThrough(
	ctx context.Context,
	source string,
) (time.Time, error) {
	var through time.Time
	err := all.row(
		ctx,
		`SELECT max(to_at) FROM publication WHERE source = $1`,
		source,
	).Scan(instant{&through})

	return through, err
}

// FurthestClock returns the time of the organisation whose clock is furthest ahead.
func (all *All) FurthestClock(ctx context.Context) (time.Time, error) {
	var offset *int64
	err := all.row(ctx, `SELECT max(clock_offset) FROM org`).Scan(&offset)
	if err != nil || offset == nil {
		return all.now, err
	}

	return all.now.Add(time.Duration(*offset) * time.Microsecond), nil
}
