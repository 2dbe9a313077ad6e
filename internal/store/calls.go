package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/flex"
)

var _ = law("a number of calls that a site agreed to is not negative",
	`SELECT id AS what FROM site WHERE calls_day < 0 OR calls_month < 0`)

// callsColumns are a site's agreed calls; table s.
const callsColumns = `s.calls_day, s.calls_month`

// optionalInt reads a number that may be null.
type optionalInt struct{ to *flex.Optional[int] }

// Scan reads a column.
func (o optionalInt) Scan(column any) error {
	var n sql.NullInt64
	err := n.Scan(column)
	*o.to = flex.Optional[int]{Value: int(n.Int64), Given: n.Valid}

	return err
}

// orNull is a number that may be null, as a value.
func orNull(o flex.Optional[int]) any {
	if !o.Given {
		return nil
	}
	return o.Value
}

// SetAgreedCalls records how often a site of the organisation's may be called.
func (tx *Tx) SetAgreedCalls(
	ctx context.Context,
	site flex.SiteID,
	c flex.AgreedCalls,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE site SET calls_day = $3, calls_month = $4 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		site.Bytes(),
		orNull(c.PerDay),
		orNull(c.PerMonth),
	)

	if err != nil {
		return err
	}

	return tx.touchRegister(ctx)
}

// callCounts counts, by site s, the instructions that begin in a day and in a month and called
// it; one is left out. An instruction that was stopped, or let all of a site go, before it
// began is no call of it. Calls are made at most calledAhead before what they are for, so that
// those of earlier months need not be read. The arguments: organisation, that instruction,
// begin and end of the day, begin and end of the month, and since when calls may be for the
// month.
const callCounts = `count(DISTINCT CASE WHEN i.from_at >= $3 AND i.from_at < $4 THEN i.id END), count(DISTINCT i.id)
	FROM site s LEFT JOIN called_asset c ON c.org_id = s.org_id AND c.site_id = s.id AND c.called_at >= $7 AND c.instruction_id <> $2 AND NOT c.dispatched
		LEFT JOIN instruction i ON i.id = c.instruction_id AND i.from_at >= $5 AND i.from_at < $6
			AND (i.stopped_at IS NULL OR i.stopped_at > i.from_at) AND (c.released_at IS NULL OR c.released_at > i.from_at)
	WHERE s.org_id = $1`

// calledAhead is longer than an instruction is sent ahead of its beginning, by a day for
// clocks that were turned.
const calledAhead = 72 * time.Hour

// callCountArgs are the arguments of callCounts, for an instruction that begins at an instant.
func (tx *Tx) callCountArgs(but flex.InstructionID, at time.Time) []any {
	day, month := flex.DayAt(at).Span(), flex.MonthOf(at)
	return []any{
		tx.org.Bytes(),
		but.Bytes(),
		micros(day.From),
		micros(day.To),
		micros(month.From),
		micros(month.To),
		micros(month.From.Add(-calledAhead)),
	}
}

// SpentSites returns the sites that had all calls they agreed to in the day or month of an
// instant, and which limit that is. What one instruction called is not counted.
func (tx *Tx) SpentSites(
	ctx context.Context,
	but flex.InstructionID,
	at time.Time,
) (map[flex.SiteID]flex.SpentCalls, error) {
	spent := map[flex.SiteID]flex.SpentCalls{}
	err := eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			var id flex.SiteID
			var agreed flex.AgreedCalls
			var n flex.CallCount
			err := s.Scan(
				&id,
				optionalInt{&agreed.PerDay},
				optionalInt{&agreed.PerMonth},
				&n.Day,
				&n.Month,
			)

			if limit := agreed.Spent(n); limit.Given {
				spent[id] = limit.Value
			}

			return err
		},
		`SELECT s.id, `+callsColumns+`, `+callCounts+` AND (s.calls_day IS NOT NULL OR s.calls_month IS NOT NULL)
		GROUP BY s.id, s.calls_day, s.calls_month`,
		tx.callCountArgs(but, at)...,
	)

	return spent, err
}

// SpentAssets returns the assets of the sites that had all calls they agreed to in the day or
// month of an instant.
func (tx *Tx) SpentAssets(
	ctx context.Context,
	at time.Time,
) (map[flex.AssetID]bool, error) {
	spent, err := tx.SpentSites(ctx, flex.InstructionID{}, at)
	if err != nil || len(spent) == 0 {
		return nil, err
	}

	assets := map[flex.AssetID]bool{}
	err = eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			var id flex.AssetID
			var site flex.SiteID
			err := s.Scan(&id, &site)
			if _, found := spent[site]; found {
				assets[id] = true
			}

			return err
		},
		`SELECT a.id, a.site_id FROM site s JOIN asset a ON a.org_id = s.org_id AND a.site_id = s.id
		WHERE s.org_id = $1 AND (s.calls_day IS NOT NULL OR s.calls_month IS NOT NULL)`,
		tx.org.Bytes(),
	)

	return assets, err
}

// CallsOf counts the calls of a site in the London day and month of an instant.
func (tx *Tx) CallsOf(
	ctx context.Context,
	site flex.SiteID,
	at time.Time,
) (flex.CallCount, error) {
	var n flex.CallCount
	args := tx.callCountArgs(flex.InstructionID{}, at)
	err := tx.row(
		ctx,
		`SELECT `+callCounts+` AND s.id = $8`,
		append(args, site.Bytes())...,
	).Scan(&n.Day, &n.Month)

	return n, err
}

// NoteSpent records with an instruction how many sites it left out as they had had the calls
// they agreed to, in words too, if they are more than it left out before.
func (tx *Tx) NoteSpent(
	ctx context.Context,
	id flex.InstructionID,
	sites int,
	words string,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE instruction SET spent_sites = $3, spent = $4 WHERE org_id = $1 AND id = $2 AND spent_sites < $3`,
		tx.org.Bytes(),
		id.Bytes(),
		sites,
		words,
	)

	return err
}
