package store

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
)

// AssetNow is the current state of an asset, as a client follows it.
type AssetNow struct {
	ID         flex.AssetID
	SiteID     flex.SiteID
	ExternalID string
	Type       flex.AssetType

	Session      flex.SessionID // the newest; zero if there never was one
	PluggedInAt  time.Time
	PluggedOutAt time.Time // zero while it continues
	ReadyBy      time.Time
	Schedule     flex.EventID // in force; zero for none
	Generation   int64
	Accepted     int64 // the newest generation that the client has taken
	ChargeNowTo  time.Time
	AwayTo       time.Time // until when nothing is needed; zero for no absence
}

// AssetsNow returns the assets of sites as they are, by their ids.
func (tx *Tx) AssetsNow(
	ctx context.Context,
	sites []flex.SiteID,
) ([]AssetNow, error) {
	var all []AssetNow
	for chunk := range slices.Chunk(sites, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)

		found, err := rows(
			ctx,
			tx.conn,
			scanAssetNow,
			`SELECT a.id, a.site_id, a.external_id, a.type,
				s.id, s.plugged_in_at, s.plugged_out_at, s.ready_by, s.event_id, COALESCE(s.generation, 0),
				COALESCE(o.accepted, 0), i.charge_now_to, i.away_to
			FROM asset a LEFT JOIN session s ON s.org_id = a.org_id AND s.asset_id = a.id
					AND s.number = (SELECT max(x.number) FROM session x WHERE x.org_id = a.org_id AND x.asset_id = a.id)
				LEFT JOIN outbox o ON o.subject = a.id LEFT JOIN inputs i ON i.asset_id = a.id
			WHERE a.org_id = $1 AND a.site_id IN `+list+` ORDER BY a.id`,
			args...,
		)

		if err != nil {
			return nil, err
		}

		all = append(all, found...)
	}

	return all, nil
}

func scanAssetNow(s scanner) (AssetNow, error) {
	var a AssetNow
	err := s.Scan(
		&a.ID,
		&a.SiteID,
		&a.ExternalID,
		&a.Type,
		&a.Session,
		instant{&a.PluggedInAt},
		instant{&a.PluggedOutAt},
		instant{&a.ReadyBy},
		&a.Schedule,
		&a.Generation,
		&a.Accepted,
		instant{&a.ChargeNowTo},
		instant{&a.AwayTo},
	)

	return a, err
}
