-- A page of sites reads the assets of each without looking at the assets' own rows.
-- +goose Up
DROP INDEX asset_site;
CREATE INDEX asset_site ON asset (site_id, id);
