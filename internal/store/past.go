package store

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// PastEvent is an event of an asset as it came in.
type PastEvent struct {
	Kind string
	At   time.Time
	What AssetEvent
}

// PastEvents returns the asset's events of a span, the newest of them, the first first.
func (tx *Tx) PastEvents(
	ctx context.Context,
	asset flex.AssetID,
	span flex.Span,
	limit int,
) ([]PastEvent, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (PastEvent, error) {
			var what string
			var t PastEvent
			err := s.Scan(&t.Kind, instant{&t.At}, &what)
			if err != nil {
				return t, err
			}

			t.What, err = decodeEvent(what)
			return t, err
		},
		`SELECT kind, at, told FROM (SELECT id, kind, at, told FROM asset_event
			WHERE org_id = $1 AND asset_id = $2 AND at >= $3 AND at < $4 ORDER BY id DESC LIMIT $5) AS newest ORDER BY id`,
		tx.org.Bytes(),
		asset.Bytes(),
		micros(span.From),
		micros(span.To),
		limit,
	)
}

// SessionsWithin returns the asset's sessions that touch a span, the first first.
func (tx *Tx) SessionsWithin(
	ctx context.Context,
	asset flex.AssetID,
	span flex.Span,
) ([]Session, error) {
	return rows(
		ctx,
		tx.conn,
		scanSession,
		`SELECT `+sessionColumns+
			` FROM session s WHERE s.org_id = $1 AND s.asset_id = $2
			AND s.plugged_in_at < $4 AND (s.plugged_out_at IS NULL OR s.plugged_out_at > $3) ORDER BY s.number`,
		tx.org.Bytes(),
		asset.Bytes(),
		micros(span.From),
		micros(span.To),
	)
}

// SchedulesWithin returns every schedule of the asset's sessions that touch a span, by
// generation.
func (tx *Tx) SchedulesWithin(
	ctx context.Context,
	asset flex.AssetID,
	span flex.Span,
) ([]Schedule, error) {
	return rows(ctx, tx.conn, scanSchedule, `WITH RECURSIVE chain (id) AS (
			SELECT event_id FROM session WHERE org_id = $1 AND asset_id = $2 AND plugged_in_at < $4
				AND (plugged_out_at IS NULL OR plugged_out_at > $3) AND event_id IS NOT NULL
			UNION ALL SELECT c.before_id FROM chain JOIN schedule c ON c.event_id = chain.id WHERE c.before_id IS NOT NULL)
		SELECT `+scheduleColumns+` FROM schedule WHERE org_id = $1 AND event_id IN (SELECT id FROM chain) ORDER BY generation`,
		tx.org.Bytes(), asset.Bytes(), micros(span.From), micros(span.To))
}

// SchedulesBefore returns the schedules of a session that one replaced, the newest first: up
// to the first that began before an instant, and at most as many as most says. One statement
// reads them: a car whose readings come is looked at often.
func (tx *Tx) SchedulesBefore(
	ctx context.Context,
	s *Schedule,
	since time.Time,
	most int,
) ([]Schedule, error) {
	if s.Before.IsZero() || most < 1 || s.Steps[0].From.Before(since) {
		return nil, nil
	}

	return rows(
		ctx,
		tx.conn,
		scanSchedule,
		`WITH RECURSIVE chain (id, from_at, before_id, place) AS (
			SELECT event_id, from_at, before_id, 1 FROM schedule WHERE org_id = $1 AND event_id = $2
			UNION ALL SELECT c.event_id, c.from_at, c.before_id, chain.place + 1
				FROM chain JOIN schedule c ON c.event_id = chain.before_id
				WHERE c.org_id = $1 AND chain.from_at >= $3 AND chain.place < $4)
		SELECT `+scheduleColumns+` FROM schedule WHERE org_id = $1 AND event_id IN (SELECT id FROM chain) ORDER BY generation DESC`,
		tx.org.Bytes(),
		s.Before.Bytes(),
		since.UnixMicro(), // that of the zero time is below all others
		most,
	)
}

// Consent is a consent that was given or withdrawn.
type Consent struct {
	Kind       string    // "boundary meter", or a dispatch method
	GivenAt    time.Time // zero when it was withdrawn
	RecordedAt time.Time
}

// Consents returns the site's consents as they were recorded, the first first.
func (tx *Tx) Consents(
	ctx context.Context,
	site flex.SiteID,
) ([]Consent, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (Consent, error) {
			var c Consent
			err := s.Scan(&c.Kind, instant{&c.GivenAt}, instant{&c.RecordedAt})
			return c, err
		},
		`SELECT kind, given_at, recorded_at FROM consent WHERE org_id = $1 AND site_id = $2 ORDER BY id`,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// EnrolmentChange is a step of a site in a proposition.
type EnrolmentChange struct {
	Proposition flex.Proposition
	State       flex.EnrolmentState
	At          time.Time
}

// EnrolmentChanges returns the site's steps in all propositions, the first first.
func (tx *Tx) EnrolmentChanges(
	ctx context.Context,
	site flex.SiteID,
) ([]EnrolmentChange, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (EnrolmentChange, error) {
			var c EnrolmentChange
			err := s.Scan(&c.Proposition, &c.State, instant{&c.At})
			return c, err
		},
		`SELECT proposition, state, at FROM enrolment_change WHERE org_id = $1 AND site_id = $2 ORDER BY id`,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// NewestSettlement returns what the newest run that posts made of an event. One that was
// never settled is a NotFound failure.
func (tx *Tx) NewestSettlement(
	ctx context.Context,
	event flex.FlexEventID,
) (Settlement, error) {
	return one(
		ctx,
		tx.conn,
		"the flex event is not settled yet",
		scanSettlement,
		settlementSelect+
			` WHERE s.org_id = $1 AND s.flex_event_id = $2 AND s.version > 0 ORDER BY s.version DESC LIMIT 1`,
		tx.org.Bytes(),
		event.Bytes(),
	)
}

// AccountSum is what an account of the books holds for an organisation.
type AccountSum struct {
	Account ledger.Account
	Sum     flex.Pence // a debit is positive
}

// AccountSums returns what the organisation's books hold, by account. They add up to zero.
// What was booked before the last closed month ended is not added up again.
func (tx *Tx) AccountSums(ctx context.Context) ([]AccountSum, error) {
	c, err := tx.closedBefore(ctx, noMonth)
	if err != nil {
		return nil, err
	}

	if c.held != nil {
		b, err := tx.balanceSince(ctx, c, c.last.Add(1), noMonth.Last())
		sums := make([]AccountSum, len(b.Lines))
		for i, l := range b.Lines {
			sums[i] = AccountSum{l.Account, l.Closing()}
		}

		return sums, err
	}

	return rows(
		ctx,
		tx.conn,
		func(s scanner) (AccountSum, error) {
			var a AccountSum
			err := s.Scan(&a.Account, &a.Sum)
			return a, err
		},
		`SELECT account, CAST(sum(amount) AS BIGINT) FROM posting WHERE org_id = $1 GROUP BY account ORDER BY account`,
		tx.org.Bytes(),
	)
}

// NewestFlexEvents returns the organisation's flex events that began before the instant, or at it
// with an id below the one given, the newest first.
func (tx *Tx) NewestFlexEvents(
	ctx context.Context,
	before time.Time,
	id flex.FlexEventID,
	limit int,
) ([]FlexEvent, error) {
	scan := func(s scanner) (FlexEvent, error) { return scanFlexEvent(s) }
	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT `+flexEventColumns+
			` FROM flex_event e WHERE e.org_id = $1 AND (e.from_at, e.id) < ($2, $3)
		ORDER BY e.from_at DESC, e.id DESC LIMIT $4`,
		tx.org.Bytes(),
		micros(before),
		id.Bytes(),
		limit,
	)
}

// FlexEventOrg returns whose flex event it is, or a NotFound failure.
func (all *All) FlexEventOrg(
	ctx context.Context,
	id flex.FlexEventID,
) (flex.OrgID, error) {
	return orgOf(
		ctx,
		all,
		"there is no flex event of that id",
		`SELECT org_id FROM flex_event WHERE id = $1`,
		id.Bytes(),
	)
}
