-- What pages of sites rest on: a number that changes with every change of an organisation's
-- sites, assets and dispatch consents, and one that changes with the list of meters.
-- +goose Up
ALTER TABLE org ADD COLUMN register BIGINT NOT NULL DEFAULT 0;
CREATE TABLE meter_version (n BIGINT NOT NULL);
INSERT INTO meter_version (n) VALUES (0);
