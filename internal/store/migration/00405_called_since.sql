-- +goose Up
-- The calls of a site since an instant: those of a month are counted without those of all months before.
CREATE INDEX called_asset_since ON called_asset (org_id, site_id, called_at);
DROP INDEX called_asset_site;
