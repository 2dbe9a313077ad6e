-- Whether there is a battery beside a charger is asked each time that the charger is planned: at a site with thousands of chargers
-- without reading them all.
-- +goose Up
CREATE INDEX asset_battery ON asset (site_id, id) WHERE type = 'battery';
