package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// setConsent records that the consent to the use of a site's boundary meter was given, at an
// instant, or withdrawn: the zero time. What was given is not taken back by a later consent.
func (tx *Tx) setConsent(
	ctx context.Context,
	site flex.SiteID,
	at time.Time,
) error {
	if err := tx.addConsent(ctx, site, BoundaryMeter, at); err != nil {
		return err
	}
	if at.IsZero() {
		return tx.endConsent(ctx, site)
	}

	_, err := tx.exec(
		ctx,
		`INSERT INTO consent_span (site_id, org_id, from_at, known_at) VALUES ($1, $2, $3, $4) ON CONFLICT (site_id, from_at) DO NOTHING`,
		site.Bytes(),
		tx.org.Bytes(),
		micros(at),
		micros(tx.now),
	)
	if err != nil {
		return err
	}

	return tx.markConsented(ctx, site, at)
}

// ConsentWithdrawn returns when the consent to the use of a site's boundary meter was last
// withdrawn; zero if it never was.
func (tx *Tx) ConsentWithdrawn(
	ctx context.Context,
	site flex.SiteID,
) (time.Time, error) {
	var at time.Time
	err := tx.row(
		ctx,
		`SELECT max(to_at) FROM consent_span WHERE org_id = $1 AND site_id = $2`,
		tx.org.Bytes(),
		site.Bytes(),
	).Scan(instant{&at})

	return at, err
}

// endConsent ends the spans of a site's consent now. One that was to begin later never does.
func (tx *Tx) endConsent(ctx context.Context, site flex.SiteID) error {
	_, err := tx.exec(
		ctx,
		`UPDATE consent_span SET to_at = CASE WHEN from_at > $3 THEN from_at ELSE $3 END
		WHERE org_id = $1 AND site_id = $2 AND to_at IS NULL`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(tx.now),
	)

	return err
}

// always is a span that holds every instant that a reading can have.
var always = flex.Span{To: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}

// ConsentSpans returns when the boundary meters of the sites may be used, as it was known at
// an instant; the zero time stands for now. The spans of a site are in order and apart; a site
// without any is left out. An organisation that needs no consent may use them always.
func (tx *Tx) ConsentSpans(
	ctx context.Context,
	sites []flex.SiteID,
	knownAt time.Time,
) (map[flex.SiteID][]flex.Span, error) {
	spans := make(map[flex.SiteID][]flex.Span, len(sites))

	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return nil, err
	}

	if org.MeterConsentExempt {
		for _, id := range sites {
			spans[id] = []flex.Span{always}
		}
		return spans, nil
	}

	if knownAt.IsZero() {
		knownAt = tx.now
	}

	for chunk := range slices.Chunk(sites, ownersChunk) {
		if err := tx.consentSpans(ctx, chunk, knownAt, spans); err != nil {
			return nil, err
		}
	}

	return spans, nil
}

func (tx *Tx) consentSpans(
	ctx context.Context,
	sites []flex.SiteID,
	knownAt time.Time,
	spans map[flex.SiteID][]flex.Span,
) error {
	list, args := in([]any{tx.org.Bytes(), micros(knownAt)}, sites)
	read := func(s scanner) error {
		var id flex.SiteID
		var span flex.Span
		err := s.Scan(&id, instant{&span.From}, instant{&span.To})
		if err != nil {
			return err
		}

		if span.To.IsZero() || span.To.After(knownAt) { // not withdrawn, as far as was known
			span.To = always.To
		}

		if !span.Empty() {
			spans[id] = joinSpan(spans[id], span)
		}

		return nil
	}

	return eachRow(ctx, tx.conn, read, `SELECT site_id, from_at, to_at FROM consent_span
		WHERE org_id = $1 AND known_at <= $2 AND site_id IN `+list+` ORDER BY from_at`, args...)
}

// joinSpan adds a span, which begins no earlier than any before it.
func joinSpan(spans []flex.Span, s flex.Span) []flex.Span {
	if n := len(spans); n > 0 && !s.From.After(spans[n-1].To) {
		if s.To.After(spans[n-1].To) {
			spans[n-1].To = s.To
		}
		return spans
	}

	return append(spans, s)
}

// consentedIn is that the boundary meter of a record's site could be used in all of a time, or
// that its organisation o needs no consent for it. The site may have been offboarded since,
// but not erased: then its asset is neither among the assets a nor among the former ones f.
// While it is being erased, its former ones went before 1970, and its spans of consent are
// removed.
func consentedIn(record, from, to string) string {
	return fmt.Sprintf(
		`(o.consent_exempt AND (a.id IS NOT NULL OR f.id IS NOT NULL AND f.gone_at >= 0) OR EXISTS (SELECT 1 FROM consent_span c
		WHERE c.site_id = %s.site_id AND c.from_at <= %s AND (c.to_at IS NULL OR c.to_at >= %s)))`,
		record,
		from,
		to,
	)
}

// consentedDuring is consentedIn of any part of the time.
func consentedDuring(record, from, to string) string {
	return consentedIn(record, to, from)
}

var _ = law("a site's boundary meter may be used exactly while its consent holds",
	`SELECT s.id AS what FROM site s WHERE (s.consent_at IS NOT NULL) <> EXISTS (SELECT 1 FROM consent_span c WHERE c.site_id = s.id AND c.to_at IS NULL)
	 UNION ALL SELECT site_id AS what FROM consent_span WHERE to_at < from_at`)
