package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

var _ = lawInGo(
	"no boundary reading outside a consent's span is an input",
	inputsOutsideConsent,
)

// boundaryResult is the newest settlement of an event at its site's boundary.
type boundaryResult struct {
	site   flex.SiteID
	result resultRecord
}

// inputsOutsideConsent finds events that a half-hour was settled of, or compared with, that lies
// outside their site's consent. What was settled before that was asked of days of comparison,
// and sites that were erased, with their consents, are left out.
func inputsOutsideConsent(
	ctx context.Context,
	all *All,
) ([]string, error) {
	spans, err := all.everyConsent(ctx)
	if err != nil {
		return nil, err
	}

	var broken []string
	scan := func(s scanner) error {
		var b boundaryResult

		var text string

		if err := s.Scan(&b.site, &text); err != nil {
			return err
		}
		if err := decode("result", text, &b.result); err != nil {
			return err
		}

		if len(broken) <= findingsMax {
			broken = append(broken, b.outside(spans[b.site])...)
		}

		return nil
	}

	err = eachRow(
		ctx,
		all.conn,
		scan,
		`SELECT e.site_id, s.result FROM flex_event e
		JOIN settlement s ON s.flex_event_id = e.id AND s.version = e.version JOIN org o ON o.id = e.org_id
		WHERE NOT o.consent_exempt AND s.result LIKE '%"Metering":"boundary"%' AND s.result LIKE '%"Consented":true%'
			AND (EXISTS (SELECT 1 FROM site t WHERE t.id = e.site_id) OR EXISTS (SELECT 1 FROM consent_span c WHERE c.site_id = e.site_id))
		ORDER BY e.id`,
	)

	return broken, err
}

// everyConsent returns the spans of all sites' consents, joined.
func (all *All) everyConsent(ctx context.Context) (map[flex.SiteID][]flex.Span, error) {
	spans := map[flex.SiteID][]flex.Span{}
	err := eachRow(ctx, all.conn, func(s scanner) error {
		var id flex.SiteID
		var c flex.Span
		err := s.Scan(&id, instant{&c.From}, instant{&c.To})

		if c.To.IsZero() {
			c.To = always.To
		}

		spans[id] = joinSpan(spans[id], c)

		return err
	}, `SELECT site_id, from_at, to_at FROM consent_span ORDER BY site_id, from_at`)

	return spans, err
}

// outside lists the half-hours behind a result that lie outside the spans: those that were
// read, and on the days of comparison those at the same time by the clock.
func (b *boundaryResult) outside(spans []flex.Span) []string {
	r := &b.result
	day := r.Day.day()

	var broken []string
	for _, p := range r.Periods {
		own := day.Period(p.Period)
		if p.Read && !settle.Within(spans, own.Span()) {
			broken = append(
				broken,
				fmt.Sprintf(
					"event %s of site %s: %s",
					r.Event,
					b.site,
					own.Start().Format(time.RFC3339),
				),
			)
		}

		local := own.Start().In(flex.London)
		for _, d := range each(r.Used, dayRecord.day) {
			at := time.Date(
				d.Year,
				d.Month,
				d.Dom,
				local.Hour(),
				local.Minute(),
				0,
				0,
				flex.London,
			)

			if !settle.Within(spans, flex.Span{From: at, To: at.Add(flex.HalfHour)}) {
				broken = append(
					broken,
					fmt.Sprintf(
						"event %s of site %s, compared with %s",
						r.Event,
						b.site,
						at.UTC().Format(time.RFC3339),
					),
				)
			}
		}
	}

	return slices.Compact(broken)
}
