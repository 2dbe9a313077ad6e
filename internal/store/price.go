package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// Publication is one version of a stretch of prices.
type Publication struct {
	ID          flex.PublicationID
	Source      string
	PublishedAt time.Time // when it counts as known, by each organisation's clock
	FetchedAt   time.Time
	Span        flex.Span
}

// AddPublication keeps a version of prices. Its id and FetchedAt are set here.
func (all *All) AddPublication(ctx context.Context, p Publication, prices []flex.PricedPeriod) (flex.PublicationID, error) {
	p.ID, p.FetchedAt = flex.PublicationID(all.newID()), all.now
	_, err := all.exec(ctx, `INSERT INTO publication (id, source, published_at, fetched_at, from_at, to_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		p.ID.Bytes(), p.Source, micros(p.PublishedAt), micros(p.FetchedAt), micros(p.Span.From), micros(p.Span.To))
	if err != nil {
		return p.ID, err
	}
	args := make([]any, 0, 3*len(prices))
	for _, q := range prices {
		var price any
		if q.Known {
			price = int64(q.Price)
		}
		args = append(args, q.Period.Start().UnixMicro(), p.ID.Bytes(), price)
	}
	if err := all.bulk(ctx, `INSERT INTO price (start_at, publication_id, price)`, ``, 3, args); err != nil {
		return p.ID, err
	}
	all.Wake(WakeControl)
	return p.ID, nil
}

// Prices returns the market's prices for the periods of the span as they are known at this
// transaction's instant: of each period, the price of the latest publication that is out
// and covers it. Periods that no publication covers come back as not known.
func (tx *Tx) Prices(ctx context.Context, span flex.Span) ([]flex.PricedPeriod, error) {
	return tx.conn.prices(ctx, span, tx.now)
}

func (c conn) prices(ctx context.Context, span flex.Span, now time.Time) ([]flex.PricedPeriod, error) {
	if span.Empty() {
		return nil, nil
	}
	first := flex.PeriodAt(span.From)
	out := make([]flex.PricedPeriod, flex.PeriodAt(span.To.Add(-1)).Sub(first)+1)
	for i := range out {
		out[i].Period = first.Add(i)
	}
	rs, err := c.run.QueryContext(ctx, `
		SELECT p.start_at, p.price FROM price p JOIN publication b ON b.id = p.publication_id
		WHERE p.start_at >= $1 AND p.start_at < $2 AND b.published_at <= $3
		ORDER BY p.start_at, b.published_at, b.id`, first.Start().UnixMicro(), span.To.UnixMicro(), now.UnixMicro())
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	for rs.Next() {
		var start int64
		var price *int64
		if err := rs.Scan(&start, &price); err != nil {
			return nil, err
		}
		p := &out[flex.PeriodAt(time.UnixMicro(start)).Sub(first)]
		if p.Known = price != nil; p.Known { // later publications come later and overwrite
			p.Price = flex.Price(*price)
		}
	}
	return out, rs.Err()
}
