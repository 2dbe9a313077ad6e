package store

import (
	"context"
	"slices"

	"flexd/internal/flex"
)

// SessionsBeside returns the other assets' sessions at a session's site that ended and ran in its
// half-hours, also those of assets that are gone, by asset and then by time.
func (tx *Tx) SessionsBeside(
	ctx context.Context,
	r *SessionSettlement,
) ([]SessionSettlement, error) {
	return tx.sessionSettlements(
		ctx,
		`r.asset_id IN (SELECT id FROM asset WHERE org_id = $1 AND site_id = $2
			UNION ALL SELECT id FROM former_asset WHERE org_id = $1 AND site_id = $2)
			AND r.asset_id <> $3 AND r.to_at > $4 AND r.from_at < $5 AND (s.id IS NULL OR s.plugged_out_at IS NOT NULL)
		ORDER BY r.asset_id, r.from_at`,
		tx.org.Bytes(),
		r.SiteID.Bytes(),
		r.AssetID.Bytes(),
		micros(r.From.Add(-flex.HalfHour)),
		micros(r.To.Add(flex.HalfHour)),
	)
}

// PlannedSessions returns the sessions at a site that ran at some time of a span and in which
// something was planned, by plug-in. Those that are open have no end.
func (tx *Tx) PlannedSessions(
	ctx context.Context,
	site flex.SiteID,
	in flex.Span,
) ([]Session, error) {
	return rows(
		ctx,
		tx.conn,
		scanSession,
		`SELECT `+sessionColumns+` FROM session s
		WHERE s.asset_id IN (SELECT id FROM asset WHERE org_id = $1 AND site_id = $2
				UNION ALL SELECT id FROM former_asset WHERE org_id = $1 AND site_id = $2)
			AND s.org_id = $1 AND s.site_id = $2 AND s.event_id IS NOT NULL
			AND s.plugged_in_at < $4 AND (s.plugged_out_at IS NULL OR s.plugged_out_at > $3)
		ORDER BY s.plugged_in_at, s.id`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(in.From),
		micros(in.To),
	)
}

// SettleAgain has sessions that ended settled again.
func (tx *Tx) SettleAgain(
	ctx context.Context,
	sessions []flex.SessionID,
) error {
	for chunk := range slices.Chunk(sessions, ownersChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		_, err := tx.exec(
			ctx,
			`UPDATE reckoning SET look_at = 0 WHERE org_id = $1 AND session_id IN (SELECT session_id FROM reckoning
			WHERE session_id IN `+list+` ORDER BY session_id`+tx.db.d.forUpdate+`)`,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return nil
}
