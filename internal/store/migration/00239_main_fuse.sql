-- The main fuse that a site's import capacity was given as; 0 where it was given in kilowatts, or not.
-- +goose Up
ALTER TABLE site ADD COLUMN fuse_ma BIGINT NOT NULL DEFAULT 0;     -- for each phase
ALTER TABLE site ADD COLUMN fuse_phases BIGINT NOT NULL DEFAULT 0;
