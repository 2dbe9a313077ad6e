-- Whether a site has chargers beside cars is asked for each session that is settled.
-- +goose Up
CREATE INDEX asset_kind ON asset (site_id, type);
