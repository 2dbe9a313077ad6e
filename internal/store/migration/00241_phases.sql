-- How many phases an asset draws on; 0 where it was not given, and its nominal power says.
-- +goose Up
ALTER TABLE asset ADD COLUMN phases BIGINT NOT NULL DEFAULT 0;
